"""The learner of the SIMULATED model (`engine.simulated`): its skills, by the exact policy gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Change
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.base import Actor
from evolvent.engine.simulated import SimulatedPolicy


@dataclass
class SimulatedLearning:
    """Learns skills by policy gradient: d log P / d skill is (right - P), times the row's weight, averaged over rows.

    lr        step size
    transfer  share of a category's step that its neighbours get too
    """

    lr: float = 1.0
    transfer: float = 0.0
    policy: SimulatedPolicy = field(init=False, repr=False)

    def setup(self, role: Role) -> None:
        """Only a simulated model learns like this."""
        if not isinstance(role.policy, SimulatedPolicy):
            raise UserError("learn=SimulatedLearning needs the simulated model; choose another learner")
        self.policy = role.policy

    def ask(self, s: Step) -> list[Actor]:
        """The policy as it is."""
        return [s.role.policy_actor()]

    def tell(self, batches: Sequence[Batch], s: Step) -> list[Change]:
        """One step of gradient ascent; one new version, if anything changed."""
        names = list(self.policy.skills)
        gradient = np.zeros(len(names))
        for batch in batches:
            for row, weight in zip(batch.rows, batch.weight, strict=True):
                slope = float(row.info["right"]) - row.info["chance"]
                mean = float(np.asarray(weight)[row.mask].mean()) if np.ndim(weight) else float(weight)
                place = names.index(self.policy.category(row.problem))
                gradient[place] += batch.coefficient * mean * slope / len(batch.rows)
        spread = gradient.copy()
        spread[1:] += self.transfer * gradient[:-1]
        spread[:-1] += self.transfer * gradient[1:]
        if not spread.any():
            return []
        before = self.policy.version
        for name, step in zip(names, spread.tolist(), strict=True):
            self.policy.skills[name] += self.lr * step
        return [Change("learn", before, self.policy.bump())]
