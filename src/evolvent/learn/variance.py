"""Learning from stale samples with less variance: sequence ratios, what they leave of a batch, and a baseline for them.

arXiv 2602.17616 (VCPO).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evolvent.core.errors import UserError
from evolvent.core.records import Batch
from evolvent.core.step import Step
from evolvent.learn.fit import Prepared
from evolvent.learn.objective import PerToken, Tokens, Totals
from evolvent.learn.policy_gradient import PolicyGradient

FINITE = 40.0  # logarithm of the largest ratio: its square is a float32
EPS = 1e-8


def whole_ratio(k: Tokens) -> PerToken:
    """w = pi(tau) / mu(tau): the product of a row's token ratios to the sampler, for each of its tokens."""
    ratio = torch.exp(k.row_sum(k.logprob - k.sampled).clamp(-FINITE, FINITE))
    return ratio[:, None].expand_as(k.logprob)


def effective_share(w: Float[Tensor, " rows"]) -> float:
    """(sum w)^2 / (B sum w^2): the effective sample size as a share of the B rows."""
    return float(w.sum().square() / (len(w) * w.square().sum()))


def least_variance(
    reward: Float[Tensor, " rows"],
    w: Float[Tensor, " rows"],
    norm: Float[Tensor, " rows"],
    group: Int[Tensor, " rows"],
) -> Float[Tensor, " rows"]:
    """OPOB: each row's group mean of the reward, weighted by w^2 |grad log pi(tau)|^2; `norm` is the squared norm."""
    same = (group[:, None] == group) * w.square() * norm
    return same @ reward / (same.sum(1) + EPS)


@dataclass
class VarianceControlled(PolicyGradient):
    """`PolicyGradient` for samples of earlier policies: fewer effective samples take a smaller step.

    opob   subtracts the baseline of least variance from the advantages of a group; False leaves them as they are.
           Credit may have subtracted a constant of the group, as the mean: what comes out is the same.
    power  learning rate * min(1, share / base)^power, per minibatch: 0.5 for AdamW, 1 is the linear rule, 0 none
    base   effective share of the rows at which a step is taken whole

    Groups stay whole in a minibatch. Norms take a forward and backward pass of each row alone, charged as trained,
    where rewards differ within its group.
    Metrics, of the last minibatch: `learn/ess` (the share) and `learn/rate` (the learning rate of its update).
    """

    opob: bool = True
    power: float = 0.5
    base: float = 1.0
    ratios: list[Tensor] = field(default_factory=list, init=False)  # of the minibatch
    TINY: ClassVar = {"lr": 3e-4, "warmup": 20}

    def check(self, system: object) -> None:
        """Ranges of the exponent and the base."""
        super().check(system)
        if self.power < 0 or not self.base > 0:
            raise UserError(f"learn.power must be at least 0 and learn.base above 0, got {self.power} and {self.base}")

    def silent(self, batch: Batch) -> np.ndarray:
        """No row is: one without advantage counts in the sample size, too."""
        return np.zeros(len(batch.rows), bool)

    def units(self, batch: Batch) -> list[np.ndarray]:
        """The rows of each group."""
        number = batch.columns.get("group", np.arange(len(batch.rows)))
        return [np.flatnonzero(number == g) for g in np.unique(number)]

    def view(self, view: Prepared, rows: np.ndarray, totals: Totals, s: Step) -> Tokens:
        """See `Fit.view`; with the ratios noted, and the baseline subtracted where the batch has groups."""
        alone = super().view
        k = alone(view, rows, totals, s)
        w = whole_ratio(k)[:, 0].detach().double()
        self.ratios.append(w)
        if not self.opob or "group" not in k.columns:
            return k
        reward, group = (k.row_sum(k.advantage) / k.length).double(), k.columns["group"]
        norm = torch.ones_like(reward)
        for i in range(len(rows)):
            if (reward[group == group[i]] != reward[i]).any():  # with equal rewards any weights give the same baseline
                norm[i] = self._norm(alone(view, rows[i : i + 1], totals, s))
                self.role.ledger.charge(trained=int(view.lengths[rows[i]]))
        baseline = least_variance(reward, w, norm, group)
        return replace(k, advantage=k.advantage - baseline[:, None].to(k.advantage.dtype))

    def _norm(self, k: Tokens) -> Tensor:
        """|grad log pi(tau)|^2 of one row."""
        parameters = list(self.parameters.values())
        found = torch.autograd.grad(k.row_sum(k.logprob).sum(), parameters, allow_unused=True)
        return torch.stack([g.double().square().sum() for g in found if g is not None]).sum()

    def _update(self, views: Sequence[Prepared], epoch: int, part: int, s: Step) -> bool:
        """See `Fit`; ratios are those of one minibatch."""
        self.ratios = []
        return super()._update(list(views), epoch, part, s)

    def rate(self, s: Step) -> float:
        """See `Fit.rate`; less where few samples are effective."""
        share = effective_share(torch.cat(self.ratios))
        rate = super().rate(s) * min(1.0, share / self.base) ** self.power
        s.log("learn/ess", share)
        s.log("learn/rate", rate)
        return rate
