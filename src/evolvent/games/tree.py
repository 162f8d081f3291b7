"""A finite game with hidden information as flat arrays, built once from its rules.

Rules are a function of the history of actions and chance events; `build` walks all histories. What stays is, for each
player, the tree of its information sets, and for each end of the game the last own action of everybody with
chance * utility (the sequence form: von Stengel, 1996). Perfect recall is checked. Standard library and NumPy only:
the file is also put beside programs in the sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

History = tuple[int, ...]


@dataclass(frozen=True)
class Chance:
    """An event with (outcome, probability) for each of its outcomes."""

    outcomes: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Decision:
    """A player, counted from 0, chooses among `actions`; `seen` is all that it knows, its own actions included."""

    player: int
    seen: Hashable
    actions: Sequence[int]


@dataclass(frozen=True)
class End:
    """The game is over, with what everybody gets."""

    utilities: Sequence[float]


Rules = Callable[[History], Chance | Decision | End]


@dataclass(frozen=True)
class Level:
    """Information sets of a player with as many own actions before: `rows`. `above` are the actions that lead to them,
    without repeats, and `which` of these leads to each row."""

    rows: slice
    above: np.ndarray
    which: np.ndarray


@dataclass(frozen=True)
class Side:
    """What a player sees of a game. Rows are its information sets, those with fewer own actions before first; action a
    of row i is i * width + a, and rows * width stands for no action yet.

    legal     [rows, width] which actions there are; a row's actions come first
    parent    [rows] its last own action before
    levels    from the first decisions on
    sequence  [ends] its last own action before the game ended
    payoff    [ends] probability of the chance events * utility
    """

    legal: np.ndarray
    parent: np.ndarray
    levels: tuple[Level, ...]
    sequence: np.ndarray
    payoff: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Information sets, and the most actions of one."""
        return self.legal.shape[0], self.legal.shape[1]

    def uniform(self) -> np.ndarray:
        """The policy that takes all actions with the same probability, [rows, width]."""
        return self.legal / self.legal.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Game:
    """A game for all its players. `keys`: for each player and row the first history that leads there, as "2.0.1"."""

    sides: tuple[Side, ...]
    keys: tuple[tuple[str, ...], ...]

    def uniform(self) -> list[np.ndarray]:
        """The uniform policy of everybody."""
        return [side.uniform() for side in self.sides]

    def data(self) -> list[dict[str, Any]]:
        """As JSON data, for `from_data`; without the keys."""
        return [
            {
                "actions": side.legal.sum(axis=1).tolist(),
                "parent": side.parent.tolist(),
                "sequence": side.sequence.tolist(),
                "payoff": side.payoff.tolist(),
            }
            for side in self.sides
        ]


def from_data(data: Sequence[Mapping[str, Any]]) -> Game:
    """The game that `data` was made of."""
    sides = [_side(*(np.array(d[k]) for k in ("actions", "parent", "sequence", "payoff"))) for d in data]
    return Game(tuple(sides), ((),) * len(sides))


def build(rules: Rules, players: int) -> Game:
    """The game with such rules. ValueError where a player forgets its own actions, or has different actions where it
    sees the same."""
    found: list[dict[Hashable, int]] = [{} for _ in range(players)]
    sets: list[list[tuple[int, tuple[int, int], str]]] = [[] for _ in range(players)]  # actions, last own, key
    ends: list[tuple[tuple[tuple[int, int], ...], list[float]]] = []
    start = (((-1, 0),) * players, 1.0, ())
    waiting: list[tuple[tuple[tuple[int, int], ...], float, History]] = [start]
    while waiting:
        last, chance, history = waiting.pop()
        turn = rules(history)
        if isinstance(turn, End):
            ends.append((last, [chance * u for u in turn.utilities]))
        elif isinstance(turn, Chance):
            waiting += [(last, chance * p, (*history, o)) for o, p in reversed(turn.outcomes)]
        else:
            p, key = turn.player, ".".join(map(str, history))
            row = found[p].setdefault(turn.seen, len(found[p]))
            entry = (len(turn.actions), last[p], key)
            if row == len(sets[p]):
                sets[p].append(entry)
            elif sets[p][row][:2] != entry[:2]:
                raise ValueError(f"player {p} sees the same at {sets[p][row][2]} and {key}, which differ for it")
            for a in range(len(turn.actions) - 1, -1, -1):
                now = (*last[:p], (row, a), *last[p + 1 :])
                waiting.append((now, chance, (*history, turn.actions[a])))
    sides, keys = [], []
    for p in range(players):
        depth = np.zeros(len(sets[p]), int)
        for row, (_, (above, _), _) in enumerate(sets[p]):
            depth[row] = 0 if above < 0 else depth[above] + 1
        order = np.argsort(depth, kind="stable")
        place = np.append(np.argsort(order), -1)
        width = max(n for n, _, _ in sets[p])
        none = len(order) * width

        def flat(last: tuple[int, int], place: np.ndarray = place, width: int = width, none: int = none) -> int:
            return none if last[0] < 0 else int(place[last[0]]) * width + last[1]

        actions = np.array([sets[p][row][0] for row in order])
        parent = np.array([flat(sets[p][row][1]) for row in order])
        sequence = np.array([flat(last[p]) for last, _ in ends])
        sides.append(_side(actions, parent, sequence, np.array([gains[p] for _, gains in ends])))
        keys.append(tuple(sets[p][row][2] for row in order))
    return Game(tuple(sides), tuple(keys))


def _side(actions: np.ndarray, parent: np.ndarray, sequence: np.ndarray, payoff: np.ndarray) -> Side:
    width = int(actions.max())
    none = len(actions) * width
    depth = np.zeros(len(actions), int)
    for row in range(len(actions)):
        depth[row] = 0 if parent[row] == none else depth[parent[row] // width] + 1
    levels, first = [], 0
    for size in np.bincount(depth):
        rows = slice(first, first + int(size))
        above, which = np.unique(parent[rows], return_inverse=True)
        levels.append(Level(rows, above, which))
        first = rows.stop
    legal = np.arange(width) < actions[:, None]
    return Side(legal, parent, tuple(levels), sequence, payoff)
