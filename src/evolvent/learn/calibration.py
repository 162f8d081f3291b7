"""Scores as probabilities, by counting how often each has been right."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int


class Calibration:
    """Scores in [0, 1] as probabilities, from how often answers with such scores have been right.

        P(right | bin) ~ P(bin | right) P(right),   with 1 added to each count  (ARRoL, arXiv 2603.24840)

    counts  [2, bins]: wrong and right answers, by the bin of their score
    """

    def __init__(self, bins: int) -> None:
        self.counts = np.zeros((2, bins))

    def add(self, scores: Float[np.ndarray, " rows"], right: Bool[np.ndarray, " rows"]) -> None:
        """Count answers."""
        np.add.at(self.counts, (right.astype(int), self.bins(scores)), 1)

    def __call__(self, scores: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
        """P(right) of each; 1/2 as long as nothing is known."""
        total = self.counts.sum(1, keepdims=True)
        prior, likelihood = (total + 1) / (total.sum() + 2), (self.counts + 1) / (total + self.counts.shape[1])
        wrong, right = prior * likelihood
        return (right / (right + wrong))[self.bins(scores)]

    def bins(self, scores: Float[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
        """The bin of each; the last one has 1 as well."""
        count = self.counts.shape[1]
        return np.minimum((count * scores).astype(int), count - 1)
