"""Token axes of policy-gradient objectives: ratio, surrogate, off-policy correction, KL, aggregation.

Every axis is a function of one view, `Tokens`. Sums run over a whole minibatch that may come in several
micro-batches, so aggregations divide by the minibatch's `totals`, never by what happens to be in the view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

PerToken = Float[Tensor, "rows time"]
PerRow = Float[Tensor, " rows"]


@dataclass(frozen=True)
class Totals:
    """Of the whole minibatch: rows, tokens that the policy wrote, groups, and the most tokens a row may have."""

    rows: int
    tokens: int
    groups: int
    limit: int


@dataclass
class Tokens:
    """What an objective sees of some rows. All streams are zero where the policy did not write.

    logprob    under the policy being trained, with gradient
    old        under the policy before the step's updates
    sampled    under the sampler; the same as `old` unless a correction asked for both
    advantage  per token; a row's own value repeated, unless the batch gave one for each token
    mask       True where the policy wrote
    reference  under the start model, where the objective has a KL term
    entropy    of the policy, where the objective has an entropy term
    columns    the batch's per-row extras
    """

    logprob: PerToken
    old: PerToken
    sampled: PerToken
    advantage: PerToken
    mask: Bool[Tensor, "rows time"]
    columns: Mapping[str, Shaped[Tensor, " rows"]]
    totals: Totals
    t: int = 0
    reference: PerToken | None = None
    entropy: PerToken | None = None

    def __post_init__(self) -> None:
        """Blank what is not masked, so that nothing there, nan included, reaches a loss or its gradient."""
        blank = ~self.mask
        self.logprob, self.old, self.sampled, self.advantage = (
            x.masked_fill(blank, 0.0) for x in (self.logprob, self.old, self.sampled, self.advantage)
        )
        self.reference = None if self.reference is None else self.reference.masked_fill(blank, 0.0)
        self.entropy = None if self.entropy is None else self.entropy.masked_fill(blank, 0.0)

    @property
    def length(self) -> PerRow:
        """Tokens that the policy wrote in each row, at least 1."""
        return self.mask.sum(1).clamp(min=1).to(self.logprob.dtype)

    def row_sum(self, x: PerToken) -> PerRow:
        """Sum over the tokens of each row that the policy wrote."""
        return x.masked_fill(~self.mask, 0.0).sum(1)


# --- ratio ---------------------------------------------------------------------------------------------------------


def token_ratio(k: Tokens) -> PerToken:
    """pi / pi_old of each token (PPO, GRPO)."""
    return torch.exp(k.logprob - k.old)


def sequence_ratio(k: Tokens) -> PerToken:
    """Geometric mean of the token ratios of a row, for each of its tokens (GSPO, arXiv 2507.18071, eq. 7)."""
    mean = k.row_sum(k.logprob - k.old) / k.length
    return torch.exp(mean)[:, None].expand_as(k.logprob)


def prefix_ratio(k: Tokens) -> PerToken:
    """Product of the ratios up to each token: the exact importance weight of what led there."""
    return torch.exp((k.logprob - k.old).cumsum(1))


# --- surrogate: the loss of each token, before aggregation ---------------------------------------------------------


def pessimistic(k: Tokens, ratio: PerToken, low: float, high: float) -> PerToken:
    """-min(r A, clip(r, 1 - low, 1 + high) A) (PPO, arXiv 1707.06347, eq. 7)."""
    return -torch.minimum(ratio * k.advantage, ratio.clamp(1 - low, 1 + high) * k.advantage)


def unclipped(k: Tokens, ratio: PerToken, low: float, high: float) -> PerToken:
    """-r A: REINFORCE on fresh samples, importance sampling on others."""
    return -ratio * k.advantage


def dual_clipped(k: Tokens, ratio: PerToken, low: float, high: float, *, cap: float = 3.0) -> PerToken:
    """As `pessimistic`, but a negative advantage counts at most `cap` times (dual-clip PPO, arXiv 1912.09729)."""
    loss = pessimistic(k, ratio, low, high)
    return torch.where(k.advantage < 0, loss.clamp(max=-cap * k.advantage), loss)


def detached(k: Tokens, ratio: PerToken, low: float, high: float) -> PerToken:
    """-sg(clip(r, 1 - low, 1 + high)) A log pi (CISPO, arXiv 2506.13585, eq. 4): no token loses its gradient."""
    return -ratio.clamp(1 - low, 1 + high).detach() * k.advantage * k.logprob


def geometric(k: Tokens, ratio: PerToken, low: float, high: float) -> PerToken:
    """-A times the geometric mean of a row's clipped ratios (GMPO, arXiv 2507.20673, eq. 4), for each of its tokens.

    The band is [exp(-low), exp(high)] here, 0.4 both ways in the paper, and clips only where that makes the
    objective smaller. Advantages must be equal within a row; aggregate with `sequence_mean`.
    """
    log_ratio = torch.log(ratio)
    clipped = log_ratio.clamp(-low, high)
    log_ratio = torch.where(k.advantage > 0, torch.minimum(log_ratio, clipped), torch.maximum(log_ratio, clipped))
    return -torch.exp(k.row_sum(log_ratio) / k.length)[:, None] * k.advantage


def likelihood(k: Tokens, ratio: PerToken, low: float, high: float) -> PerToken:
    """-A log pi: weighted maximum likelihood."""
    return -k.advantage * k.logprob


# --- off-policy correction: a weight without gradient --------------------------------------------------------------


def uncorrected(k: Tokens) -> PerToken:
    """One: sampler and trainer agree."""
    return torch.ones_like(k.old)


def truncated(k: Tokens, *, cap: float = 2.0) -> PerToken:
    """min(pi_old / pi_sampler, cap) of each token (truncated importance sampling)."""
    return torch.exp(k.old - k.sampled).clamp(max=cap)


def masked(k: Tokens, *, low: float = 0.5, high: float = 5.0) -> PerToken:
    """pi_old / pi_sampler where it lies in [low, high], else 0 (IcePop)."""
    ratio = torch.exp(k.old - k.sampled)
    return ratio * ((ratio >= low) & (ratio <= high))


# --- KL to the reference -------------------------------------------------------------------------------------------


def k1(k: Tokens) -> PerToken:
    """log pi - log ref: an unbiased value of high variance, whose expected gradient is zero on fresh samples."""
    assert k.reference is not None
    return k.logprob - k.reference


def k2(k: Tokens) -> PerToken:
    """(log pi - log ref)^2 / 2: low variance, and its gradient on fresh samples is that of the KL."""
    assert k.reference is not None
    return (k.logprob - k.reference).square() / 2


def k3(k: Tokens) -> PerToken:
    """ref / pi - log(ref / pi) - 1: an unbiased value, never negative (GRPO, arXiv 2402.03300, eq. 4). On fresh
    samples its gradient is that of KL(ref || pi)."""
    assert k.reference is not None
    difference = k.reference - k.logprob
    return torch.exp(difference) - difference - 1


def weighted_k3(k: Tokens) -> PerToken:
    """`k3` times the token's ratio: also its gradient is that of the KL (DeepSeek-V3.2, arXiv 2512.02556)."""
    return token_ratio(k) * k3(k)


