"""Clip-cov: no gradient for a few of the tokens whose log-prob and advantage rise together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Change, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Learn, Step
from evolvent.engine.base import Actor
from evolvent.learn.forward import rescored


@dataclass
class ClipCov:
    """Among the tokens with low < (log pi - mean log pi)(A - mean A) < high, a random share loses its gradient.

    Such tokens drive entropy down (arXiv 2505.22617). At most `ratio` of all tokens of a batch are hit, and
    at least one if any is in the band. Log-probs are those before the step's updates, for the whole batch, so that
    neither micro-batches nor minibatches matter; the released code takes them of each micro-batch as it comes.
    """

    inner: Learn
    ratio: float = 0.02
    low: float = 1.0
    high: float = 40.0

    def setup(self, role: Role) -> None:
        """Remember the role."""
        self.role = role

    def check(self, system: object) -> None:
        """Shares and bounds in range."""
        if not 0 <= self.ratio <= 1 or not self.low < self.high:
            raise UserError(
                "learn.clip_cov.ratio must be in [0, 1] and .low below .high, "
                f"got {self.ratio}, {self.low} and {self.high}"
            )

    def ask(self, s: Step) -> list[Actor]:
        """The actors of the inner learner."""
        return self.inner.ask(s)

    def tell(self, batches: Sequence[Batch], s: Step) -> list[Change]:
        """Blank the chosen tokens' advantages, then learn. Metric `clip_cov`: the share of tokens that was hit."""
        found = [self.clipped(b, s.rng("clip-cov", i)) if b.rows else (b, 0, 0) for i, b in enumerate(batches)]
        s.log("clip_cov", sum(hit for _, hit, _ in found) / max(1, sum(tokens for _, _, tokens in found)))
        return self.inner.tell([batch for batch, _, _ in found], s)

    def clipped(self, batch: Batch, rng: np.random.Generator) -> tuple[Batch, int, int]:
        """The batch with weights for each token, how many tokens were hit, and how many there are."""
        masks = [t.mask & (np.arange(len(t.mask)) > 0) for t in batch.rows]
        weights = [
            np.broadcast_to(np.asarray(w, np.float32), m.shape).copy() for w, m in zip(batch.weight, masks, strict=True)
        ]
        logprob = np.concatenate([x[m] for x, m in zip(self.logprobs(batch.rows), masks, strict=True)])
        advantage = np.concatenate([w[m] for w, m in zip(weights, masks, strict=True)])
        chosen = choose(logprob, advantage, self.ratio, self.low, self.high, rng)
        if not len(chosen):
            return batch, 0, len(logprob)
        advantage[chosen] = 0.0
        ends = np.cumsum([m.sum() for m in masks])[:-1]
        for w, m, values in zip(weights, masks, np.split(advantage, ends), strict=True):
            w[m] = values
        return Batch(batch.rows, weights, batch.name, batch.coefficient, batch.columns), len(chosen), len(logprob)

    def logprobs(self, rows: Sequence[Trajectory]) -> list[np.ndarray]:
        """Log-probs under the present policy: as sampled where it was the sampler, else from a forward pass."""
        found = [t.logprob for t in rows]
        stale = [i for i, t in enumerate(rows) if t.version != self.role.policy.version]
        if not stale:
            return found
        for i, values in zip(stale, rescored(self.role, [rows[i] for i in stale]), strict=True):
            found[i] = values
        return found


def choose(
    logprob: np.ndarray, advantage: np.ndarray, ratio: float, low: float, high: float, rng: np.random.Generator
) -> np.ndarray:
    """Places of the tokens that are hit, from flat arrays over all tokens of a batch."""
    if not ratio or not len(logprob):
        return np.zeros(0, int)
    covariance = (logprob - logprob.mean(dtype=np.float64)) * (advantage - advantage.mean(dtype=np.float64))
    band = np.flatnonzero((covariance > low) & (covariance < high))
    return np.sort(rng.permutation(band)[: max(1, int(ratio * len(logprob)))])
