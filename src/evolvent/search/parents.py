"""Parent rules: which member of the archive is varied next. Each is a function of the members and a generator.

rule(pool, rng) -> Candidate
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from evolvent.search.candidate import Candidate


class Pool(NamedTuple):
    """What a rule chooses from: valid `members` (at least one), in the order in which they were made, and for each how
    many children it has, [members]; `first` is the seed program, `last` the candidate that was evaluated last, valid
    or not."""

    members: Sequence[Candidate]
    children: Float[np.ndarray, " members"]
    first: Candidate
    last: Candidate

    @property
    def values(self) -> Float[np.ndarray, " members"]:
        """Of the members."""
        return np.array([c.value for c in self.members])


ParentRule = Callable[[Pool, np.random.Generator], Candidate]


def drawn(pool: Pool, weights: Float[np.ndarray, " members"], rng: np.random.Generator) -> Candidate:
    """A member with a probability proportional to its weight; a uniform one where all weights are 0."""
    total = weights.sum()
    p = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    return pool.members[int(rng.choice(len(pool.members), p=p))]


def uniform(pool: Pool, rng: np.random.Generator) -> Candidate:
    """Every member with the same probability."""
    return pool.members[int(rng.integers(len(pool.members)))]


def seed(pool: Pool, rng: np.random.Generator) -> Candidate:
    """Always the program that the user gave: independent samples."""
    return pool.first


def latest(pool: Pool, rng: np.random.Generator) -> Candidate:
    """The latest member: each sample is conditioned on the one before."""
    return max(pool.members, key=lambda c: c.uid)


def elite(pool: Pool, rng: np.random.Generator) -> Candidate:
    """The best member, the first of equals: greedy hill climbing."""
    return max(pool.members, key=lambda c: (c.value, -c.uid))


def power_law(pool: Pool, rng: np.random.Generator, *, alpha: float = 1.0) -> Candidate:
    """p(rank) ~ rank^-alpha, the best having rank 1 (ShinkaEvolve, arXiv 2509.19349)."""
    order = np.argsort(-pool.values, kind="stable")
    weights = np.empty(len(order))
    weights[order] = np.arange(1, len(order) + 1, dtype=float) ** -alpha
    return drawn(pool, weights, rng)


def weighted(pool: Pool, rng: np.random.Generator, *, sharpness: float = 10.0) -> Candidate:
    """w = sigmoid(sharpness (value - median) / max(MAD, 1e-6)) / (1 + children) (ShinkaEvolve, arXiv 2509.19349)."""
    values = pool.values
    median = np.median(values)
    scale = max(float(np.median(np.abs(values - median))), 1e-6)
    exponent = np.clip(-sharpness * (values - median) / scale, -500, 500)
    return drawn(pool, 1 / (1 + np.exp(exponent)) / (1 + pool.children), rng)


def boltzmann(pool: Pool, rng: np.random.Generator, *, temperature: float = 1.0) -> Candidate:
    """p ~ exp((value - best) / temperature)."""
    values = pool.values
    return drawn(pool, np.exp((values - values.max()) / temperature), rng)


def mixed(pool: Pool, rng: np.random.Generator, *, explore: float = 0.2, exploit: float = 0.7) -> Candidate:
    """Uniform with probability `explore`, uniform among the best tenth with `exploit`, else ~ max(value, 0.001).

    OpenEvolve's rule, with the best tenth in the place of its archive.
    """
    u = rng.random()
    if u < explore:
        return uniform(pool, rng)
    if u < explore + exploit:
        best = sorted(pool.members, key=lambda c: (-c.value, c.uid))[: max(1, len(pool.members) // 10)]
        return best[int(rng.integers(len(best)))]
    return drawn(pool, np.maximum(pool.values, 0.001), rng)
