"""NSGA-II: fast non-dominated sorting and crowding distances (Deb, Pratap, Agarwal and Meyarivan, 2002).

Points have one row each, and more is better in every column.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from evolvent.core.ranges import Count
from evolvent.search.candidate import Candidate
from evolvent.search.objectives import ACCURATE_AND_SMALL, dominates, objectives

Points = Float[np.ndarray, "points metrics"]


def fronts(points: Points) -> Int[np.ndarray, " points"]:
    """The front of each point: 0 for those that nobody dominates, 1 for those that only these dominate, and so on."""
    above = dominates(points)
    count, front, level = above.sum(0), np.full(len(points), -1), 0
    while (front < 0).any():
        now = (count == 0) & (front < 0)
        front[now] = level
        count = count - above[now].sum(0)
        level += 1
    return front


def crowding(points: Points) -> Float[np.ndarray, " points"]:
    """Of points of one front: the sum over metrics of the gap between both neighbours, as a share of the range; inf at
    the ends of a metric."""
    distance = np.zeros(len(points))
    for column in points.T:
        order = np.argsort(column, kind="stable")
        span = column[order[-1]] - column[order[0]]
        distance[order[[0, -1]]] = np.inf
        if span > 0:
            distance[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
    return distance


def distances(points: Points) -> Float[np.ndarray, " points"]:
    """The crowding distance of each point within its front."""
    front, found = fronts(points), np.zeros(len(points))
    for level in range(front.max(initial=-1) + 1):
        found[front == level] = crowding(points[front == level])
    return found


def contest(a: int, b: int, points: Points, distance: Float[np.ndarray, " points"], rng: np.random.Generator) -> int:
    """The one that dominates the other, else the less crowded one, else either."""
    if (points[a] >= points[b]).all() and (points[a] > points[b]).any():
        return a
    if (points[b] >= points[a]).all() and (points[b] > points[a]).any():
        return b
    if distance[a] != distance[b]:
        return a if distance[a] > distance[b] else b
    return a if rng.random() < 0.5 else b


def tournaments(points: Points, count: int, rng: np.random.Generator) -> list[int]:
    """The winners of `count` contests in which everybody takes part once before anybody does again (DEAP's
    selTournamentDCD, which takes its contests from two shuffled lists in turn)."""
    if len(points) == 1:
        return [0] * count
    distance = distances(points)
    winners: list[int] = []
    lists: list[list[int]] = [[], []]
    while len(winners) < count:
        turn = len(winners) // 2 % 2
        if len(lists[turn]) < 2:
            lists[turn] = rng.permutation(len(points)).tolist()
        winners.append(contest(lists[turn].pop(0), lists[turn].pop(0), points, distance, rng))
    return winners


def nsga2(
    candidate: Candidate, members: list[Candidate], *, size: Count = 40, metrics: tuple[str, ...] = ACCURATE_AND_SMALL
) -> list[Candidate]:
    """The first `size` by front, then by crowding distance (NSGA-II); of equals those who came first."""
    if not candidate.valid:
        return members
    found = [*members, candidate]
    points = objectives(found, metrics)
    order = np.lexsort((-distances(points), fronts(points)))
    return [found[i] for i in sorted(order[:size])]
