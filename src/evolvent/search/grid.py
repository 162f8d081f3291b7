"""MAP-Elites: the best member of every cell of a grid, so that what is different has a place of its own.

A dimension of the grid is a name - a measure of this file, or a metric that the evaluator gives - or a function of all
candidates, since some measures compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from evolvent.core.errors import unknown
from evolvent.core.ranges import Count
from evolvent.search.candidate import Candidate
from evolvent.search.magnitude import moderate

Measure = Callable[[Sequence[Candidate]], Float[np.ndarray, " candidates"]]
REFERENCES = 20


def map_elites(
    candidate: Candidate,
    members: list[Candidate],
    *,
    dimensions: tuple[str | Measure, ...] = ("complexity", "diversity"),
    bins: Count = 10,
) -> list[Candidate]:
    """One member a cell; who comes later needs a strictly better value.

        cell = min(bins - 1, floor(bins (x - min) / (max - min))) in each dimension, with 0.5 for x where max = min

    The grid of OpenEvolve (MAP-Elites, arXiv 1504.04909). There min and max are over all values ever seen, and who has
    a place keeps it when they move. Here they are over the members and the candidate, and everybody is placed anew: if
    two members now share a cell, the better one stays, the first of equals. Who lacks a metric has no place.
    """
    everybody = [*members, candidate]
    metrics = [d for d in dimensions if isinstance(d, str) and d in everybody[0].evaluation.metrics]
    if not candidate.valid or not all(name in candidate.evaluation.metrics for name in metrics):
        return members
    places = np.stack([placed(values_of(d, everybody), bins) for d in dimensions], axis=1)
    best: dict[tuple[int, ...], Candidate] = {}
    for c, place in zip(everybody, map(tuple, places.tolist()), strict=True):
        if place not in best or c.value > best[place].value:
            best[place] = c
    return sorted(best.values(), key=lambda c: c.uid)


def placed(values: Float[np.ndarray, " candidates"], bins: int) -> Int[np.ndarray, " candidates"]:
    """The bin of each value, after scaling to [0, 1]."""
    values = moderate(values)
    low, high = values.min(), values.max()
    scaled = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    return np.clip((scaled * bins).astype(int), 0, bins - 1)


def values_of(dimension: str | Measure, candidates: Sequence[Candidate]) -> Float[np.ndarray, " candidates"]:
    """Of each candidate in one dimension. A metric goes before a measure of the same name, as in OpenEvolve.

    `UserError` if the first candidate has neither.
    """
    if not isinstance(dimension, str):
        return dimension(candidates)
    metrics = candidates[0].evaluation.metrics
    if dimension in metrics:
        return np.array([c.evaluation.metrics[dimension] for c in candidates])
    if dimension in MEASURES:
        return MEASURES[dimension](candidates)
    choices = sorted({*MEASURES, *metrics})
    raise unknown("dimension", dimension, choices, f"the seed program can be placed by {', '.join(choices)}")


def complexity(candidates: Sequence[Candidate]) -> Float[np.ndarray, " candidates"]:
    """Length of the program, in characters."""
    return np.array([len(c.text) for c in candidates], float)


def diversity(candidates: Sequence[Candidate]) -> Float[np.ndarray, " candidates"]:
    """Mean distance of the program to those of a reference set of at most 20 that differ from it; 0 if none does.

        d(a, b) = 0.1 |difference in length| + 10 |in newlines| + 0.5 |characters that only one of them has|

    The reference set is grown greedily: next is who is farthest from the nearest one in it. OpenEvolve begins it with a
    random program, here it is the first one; there a program keeps the number that it got first.
    """
    looks = [looks_of(c.text) for c in candidates]
    nearest = np.full(len(looks), np.inf)
    total, count = np.zeros(len(looks)), np.zeros(len(looks))
    reference = 0
    for _ in range(min(REFERENCES, len(looks))):
        away = np.array([distance(look, looks[reference]) for look in looks])
        other = np.array([c.text != candidates[reference].text for c in candidates])
        total += np.where(other, away, 0.0)
        count += other
        nearest = np.minimum(nearest, away)
        nearest[reference] = -np.inf  # it is in the set
        reference = int(nearest.argmax())
    return total / np.maximum(count, 1)


def values(candidates: Sequence[Candidate]) -> Float[np.ndarray, " candidates"]:
    """What the search is after: a cell for each height that was reached."""
    return np.array([c.value for c in candidates])


Looks = tuple[int, int, frozenset[str]]


@lru_cache(10_000)
def looks_of(text: str) -> Looks:
    """Length, newlines and characters of a program."""
    return len(text), text.count("\n"), frozenset(text)


def distance(a: Looks, b: Looks) -> float:
    """OpenEvolve's fast diversity of two programs."""
    return 0.1 * abs(a[0] - b[0]) + 10 * abs(a[1] - b[1]) + 0.5 * len(a[2] ^ b[2])


MEASURES: dict[str, Measure] = {"complexity": complexity, "diversity": diversity, "value": values}
