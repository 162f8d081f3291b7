"""What policies of a game are worth: reach, counterfactual values, best responses, exploitability; all exact.

A policy of a player is [rows, width] with the probabilities of its actions, and 0 where there is none; a profile has
one for each player. Each pass goes over the levels of a player's tree, and over all ends of the game once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evolvent.games.tree import Game, Side


def reach(side: Side, policy: np.ndarray) -> np.ndarray:
    """The player's own probability of getting to and taking each of its actions: [rows * width + 1], 1 for none yet."""
    rows, width = side.shape
    found = np.empty(rows * width + 1)
    found[-1] = 1.0
    table = found[:-1].reshape(rows, width)
    for level in side.levels:
        table[level.rows] = found[side.parent[level.rows], None] * policy[level.rows]
    return found


def policy_of(side: Side, reached: np.ndarray) -> np.ndarray:
    """The policy with such a reach; uniform where the player does not get. A mixture of policies, each drawn once for a
    whole game, has the mean of their reaches (Kuhn's theorem)."""
    table = reached[:-1].reshape(side.shape)
    total = reached[side.parent][:, None]
    return np.where(total > 0, table / np.where(total > 0, total, 1.0), side.uniform())


def ends(game: Game, player: int, reaches: Sequence[np.ndarray]) -> np.ndarray:
    """Of each end: chance * the others' reach * the player's utility, [ends]."""
    weights = game.sides[player].payoff
    for other, side in enumerate(game.sides):
        if other != player:
            weights = weights * reaches[other][side.sequence]
    return weights


def action_values(side: Side, weights: np.ndarray, policy: np.ndarray | None) -> tuple[np.ndarray, float]:
    """Counterfactual values of all actions, [rows, width], and the value of the game; of a best response where there is
    no policy.

    v(I, a) = sum over histories h in I of pi_-i(h) sum over ends z after h, a of pi(z | h, a) u_i(z)
    (Zinkevich et al., 2007)
    """
    rows, width = side.shape
    found = np.bincount(side.sequence, weights, minlength=rows * width + 1)
    table = found[:-1].reshape(rows, width)
    for level in reversed(side.levels):
        below = table[level.rows]
        if policy is None:
            worth = np.where(side.legal[level.rows], below, -np.inf).max(axis=1)
        else:
            worth = (policy[level.rows] * below).sum(axis=1)
        found[level.above] += np.bincount(level.which, worth, minlength=len(level.above))
    return table, float(found[-1])


def regrets(game: Game, player: int, profile: Sequence[np.ndarray], reaches: Sequence[np.ndarray]) -> np.ndarray:
    """Instantaneous counterfactual regrets, [rows, width]: r(I, a) = v(I, a) - sum_b sigma(I, b) v(I, b)."""
    side, policy = game.sides[player], profile[player]
    table, _ = action_values(side, ends(game, player, reaches), policy)
    return np.where(side.legal, table - (policy * table).sum(axis=1, keepdims=True), 0.0)


def utilities(game: Game, profile: Sequence[np.ndarray]) -> list[float]:
    """What everybody can expect."""
    reaches = [reach(side, policy) for side, policy in zip(game.sides, profile, strict=True)]
    return [float(ends(game, p, reaches) @ reaches[p][side.sequence]) for p, side in enumerate(game.sides)]


def best_response(game: Game, player: int, reaches: Sequence[np.ndarray], ties: float = 1e-12) -> np.ndarray:
    """A policy that is best against the others' reaches, [rows, width]; actions that are worse by less than `ties`
    share."""
    side = game.sides[player]
    table, _ = action_values(side, ends(game, player, reaches), None)
    table = np.where(side.legal, table, -np.inf)
    best = table >= table.max(axis=1, keepdims=True) - ties
    return best / best.sum(axis=1, keepdims=True)


def gains(game: Game, profile: Sequence[np.ndarray]) -> list[float]:
    """What each player would gain by a best response to the others, at least 0 but for rounding."""
    reaches = [reach(side, policy) for side, policy in zip(game.sides, profile, strict=True)]
    found = []
    for player, side in enumerate(game.sides):
        weights = ends(game, player, reaches)
        found.append(action_values(side, weights, None)[1] - float(weights @ reaches[player][side.sequence]))
    return found


def exploitability(game: Game, profile: Sequence[np.ndarray]) -> float:
    """The mean of the gains: (1/N) sum_i (max over s_i' of u_i(s_i', s_-i) - u_i(s)), arXiv 2602.16928, equation 2."""
    return float(np.mean(gains(game, profile)))
