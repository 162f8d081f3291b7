"""Weighted votes: one answer for a group, where some votes count more than others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def elected(answers: Sequence[str | None], weights: Float[np.ndarray, " votes"] | None = None) -> str | None:
    """The answer whose votes weigh most (default: all the same), the first of equals; None is no vote."""
    votes: dict[str, float] = defaultdict(float)
    counts = np.ones(len(answers)) if weights is None else weights
    for answer, weight in zip(answers, counts.tolist(), strict=True):
        if answer is not None:
            votes[answer] += weight
    return max(votes, key=votes.__getitem__, default=None)


def ranks(scores: Float[np.ndarray, " votes"]) -> Float[np.ndarray, " votes"]:
    """The rank of each score, from 0 for the lowest to 1 for the highest; equal ones share the mean of their ranks.

    A weight that does not depend on how scores are scaled (ARRoL, arXiv 2603.24840).
    """
    below = (scores[:, None] > scores).sum(1)
    others = (scores[:, None] >= scores).sum(1) - 1
    return (below + others) / 2 / max(1, len(scores) - 1)
