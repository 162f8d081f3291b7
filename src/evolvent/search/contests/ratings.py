"""Ratings: how good agents are by the contests that they took part in, each with questions of its own.

rule(contests) -> {uid: rating}, of everybody who took part; a contest is {uid: accuracy}, in their order

A candidate keeps what it did in contest 7 as the metric `contest/7`, so that ratings follow from the history alone, and
are rules for parents and for the best in the end as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evolvent.search.candidate import Candidate
from evolvent.search.parents import Pool

CONTEST = "contest/"  # before the number of a contest, in the metrics
START, K, SCALE = 1500.0, 32.0, 400.0
Contest = Mapping[int, float]
Rating = Callable[[Sequence[Contest]], dict[int, float]]


def expected(own: float, other: float) -> float:
    """The share of points that is expected: 1 / (1 + 10^((other - own) / 400)) (Elo, 1978)."""
    return float(1 / (1 + 10 ** ((other - own) / SCALE)))


def elo(contests: Sequence[Contest], *, start: float = START, k: float = K) -> dict[int, float]:
    """Every pair of a contest plays: higher accuracy wins, equal ones share the point (RoboPhD, arXiv 2601.01126).

        rating += k * (sum of points - sum of expected points)

    All pairs of a contest play at once, with the ratings before it; the published code lets one pair play after the
    other, draws first, so that the order matters.
    """
    found: dict[int, float] = {}
    for contest in contests:
        before = {uid: found.get(uid, start) for uid in contest}
        for uid, own in contest.items():
            gain = 0.0
            for other, its in contest.items():
                if other != uid:
                    points = 1.0 if own > its else 0.5 if own == its else 0.0
                    gain += points - expected(before[uid], before[other])
            found[uid] = before[uid] + k * gain
    return found


def best_contest(contests: Sequence[Contest]) -> dict[int, float]:
    """The highest accuracy in a single contest, however easy its questions were: greedy."""
    found: dict[int, float] = {}
    for contest in contests:
        for uid, accuracy in contest.items():
            found[uid] = max(accuracy, found.get(uid, accuracy))
    return found


def mean_accuracy(contests: Sequence[Contest]) -> dict[int, float]:
    """The mean accuracy over contests."""
    rows: dict[int, list[float]] = {}
    for contest in contests:
        for uid, accuracy in contest.items():
            rows.setdefault(uid, []).append(accuracy)
    return {uid: float(np.mean(values)) for uid, values in rows.items()}


def contests_of(history: Sequence[Candidate]) -> list[dict[int, float]]:
    """All contests, in their order, from what candidates keep of them."""
    found: dict[int, dict[int, float]] = {}
    for c in history:
        for name, accuracy in c.evaluation.metrics.items():
            if name.startswith(CONTEST):
                found.setdefault(int(name.removeprefix(CONTEST)), {})[c.uid] = accuracy
    return [found[number] for number in sorted(found)]


def leader(history: Sequence[Candidate], ratings: Mapping[int, float]) -> Candidate | None:
    """The valid candidate with the highest rating, the first of equals; without any, the first valid one."""
    valid = [c for c in history if c.valid]
    rated = [c for c in valid if c.uid in ratings]
    return max(rated, key=lambda c: (ratings[c.uid], -c.uid)) if rated else next(iter(valid), None)


def elo_leader(history: Sequence[Candidate], *, start: float = START, k: float = K) -> Candidate | None:
    """Final rule: the highest Elo rating."""
    return leader(history, elo(contests_of(history), start=start, k=k))


def best_single(history: Sequence[Candidate]) -> Candidate | None:
    """Final rule: the highest accuracy in a single contest."""
    return leader(history, best_contest(contests_of(history)))


def naive(history: Sequence[Candidate]) -> Candidate | None:
    """Final rule: the seed program, whatever was found since; for comparisons."""
    return history[0] if history and history[0].valid else None


def settings_of(rule: Callable[..., Any]) -> dict[str, float]:
    """What a rule was given for `start` and `k`, or their defaults; nothing for a rule without them."""
    own = inspect.signature(rule).parameters
    return {name: own[name].default for name in ("start", "k") if name in own}


def elo_parent(pool: Pool, rng: np.random.Generator, *, best: int = 1, start: float = START, k: float = K) -> Candidate:
    """Parent rule for searches with contests: one of the `best` by Elo, evenly; anybody where nobody is rated."""
    ratings = elo(contests_of(pool.history), start=start, k=k)
    order = sorted((c for c in pool.members if c.uid in ratings), key=lambda c: (-ratings[c.uid], c.uid))
    chosen = order[:best] or list(pool.members)
    return chosen[int(rng.integers(len(chosen)))]
