"""Branches that are dropped while they are written, by how likely each is to end right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from jaxtyping import Float
from pydantic import NonNegativeInt, PositiveInt

from evolvent.core.errors import UserError
from evolvent.core.records import Request
from evolvent.core.step import Step
from evolvent.engine.base import Branch, Tree


class Quality(Protocol):
    """How likely each of some live branches is to end right: [branches], in [0, 1]; a part or a function.

    One that reads `branch.hidden` says so: `needs = ("hidden",)`. `evolvent.learn.head.Head` learns it.
    """

    def __call__(self, branches: Sequence[Branch], s: Step) -> np.ndarray: ...


@dataclass
class Prune:
    """Controller: looks at each branch once, after `stride` tokens, and drops it with probability 1 - survival.

        p_i = clip(kappa + delta + lambda (rho - q_i), low, high),   delta such that the group's mean p is kappa

    q is what `quality` says (ARRoL, arXiv 2603.24840). As printed, groups below rho lose their right answers; here
    lambda has the sign of mean q - rho, so that the share of right answers moves towards rho in every group.

    kappa   share that stays, on average; low and high are the bounds of each branch
    rho     share of right answers to aim at
    lam     how much q matters; 0 drops at random
    warmup  steps in which nobody is dropped

    Look-aheads and probes (steps with a label) drop nobody either. `info["quality"]` is q. Metric `balance`: mean of
    r (1 - r) over groups, r being the share of right answers among those that stayed.
    """

    quality: Quality
    stride: PositiveInt = 512
    kappa: float = 0.5
    rho: float = 0.5
    lam: float = 0.5
    low: float = 0.1
    high: float = 0.9
    warmup: NonNegativeInt = 20
    needs: ClassVar = ("tokens",)
    TINY: ClassVar = {"stride": 4}

    @property
    def hidden(self) -> bool:
        """Whether the engine has to give hidden states."""
        return "hidden" in getattr(self.quality, "needs", ())

    def check(self, system: object) -> None:
        """A rate that the bounds allow."""
        if not 0 <= self.low <= self.kappa <= self.high <= 1:
            raise UserError(
                "rollout.control.kappa must lie between .low and .high, and all three in [0, 1], "
                f"got {self.kappa}, {self.low} and {self.high}"
            )

    def begin(self, tree: Tree, requests: Sequence[Request], owner: Sequence[int], s: Step) -> None:
        """What was looked at before it was paused is not looked at again."""
        seen = {t.uid: t.info["quality"] for r in requests for t in r.resume if "quality" in t.info}
        for branch in tree.branches:
            if branch.uid in seen:
                branch.info["quality"] = seen[branch.uid]

    def between(self, tree: Tree, s: Step) -> None:
        """Look at those who have come to the detection length; group by group, see who stays."""
        due = [b for b in tree.live if "quality" not in b.info and b.mask.sum() >= self.stride]
        if self.hidden:  # a fork that was forced to end does so when states are asked for
            due = [b for b in due if b.hidden is not None]
        if due:
            for branch, q in zip(due, self.quality(due, s), strict=True):
                branch.info["quality"] = float(q)
        if s.t < self.warmup or s.label:
            return
        for key in dict.fromkeys(b.problem.key for b in due):
            group = [b for b in due if b.problem.key == key]
            chances = self.survival(np.array([b.info["quality"] for b in group]))
            for branch, chance in zip(group, chances, strict=True):
                if s.rng("prune", branch.uid).random() >= chance:
                    tree.stop(branch, "pruned")

    def survival(self, q: Float[np.ndarray, " group"]) -> Float[np.ndarray, " group"]:
        """Probability to stay, of each in a group; delta by bisection."""
        wanted = self.kappa + np.sign(q.mean() - self.rho) * self.lam * (self.rho - q)
        below, above = self.low - wanted.max(), self.high - wanted.min()  # everyone at `low`, everyone at `high`
        for _ in range(50):
            delta = (below + above) / 2
            if np.clip(wanted + delta, self.low, self.high).mean() > self.kappa:
                above = delta
            else:
                below = delta
        return np.clip(wanted + delta, self.low, self.high)

    def observe(self, s: Step) -> None:
        """Log how balanced the groups are."""
        right = [float(np.mean([t.outcome >= 1.0 for t in g.valid])) for g in s.groups if g.valid]
        s.log("balance", float(np.mean([r * (1 - r) for r in right] or [0.0])))
