"""Policy lag: what is learned from was sampled some steps ago, as where sampler and learner run side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Batch
from evolvent.core.step import Credit, Step


@dataclass
class Lag:
    """Around credit: hands over the batches of `steps` steps ago; nothing until there are any. With 0 it does nothing.

    With one update a step, rows are then `steps` updates old: the pipeline of a sampler that is as far ahead as it may
    be (PipelineRL, arXiv 2509.19128). Their log-probs stay those of the policy that sampled them.

    Metric: `lag`, how many versions of the policy lie between sampling and learning, mean over the rows.
    """

    inner: Credit
    steps: int = 16
    waiting: list[list[Batch]] = field(default_factory=list, init=False)

    def __call__(self, s: Step) -> list[Batch]:
        """Store what is new, hand over what is due."""
        self.waiting.append(self.inner(s))
        due = self.waiting.pop(0) if len(self.waiting) > self.steps else []
        if ages := [s.role.policy.version - t.version for b in due for t in b.rows]:
            s.log("lag", float(np.mean(ages)))
        return due

    def check(self, system: object) -> None:
        """Nothing can be learned from before it was sampled."""
        if self.steps < 0:
            raise UserError(f"credit.lag.steps must be at least 0, got {self.steps}; 0 learns from the step's own rows")

    def state_dict(self) -> dict[str, Any]:
        """What waits."""
        return {"waiting": list(self.waiting)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.waiting = list(state["waiting"])