# --- aggregation ---------------------------------------------------------------------------------------------------


def token_mean(x: PerToken, k: Tokens) -> Float[Tensor, ""]:
    """Mean over all tokens of the minibatch (DAPO, arXiv 2503.14476)."""
    return k.row_sum(x).sum() / max(1, k.totals.tokens)


def sequence_mean(x: PerToken, k: Tokens) -> Float[Tensor, ""]:
    """Mean over a row's tokens, then over rows (GRPO, arXiv 2402.03300, eq. 3)."""
    return (k.row_sum(x) / k.length).sum() / k.totals.rows


def constant_length(x: PerToken, k: Tokens) -> Float[Tensor, ""]:
    """Sum over tokens, divided by rows and the most tokens a row may have: no length bias (Dr. GRPO, 2503.20783)."""
    return k.row_sum(x).sum() / (k.totals.rows * k.totals.limit)


def sequence_sum(x: PerToken, k: Tokens) -> Float[Tensor, ""]:
    """Sum over a row's tokens, mean over rows: the plain policy gradient of whole sequences."""
    return k.row_sum(x).sum() / k.totals.rows


Ratio = Callable[[Tokens], PerToken]
Surrogate = Callable[[Tokens, PerToken, float, float], PerToken]
Correction = Callable[[Tokens], PerToken]
Divergence = Callable[[Tokens], PerToken]
Aggregate = Callable[[PerToken, Tokens], Float[Tensor, ""]]
