"""Policy gradients: one class whose axes are the field's methods. See `objective` for what can be put on each axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from evolvent.core.errors import UserError
from evolvent.core.records import Batch
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.learn.fit import Fit, Prepared
from evolvent.learn.forward import MICRO_TOKENS, rescored
from evolvent.learn.objective import (
    Aggregate,
    Correction,
    Divergence,
    Ratio,
    Surrogate,
    Tokens,
    k3,
    pessimistic,
    sequence_mean,
    token_ratio,
    uncorrected,
)


@dataclass
class PolicyGradient(Fit):
    """aggregate(correction * surrogate(ratio, clip) + kl * divergence - entropy * H), by gradient descent.

    clip_low, clip_high  the ratio's band is [1 - clip_low, 1 + clip_high]
    kl, entropy          coefficients; 0 leaves the term, and its cost, out
    """

    ratio: Ratio = token_ratio
    clip_low: float = 0.2
    clip_high: float = 0.2
    surrogate: Surrogate = pessimistic
    correction: Correction = uncorrected
    aggregate: Aggregate = sequence_mean
    kl: float = 0.0
    divergence: Divergence = k3
    entropy: float = 0.0

    def setup(self, role: Role) -> None:
        """See `Fit.setup`; a KL term needs the start model as its reference."""
        super().setup(role)
        if self.kl:
            role.need_reference()

    def check(self, system: object) -> None:
        """Ranges of clip and coefficients."""
        super().check(system)
        if not 0 <= self.clip_low <= 1 or self.clip_high < 0:
            raise UserError(
                "learn.clip_low must be in [0, 1] and learn.clip_high at least 0, "
                f"got {self.clip_low} and {self.clip_high}"
            )
        if self.kl < 0:
            raise UserError(f"learn.kl must be at least 0, got {self.kl}")

    def wants(self) -> tuple[bool, bool]:
        """Entropies and reference only where their terms are on."""
        return self.entropy != 0, self.kl != 0

    def silent(self, batch: Batch) -> np.ndarray:
        """A row without advantage has a gradient only through the KL and entropy terms."""
        if any(self.wants()):
            return np.zeros(len(batch.rows), bool)
        return super().silent(batch)

    def prepare(self, batch: Batch, s: Step) -> Prepared:
        """With an off-policy correction, log-probs under the policy before the updates are recomputed."""
        view = super().prepare(batch, s)
        if self.correction is not uncorrected:
            view.old = rescored(self.role, view.batch.rows, self.micro_tokens or MICRO_TOKENS)
        return view

    def loss(self, k: Tokens) -> Tensor:
        """See the class."""
        ratio = self.ratio(k)
        self._watch(k, ratio)
        x = self.surrogate(k, ratio, self.clip_low, self.clip_high)
        if self.correction is not uncorrected:
            x = x * self.correction(k).detach()
        if self.kl:
            x = x + self.kl * self.divergence(k)
        if self.entropy:
            assert k.entropy is not None
            x = x - self.entropy * k.entropy
        return self.aggregate(x, k)

    @torch.no_grad()
    def _watch(self, k: Tokens, ratio: Tensor) -> None:
        """Shares of tokens and means over tokens: `clipped_high` (ratio above the band, advantage above 0),
        `clipped_low` (below both), `ratio_variance` (squared distance of the ratio to 1), `drift` (old - new log-prob)
        and `unlearned` (the same, of tokens with an advantage below 0; the others count as 0)."""
        high = (ratio > 1 + self.clip_high) & (k.advantage > 0) & k.mask
        low = (ratio < 1 - self.clip_low) & (k.advantage < 0) & k.mask
        spread = k.row_sum((ratio - 1).square())
        drift = (k.old - k.logprob) * k.mask
        wrong = drift * (k.advantage < 0)
        sums = [x.sum().float() for x in (k.mask, high, low, spread, drift, wrong)]
        names = ("tokens", "clipped_high", "clipped_low", "ratio_variance", "drift", "unlearned")
        self.count(**dict(zip(names, torch.stack(sums).tolist(), strict=True)))
