"""The task's own verifier as the judge; its failures become errors of the trajectory, never rewards."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evolvent.core.errors import VerifierError
from evolvent.core.ledger import Ledger
from evolvent.core.records import Group, Trajectory
from evolvent.core.step import Step
from evolvent.tasks.base import Attempt, Score, score_all


@dataclass
class Verify:
    """Reward `outcome` from the verifier, plus the task's named shaping, each times its weight in `shaping`."""

    shaping: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge every trajectory that has no error yet."""
        rows = [t for g in groups for t in g.trajectories if t.error is None]
        for t, score in zip(rows, verify(s.role.task, rows, s.role.ledger), strict=True):
            if isinstance(score, VerifierError):
                t.error = f"verifier: {score}"
                continue
            t.reward("outcome", score.outcome, s.role.task.name)
            t.info["answer"] = score.answer
            for name, value in score.shaping.items():
                t.info[f"shaping/{name}"] = value
                if name in self.shaping:
                    t.reward(name, self.shaping[name] * value, s.role.task.name)


def verify(task: Any, rows: Sequence[Trajectory], ledger: Ledger) -> list[Score | VerifierError]:
    """Scores of trajectories, charged to the ledger; a failure of the verifier comes back in the score's place."""
    start = time.perf_counter()
    scores = score_all(task, [Attempt(t.problem, t.completion, t.info) for t in rows])
    ledger.charge(verifier_calls=len(rows), verifier_seconds=time.perf_counter() - start)
    return scores
