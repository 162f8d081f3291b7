"""Maximum likelihood on chosen trajectories: supervised and rejection-sampling fine-tuning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from evolvent.core.records import Batch, Group, Trajectory
from evolvent.core.role import reads_outcome
from evolvent.core.step import Step
from evolvent.learn.fit import Fit
from evolvent.learn.objective import Aggregate, Tokens, token_mean


@reads_outcome
def correct(group: Group) -> list[Trajectory]:
    """All trajectories with full outcome."""
    return [t for t in group.valid if t.outcome >= 1.0]


@reads_outcome
def best(group: Group) -> list[Trajectory]:
    """The one with the highest score, the first of equals; none if even that one has outcome 0."""
    top = max(group.valid, key=lambda t: t.score, default=None)
    return [top] if top is not None and top.outcome > 0 else []


Choose = Callable[[Group], list[Trajectory]]


@dataclass
class Imitate:
    """Credit of supervised learning: one batch `chosen` of the trajectories to imitate, each token with weight 1.

    Demonstrations carry the weights of their tokens in `info["weights"]` (see `rollout.demonstrate`).
    """

    choose: Choose = correct

    def __call__(self, s: Step) -> list[Batch]:
        """The trajectories that `choose` picks from each group."""
        rows = [t for g in s.groups for t in self.choose(g)]
        s.log("chosen", len(rows))
        weight = [t.info.get("weights", np.ones(len(t.tokens), np.float32)) for t in rows]
        return [Batch(rows, weight, name="chosen")] if rows else []


@dataclass
class Supervised(Fit):
    """loss = aggregate(-weight * log pi). `aggregate` is the mean over all tokens, or any other of `objective`."""

    aggregate: Aggregate = token_mean

    def loss(self, k: Tokens) -> Tensor:
        """See the class."""
        self.count(tokens=float(k.mask.sum()), nll=float(-k.logprob.detach().sum()))
        return self.aggregate(-k.advantage * k.logprob, k)
