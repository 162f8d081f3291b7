"""SHOR: smoothed hybrid optimistic regret, a meta-strategy solver found by AlphaEvolve, with parts to switch off.

arXiv 2602.16928, listing 6. In each of n inner steps, players in turn, with the payoffs u of a player's policies:

    c_t = u - mean(u);  g = (1 + momentum) c_t - momentum c_(t-1) + diversity (1 - sigma);  g <- g / max |g|
    R <- max(0, R + g);  ORM ~ R, uniform where it is 0
    sigma = (1 - blend) ORM + blend softmax(u / temperature)

To train against: the average sigma of n = 1000 + 20 (policies - 1), at most 5000, steps; over 75 calls blend goes from
0.3 to 0.05, temperature from 0.5 to 0.01, diversity from 0.05 to 0.001; momentum 0.5. To evaluate: the last sigma of
n = 8000 + 50 (policies - 1), at most 15000; blend 0.01, temperature 0.001, diversity 0, momentum 0.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evolvent.games.meta import MetaSolver, Mixtures, against, even

TINY = 1e-8  # gains that are all smaller are not scaled


def hybrid(
    payoffs: Sequence[np.ndarray],
    steps: int,
    *,
    blend: float,
    temperature: float,
    diversity: float,
    momentum: float,
    normalise: bool = True,
    averaged: bool = True,
) -> Mixtures:
    """The inner loop: the average mixtures, or the last ones."""
    sigma = even(payoffs)
    regrets, before, total = ([np.zeros(len(x)) for x in sigma] for _ in range(3))
    for _ in range(steps):
        for p in range(len(payoffs)):
            worth = against(payoffs[p], p, sigma)
            centred = worth - worth.mean()
            gains = (1 + momentum) * centred - momentum * before[p] + diversity * (1.0 - sigma[p])
            largest = np.abs(gains).max()
            if normalise and largest > TINY:
                gains = gains / largest
            regrets[p] = np.maximum(0.0, regrets[p] + gains)
            mass = regrets[p].sum()
            matched = regrets[p] / mass if mass > 1e-12 else np.full(len(worth), 1 / len(worth))
            sigma[p] = (1 - blend) * matched + blend * softmax(worth, temperature)
            before[p] = centred
            total[p] += sigma[p]
    return [x / x.sum() for x in total] if averaged else sigma


def softmax(worth: np.ndarray, temperature: float) -> np.ndarray:
    """exp(worth / temperature), normalised."""
    scaled = np.exp((worth - worth.max()) / temperature)
    return scaled / scaled.sum()


def shor_train(
    *,
    blend: tuple[float, float] = (0.3, 0.05),
    temperature: tuple[float, float] = (0.5, 0.01),
    diversity: tuple[float, float] = (0.05, 0.001),
    over: int = 75,
    momentum: float = 0.5,
    normalise: bool = True,
    averaged: bool = True,
    steps: tuple[int, int, int] = (1000, 20, 5000),
) -> MetaSolver:
    """SHOR to train against. `blend`, `temperature` and `diversity` go from the first to the second value over `over`
    calls; equal values switch the annealing off, 0 the part, `momentum=0` the optimism. `steps`: the first, more for
    each policy, the most."""

    def solve(payoffs: Sequence[np.ndarray], asked: int) -> Mixtures:
        progress = min(1.0, (asked + 1) / over)
        now = [a * (1.0 - progress) + b * progress for a, b in (blend, temperature, diversity)]
        return hybrid(
            payoffs, inner(payoffs, steps), blend=now[0], temperature=now[1], diversity=now[2],
            momentum=momentum, normalise=normalise, averaged=averaged,
        )  # fmt: skip

    return solve


def shor_evaluate(
    *,
    blend: float = 0.01,
    temperature: float = 0.001,
    diversity: float = 0.0,
    momentum: float = 0.2,
    normalise: bool = True,
    averaged: bool = False,
    steps: tuple[int, int, int] = (8000, 50, 15_000),
) -> MetaSolver:
    """SHOR to evaluate a population with: fixed settings, the last mixtures."""

    def solve(payoffs: Sequence[np.ndarray], asked: int) -> Mixtures:
        return hybrid(
            payoffs, inner(payoffs, steps), blend=blend, temperature=temperature, diversity=diversity,
            momentum=momentum, normalise=normalise, averaged=averaged,
        )  # fmt: skip

    return solve


def inner(payoffs: Sequence[np.ndarray], steps: tuple[int, int, int]) -> int:
    """How many inner steps a population gets, by the size of the first player's."""
    first, more, most = steps
    return min(most, first + more * (payoffs[0].shape[0] - 1))
