"""Regret minimisation by recursion over the rules of a game, one information set and action at a time: an oracle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any

from evolvent.games.tree import Chance, End, Rules

Row = dict[int, float]


class Node:
    """An information set: what is accumulated there, and what its rules remember."""

    def __init__(self, actions: list[int], key: str) -> None:
        self.actions, self.key, self.memory = actions, key, {}  # type: ignore[var-annotated]
        self.policy = dict.fromkeys(actions, 1 / len(actions))
        self.regret = dict.fromkeys(actions, 0.0)
        self.total = dict.fromkeys(actions, 0.0)
        self.r: Row = {}
        self.reach = 0.0


Update = Callable[[Node, int], tuple[Row, Row, Row]]  # node, t -> regret, weights of the next policy, total


def normalised(weights: Row) -> Row:
    positive = {a: max(w, 0.0) for a, w in weights.items()}
    mass = sum(positive.values())
    return {a: w / mass if mass > 0 else 1 / len(weights) for a, w in positive.items()}


def run(rules: Rules, players: int, update: Update, iterations: int) -> list[dict[str, Node]]:
    """The information sets of each player, by key, after the iterations; players take turns."""
    nodes: list[dict[Hashable, Node]] = [{} for _ in range(players)]

    def walk(history: tuple[int, ...], reaches: list[float], chance: float, player: int) -> float:
        turn = rules(history)
        if isinstance(turn, End):
            return float(turn.utilities[player])
        if isinstance(turn, Chance):
            return sum(p * walk((*history, o), reaches, chance * p, player) for o, p in turn.outcomes)
        who = turn.player
        node = nodes[who].setdefault(turn.seen, Node(list(turn.actions), ".".join(map(str, history))))
        worth = {}
        for a in turn.actions:
            further = [x * node.policy[a] if q == who else x for q, x in enumerate(reaches)]
            worth[a] = walk((*history, a), further, chance, player)
        value = sum(node.policy[a] * worth[a] for a in turn.actions)
        if who == player:
            others = chance
            for q, x in enumerate(reaches):
                others *= 1.0 if q == who else x
            for a in turn.actions:
                node.r[a] = node.r.get(a, 0.0) + others * (worth[a] - value)
            node.reach = reaches[who]
        return value

    for player in range(players):  # so that all information sets are known, by their first histories
        walk((), [1.0] * players, 1.0, player)
    for t in range(1, iterations + 1):
        for player in range(players):
            for node in nodes[player].values():
                node.r = dict.fromkeys(node.actions, 0.0)
            walk((), [1.0] * players, 1.0, player)
            for node in nodes[player].values():
                node.regret, weights, node.total = update(node, t)
                node.policy = normalised(weights)
    return [{node.key: node for node in found.values()} for found in nodes]


def weighted(node: Node, weight: float) -> Row:
    return {a: node.total[a] + weight * node.reach * node.policy[a] for a in node.actions}


def predictive(node: Node, t: int) -> tuple[Row, Row, Row]:
    total = weighted(node, t * t)
    regret = {a: max(node.regret[a] + node.r[a], 0.0) for a in node.actions}
    return regret, {a: regret[a] + node.r[a] for a in node.actions}, total


def discounted_predictive(node: Node, t: int) -> tuple[Row, Row, Row]:
    def share(n: int) -> float:
        return n**2.3 / (n**2.3 + 1)

    total = weighted(node, float(t) ** 5)
    regret = {a: max(node.regret[a] * share(t - 1) + node.r[a], 0.0) for a in node.actions}
    return regret, {a: regret[a] * share(t) + node.r[a] for a in node.actions}, total


def vad(**settings: Any) -> Update:
    """VAD-CFR from its formulas; the settings of `evolvent.games.vad.vad_cfr`, but `shared`."""
    s: dict[str, Any] = defaultdict(float, sensitivity=0.5, boost=1.1, floor=-20.0, optimism=1.0, power=1.5, warmup=500)
    s.update({"adaptive_weights": True}, **settings)

    def update(node: Node, t: int) -> tuple[Row, Row, Row]:
        m = max(abs(x) for x in node.r.values())
        e = node.memory["e"] = m if t == 1 else 0.9 * node.memory["e"] + 0.1 * m
        v = min(1.0, e / 2)
        alpha = max(0.1, 1.5 - s["sensitivity"] * v)
        beta = min(alpha, -0.1 - s["sensitivity"] * v)

        def kept(x: float) -> float:
            exponent = alpha if x >= 0 else beta
            return x * t**exponent / (t**exponent + 1)

        boosted = {a: x * s["boost"] if x > 0 else x for a, x in node.r.items()}
        regret = {a: max(s["floor"], kept(node.regret[a]) + boosted[a]) for a in node.actions}
        hope = s["optimism"] / (1 + (t - 1) / 100) * max(0.0, 1 - s["sensitivity"] * v)
        weights = {a: max(0.0, kept(regret[a]) + hope * boosted[a]) ** s["power"] for a in node.actions}
        if t <= s["warmup"]:
            return regret, weights, node.total
        weight = float(t) ** 2
        if s["adaptive_weights"]:
            weight = t ** min(4.0, 2 + 1.5 * min(1.0, m / 2)) * (1 + m / 2) ** 0.5 / (1 + m**1.5)
        return regret, weights, weighted(node, weight)

    return update
