"""Meta-strategy solvers: what to play of populations of policies. Those that PSRO is known with.

A solver gets the payoffs of all players, each an array with one axis a player, [policies of 0, policies of 1, ...],
and how many times PSRO has asked before; it gives a mixture for each player.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linprog

from evolvent.core.errors import UserError

Mixtures = list[np.ndarray]
MetaSolver = Callable[[Sequence[np.ndarray], int], Mixtures]


def against(payoff: np.ndarray, player: int, mixtures: Sequence[np.ndarray]) -> np.ndarray:
    """What each policy of a player can expect where the others mix, [policies of the player]."""
    for other in reversed(range(payoff.ndim)):
        if other != player:
            payoff = np.tensordot(payoff, mixtures[other], axes=([other], [0]))
    return payoff


def even(payoffs: Sequence[np.ndarray]) -> Mixtures:
    """All policies alike."""
    return [np.full(n, 1 / n) for n in payoffs[0].shape]


def uniform() -> MetaSolver:
    """All policies alike: fictitious play."""
    return lambda payoffs, asked: even(payoffs)


def nash() -> MetaSolver:
    """An equilibrium, by linear programming; the double oracle method. `UserError` for other than two players whose
    payoffs sum to 0."""

    def solve(payoffs: Sequence[np.ndarray], asked: int) -> Mixtures:
        if len(payoffs) != 2 or not np.allclose(payoffs[0], -payoffs[1]):
            raise UserError("the meta-solver `nash` takes games of two players whose payoffs sum to 0; use `matching`")
        return [secure(payoffs[0]), secure(payoffs[1].T)]

    return solve


def secure(payoff: np.ndarray) -> np.ndarray:
    """The mixture of rows with the largest least payoff."""
    rows, columns = payoff.shape
    found = linprog(
        np.append(np.zeros(rows), -1.0),
        np.column_stack([-payoff.T, np.ones(columns)]), np.zeros(columns),
        np.append(np.ones(rows), 0.0)[None], [1.0],
        [(0, None)] * rows + [(None, None)], method="highs",
    ).x  # fmt: skip
    mixture = np.maximum(found[:rows], 0.0)
    return mixture / mixture.sum()


def replicator(*, steps: int = 10_000, dt: float = 1e-3, least: float = 1e-6) -> MetaSolver:
    """Projected replicator dynamics, averaged: x <- projection of x + dt x (u - x.u) onto x >= least, sum x = 1
    (Lanctot et al., arXiv 1711.00832; OpenSpiel's takes 100,000 steps)."""

    def solve(payoffs: Sequence[np.ndarray], asked: int) -> Mixtures:
        mixtures = even(payoffs)
        total = [x.copy() for x in mixtures]
        for _ in range(steps):
            worth = [against(payoffs[p], p, mixtures) for p in range(len(payoffs))]
            mixtures = [projected(x + dt * x * (u - x @ u), least) for x, u in zip(mixtures, worth, strict=True)]
            for sum_, x in zip(total, mixtures, strict=True):
                sum_ += x
        return [sum_ / sum_.sum() for sum_ in total]

    return solve


def projected(x: np.ndarray, least: float) -> np.ndarray:
    """The nearest point with a sum of 1 and no entry below `least` (Wang and Carreira-Perpiñán, arXiv 1309.1541)."""
    n = len(x)
    ranked, count = np.sort(x)[::-1], np.arange(1, n + 1)
    shift = (1 - np.cumsum(ranked) - (n - count) * least) / count
    kept = np.flatnonzero(ranked + shift > least)[-1]
    return np.maximum(x + shift[kept], least)


def matching(*, steps: int = 10_000, explore: float = 1e-6, start: float = 1e-6) -> MetaSolver:
    """Regret matching, averaged, with a share of the uniform mixture (Lanctot et al., arXiv 1711.00832; OpenSpiel's
    takes 100,000 steps)."""

    def solve(payoffs: Sequence[np.ndarray], asked: int) -> Mixtures:
        mixtures = even(payoffs)
        total, regrets = [x.copy() for x in mixtures], [np.full(len(x), start) for x in mixtures]
        for _ in range(steps):
            worth = [against(payoffs[p], p, mixtures) for p in range(len(payoffs))]
            for p, u in enumerate(worth):
                regrets[p] += u - mixtures[p] @ u
                positive = np.maximum(regrets[p], 0.0)
                blank = np.full(len(u), 1 / len(u))
                mixtures[p] = explore * blank + (1 - explore) * positive / positive.sum() if positive.any() else blank
                total[p] += mixtures[p]
        return [sum_ / sum_.sum() for sum_ in total]

    return solve
