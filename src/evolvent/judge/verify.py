"""The task's own verifier as the judge; its failures become errors of the trajectory, never rewards."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evolvent.core.errors import VerifierError, unknown
from evolvent.core.ledger import Ledger
from evolvent.core.records import Group, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.tasks.base import Attempt, Score, distinct, score_all

PROBED = 16  # problems that a verifier is asked about before a run that wants shaping


@dataclass
class Verify:
    """Reward `outcome` from the verifier, plus the task's named shaping, each times its weight in `shaping`."""

    shaping: Mapping[str, float] = field(default_factory=dict)

    def setup(self, role: Role) -> None:
        """Refuse a weight for shaping that the verifier of a single-turn task does not give.

        It is asked with empty answers; a task of several turns may only know after an episode, and is not asked.
        """
        if not self.shaping or hasattr(role.task, "episode"):
            return
        problems = distinct(role.task, "train", PROBED)
        scores = score_all(role.task, [Attempt(p, "") for p in problems])
        given = {name for score in scores if isinstance(score, Score) for name in score.shaping}
        for name in self.shaping:
            if name not in given and any(isinstance(score, Score) for score in scores):
                offers = "it gives " + ", ".join(sorted(given)) if given else "it gives none"
                raise unknown("shaping", name, given, f"asked for by judge.shaping; of task {role.task.name}: {offers}")

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge every trajectory that has no error yet."""
        rows = [t for g in groups for t in g.trajectories if t.error is None]
        for t, score in zip(rows, verify(s.role.task, rows, s.role.ledger), strict=True):
            if isinstance(score, VerifierError):
                t.error = f"verifier: {score}"
                continue
            shares = {name: self.shaping[name] * x for name, x in score.shaping.items() if name in self.shaping}
            if not math.isfinite(score.outcome + sum(shares.values())):
                parts = " + ".join(["outcome", *(f"{self.shaping[name]:g} x {name}" for name in shares)])
                t.error = f"verifier: the reward is no finite number ({parts})"
                continue
            t.reward("outcome", score.outcome, s.role.task.name)
            t.info["answer"] = score.answer
            t.info |= {f"shaping/{name}": value for name, value in score.shaping.items()}
            for name, value in shares.items():
                t.reward(name, value, s.role.task.name)


def verify(task: Any, rows: Sequence[Trajectory], ledger: Ledger) -> list[Score | VerifierError]:
    """Scores of trajectories, charged to the ledger; a failure of the verifier comes back in the score's place."""
    start = time.perf_counter()
    scores = score_all(task, [Attempt(t.problem, t.completion, t.info) for t in rows])
    ledger.charge(verifier_calls=len(rows), verifier_seconds=time.perf_counter() - start)
    return scores
