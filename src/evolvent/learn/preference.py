"""Preference learning: pairs of a chosen and a rejected answer to one problem, and the losses of DPO's kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Group, Trajectory
from evolvent.core.role import Role, reads_outcome
from evolvent.core.step import Step
from evolvent.learn.fit import Fit
from evolvent.learn.objective import PerRow, Tokens

PerPair = Float[Tensor, " pairs"]
Pair = tuple[Trajectory, Trajectory]  # chosen, rejected


# --- pairs of a group ----------------------------------------------------------------------------------------------


def best_and_worst(group: Group) -> list[Pair]:
    """The highest and the lowest score, the first of equals; no pair where all scores are equal."""
    rows = group.valid
    if not rows:
        return []
    chosen, rejected = max(rows, key=lambda t: t.score), min(rows, key=lambda t: t.score)
    return [(chosen, rejected)] if chosen.score > rejected.score else []


@reads_outcome
def right_and_wrong(group: Group) -> list[Pair]:
    """As many pairs of a right and a wrong answer as there are, each answer in one pair at most."""
    right = [t for t in group.valid if t.outcome >= 1.0]
    wrong = [t for t in group.valid if t.outcome < 1.0]
    return list(zip(right, wrong, strict=False))


ChoosePairs = Callable[[Group], list[Pair]]


@dataclass
class Pairs:
    """Credit of preference learning: one batch `pairs`, weight +1 for chosen and -1 for rejected, column `pair`."""

    choose: ChoosePairs = best_and_worst

    def __call__(self, s: Step) -> list[Batch]:
        """The pairs that `choose` makes of each group."""
        pairs = [pair for g in s.groups for pair in self.choose(g)]
        s.log("pairs", len(pairs))
        return [pair_batch(pairs)] if pairs else []


def pair_batch(pairs: list[Pair]) -> Batch:
    """Pairs as a batch of twice as many rows, chosen before rejected."""
    rows = [t for pair in pairs for t in pair]
    weight = np.tile(np.array([1.0, -1.0], np.float32), len(pairs))
    return Batch(rows, weight, name="pairs", columns={"pair": np.repeat(np.arange(len(pairs)), 2)})


# --- loss of a pair, from its margin: log-ratio to the reference of the chosen row less that of the rejected one ------


def sigmoid(margin: PerPair, beta: float) -> PerPair:
    """-log sigmoid(beta m) (DPO, arXiv 2305.18290, eq. 7)."""
    return -torch.nn.functional.logsigmoid(beta * margin)


def hinge(margin: PerPair, beta: float) -> PerPair:
    """max(0, 1 - beta m) (SLiC, arXiv 2305.10425; with a reference, as in RSO, arXiv 2309.06657)."""
    return torch.relu(1 - beta * margin)


def ipo(margin: PerPair, beta: float) -> PerPair:
    """(m - 1 / (2 beta))^2 (IPO, arXiv 2310.12036, eq. 17). The margin is a sum over tokens, as in the paper."""
    return (margin - 1 / (2 * beta)).square()


PairLoss = Callable[[Tensor, float], Tensor]


@dataclass
class Preference(Fit):
    """Mean over pairs of form(margin, beta); the reference is the start model. Pairs are never parted."""

    beta: float = 0.1
    form: PairLoss = sigmoid

    def setup(self, role: Role) -> None:
        """See `Fit.setup`; keeps the start model."""
        super().setup(role)
        role.need_reference()

    def check(self, system: object) -> None:
        """beta must be positive."""
        super().check(system)
        if not self.beta > 0:
            raise UserError(f"learn.beta must be above 0, got {self.beta}; DPO uses 0.1")

    def wants(self) -> tuple[bool, bool]:
        """No entropies; the reference always."""
        return False, True

    def units(self, batch: Batch) -> list[np.ndarray]:
        """The two rows of each pair."""
        if "pair" not in batch.columns:
            raise UserError(
                f"the batch `{batch.name}` has no pairs to prefer one of; use a credit that makes pairs, as in the "
                "recipe dpo"
            )
        number = batch.columns["pair"]
        return [np.flatnonzero(number == i) for i in np.unique(number)]

    def loss(self, k: Tokens) -> Tensor:
        """See the class."""
        chosen, rejected = split(k)
        margin = chosen - rejected
        with torch.no_grad():
            self.count(
                tokens=float(len(margin)), margin=float(margin.sum()), ranked=float((margin > 0).sum())
            )  # shares of pairs, not of tokens
        return self.form(margin, self.beta).sum() / (k.totals.rows / 2)


def split(k: Tokens) -> tuple[PerRow, PerRow]:
    """Log-ratios to the reference of chosen and of rejected rows, in the same order of pairs."""
    assert k.reference is not None
    ratio = k.row_sum(k.logprob - k.reference)
    sign = k.advantage.sum(1)
    order = torch.argsort(k.columns["pair"], stable=True)
    return ratio[order][sign[order] > 0], ratio[order][sign[order] < 0]
