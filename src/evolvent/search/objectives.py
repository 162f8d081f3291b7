"""Several objectives of candidates at once, as numbers of which more is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from evolvent.core.errors import unknown
from evolvent.search.candidate import Candidate
from evolvent.search.magnitude import moderate

ACCURATE_AND_SMALL = ("value", "-size")


def named(candidate: Candidate) -> Mapping[str, float]:
    """A candidate's numbers by name: its metrics, `value`, and `size`, which is the metric `parameters`, or else the
    characters of the program."""
    metrics = candidate.evaluation.metrics
    size = metrics.get("parameters", float(sum(map(len, candidate.payload.values()))))
    return {"size": size, **metrics, "value": candidate.value}


def scores(candidate: Candidate, metrics: Sequence[str]) -> Float[np.ndarray, " metrics"]:
    """A candidate's metrics, those with a minus before their name turned around; -inf for what it has not got."""
    found = named(candidate)
    signs = [(-1.0, name[1:]) if name.startswith("-") else (1.0, name) for name in metrics]
    return np.array([sign * found[name] if name in found else -np.inf for sign, name in signs])


def objectives(candidates: Sequence[Candidate], metrics: Sequence[str]) -> Float[np.ndarray, "candidates metrics"]:
    """The scores of valid candidates, from 0, the worst of them, to 1, the best; all 0 where they are alike.

    Who lacks a metric is as the worst there. `UserError` for a metric that nobody has.
    """
    rows = np.array([scores(c, metrics) for c in candidates]).reshape(len(candidates), len(metrics))
    for place, name in enumerate(metrics):
        if len(rows) and not np.isfinite(rows[:, place]).any():
            choices = sorted(named(candidates[0]))
            raise unknown("metric", name.removeprefix("-"), choices, f"there are {', '.join(choices)}")
    rows = moderate(np.where(np.isfinite(rows), rows, np.inf))
    low = rows.min(0, initial=np.inf)
    rows = np.where(np.isfinite(rows), rows, low)
    span = rows.max(0, initial=-np.inf) - low
    return (rows - low) / np.where(span > 0, span, 1.0)


def views_by(candidates: Sequence[Candidate], metrics: Sequence[str]) -> list[list[Candidate]]:
    """For each metric that is known yet, the candidates that have it, with their score in the place of the value.

    `UserError` if none of them is known.
    """
    views = []
    for name in metrics:
        pairs = [(c, float(scores(c, [name])[0])) for c in candidates]
        views.append([replace(c, evaluation=replace(c.evaluation, value=x)) for c, x in pairs if np.isfinite(x)])
    if not any(views):
        choices = sorted(named(candidates[0]))
        raise unknown("metric", metrics[0] if metrics else "", choices, f"there are {', '.join(choices)}")
    return [view for view in views if view]


def dominates(points: Float[np.ndarray, "points metrics"]) -> Bool[np.ndarray, "points points"]:
    """Whether the first is at least as good as the second in everything, and better in something."""
    a, b = points[:, None], points[None]
    return np.asarray((a >= b).all(-1) & (a > b).any(-1))


def undominated(points: Float[np.ndarray, "points metrics"]) -> Bool[np.ndarray, " points"]:
    """Whom no other point dominates; -inf is worse than any number.

    Of the points that differ, in falling lexicographic order, the first that is left is dominated by none: whoever
    dominates a point comes before it, and takes it away. So the time goes with the size of the front.
    """
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    free, left = np.zeros(len(distinct), bool), np.arange(len(distinct))[::-1]
    while len(left):
        free[left[0]] = True
        left = left[1:][~(distinct[left[1:]] <= distinct[left[0]]).all(1)]
    return free[place.reshape(-1)]
