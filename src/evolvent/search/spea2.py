"""SPEA2: strengths, densities and truncation (Zitzler, Laumanns and Thiele, TIK report 103, 2001).

Points have one row each, and more is better in every column; distances are Euclidean.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

from evolvent.core.ranges import Count
from evolvent.search.candidate import Candidate
from evolvent.search.objectives import ACCURATE_AND_SMALL, dominates, objectives

Points = Float[np.ndarray, "points metrics"]


def raw_fitness(points: Points) -> Int[np.ndarray, " points"]:
    """R(i) = sum of S(j) over those j that dominate i, with S(j) the number that j dominates; 0 is best."""
    above = dominates(points)
    return above.sum(1) @ above


def densities(points: Points) -> Float[np.ndarray, " points"]:
    """D(i) = 1 / (sigma + 2), sigma the distance to the k-th nearest other point, k = floor(sqrt(points))."""
    gaps = np.sort(between(points), axis=1)  # the first is the point itself
    return 1 / (gaps[:, min(max(1, math.isqrt(len(points))), len(points) - 1)] + 2)


def select(points: Points, size: int) -> list[int]:
    """The places of `size` points, in their order: all that nobody dominates, filled up by R + D or truncated.

    Truncation takes away, one after the other, the point with the smallest distance to its nearest neighbour, ties
    broken by the second nearest and so on; of equals the later one. DEAP's selSPEA2 measures densities to later points
    only.
    """
    raw = raw_fitness(points)
    free = [int(i) for i in np.flatnonzero(raw == 0)]
    if len(free) < size:
        return sorted(np.argsort(raw + densities(points), kind="stable")[:size].tolist()) if len(points) else []
    gaps = between(points)
    while len(free) > size:
        rows = np.sort(gaps[np.ix_(free, free)], axis=1)
        free.pop(max(range(len(free)), key=lambda i: (*(-rows[i]).tolist(), i)))
    return free


def between(points: Points) -> Float[np.ndarray, "points points"]:
    """Distances between all points."""
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))


def elites(members: list[Candidate], size: int, metrics: tuple[str, ...] = ACCURATE_AND_SMALL) -> list[Candidate]:
    """The `size` members that SPEA2 would keep, in their order; all metrics count alike."""
    return [members[i] for i in select(objectives(members, metrics), size)] if members else []


def spea2(
    candidate: Candidate, members: list[Candidate], *, size: Count = 44, metrics: tuple[str, ...] = ACCURATE_AND_SMALL
) -> list[Candidate]:
    """All valid candidates of a step, and of those before it the `size` that SPEA2 keeps."""
    if members and candidate.step > max(c.step for c in members):
        members = elites(members, size, metrics)
    return [*members, candidate] if candidate.valid else members
