"""Maximum likelihood that also learns from wrong answers, through the policy that they imply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import NonNegativeFloat, PositiveFloat

from evolvent.core.errors import UserError
from evolvent.core.records import Batch
from evolvent.core.role import reads_outcome
from evolvent.core.step import Step
from evolvent.learn.credit import to_batch
from evolvent.learn.objective import PerToken, Tokens

# --- weight of a problem, from its success rate r --------------------------------------------------------------------


def equal(rate: float) -> float:
    """1."""
    return 1.0


def failures(rate: float) -> float:
    """1 - r: on fresh samples the gradient is that of Dr. GRPO."""
    return 1 - rate


def odds(rate: float) -> float:
    """sqrt((1 - r) / r): on fresh samples the gradient is that of GRPO."""
    return ((1 - rate) / rate) ** 0.5


PromptWeight = Callable[[float], float]


@reads_outcome
@dataclass
class RatedCredit:
    """Credit of NFT (arXiv 2505.18116): groups with both right and wrong answers, and their success rate r.

    The weight of a right answer is w(r), that of a wrong one -w(r) r / (1 - r): the advantage that the first update
    amounts to. Column `rate` is r, clamped to [low, high] (the clamp is the released code's). Only the verifier's
    outcome counts; shaping does not.
    """

    weight: PromptWeight = failures
    low: float = 0.02
    high: float = 0.98

    def check(self, system: object) -> None:
        """Bounds of the rate in order."""
        if not 0 < self.low <= self.high < 1:
            raise UserError(f"credit.low and credit.high must be in (0, 1), got {self.low} and {self.high}")

    def __call__(self, s: Step) -> list[Batch]:
        """One batch `fresh` of the groups with a signal."""
        judged = [(g, np.array([t.outcome >= 1.0 for t in g.valid])) for g in s.groups]
        judged = [(g, right) for g, right in judged if right.any() and not right.all()]
        if not judged:
            return []
        rates = [float(np.clip(right.mean(), self.low, self.high)) for _, right in judged]
        weights = [
            self.weight(rate) * np.where(right, 1.0, -rate / (1 - rate))
            for rate, (_, right) in zip(rates, judged, strict=True)
        ]
        batch = to_batch([g for g, _ in judged], weights)
        batch.columns["rate"] = np.array(rates, np.float32)[batch.columns["group"]]
        return [batch]


def negative_aware(
    k: Tokens, ratio: PerToken, low: float, high: float, *, eps: PositiveFloat = 1.0, neg_weight: NonNegativeFloat = 1.0
) -> PerToken:
    """Right answers: -w log rho. Wrong ones: -w log max_v((1 - r rho) / (1 - r), eps) (NFT, arXiv 2505.18116).

    If pi_old = r pi_plus + (1 - r) pi_minus, the second is the likelihood of wrong answers under pi_minus. max_v clamps
    the value and lets the gradient pass. `neg_weight` 0 is rejection fine-tuning. Needs the column `rate`.
    """
    if "rate" not in k.columns:
        raise UserError(
            "negative_aware needs every problem's success rate, and the batch has no column `rate`; use the credit of "
            "the recipe nft, and no replay"
        )
    rate = k.columns["rate"][:, None].to(ratio.dtype)
    implied = (1 - rate * ratio) / (1 - rate)
    held = implied + (implied.clamp(min=eps) - implied).detach()
    weight = k.advantage.abs() * (1 - rate) / rate  # w(r), from the weight of a wrong answer
    wrong = -neg_weight * weight * torch.log(held)
    return torch.where(k.advantage > 0, -k.advantage * torch.log(ratio), wrong)
