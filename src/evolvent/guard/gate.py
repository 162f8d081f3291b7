"""Gates: watch the policy on the gate split, and take back steps that made it worse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.recipe import parse_path
from evolvent.core.records import Change, Problem, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.judge.verify import verify
from evolvent.rollout.sample import Sample
from evolvent.tasks.base import distinct


@dataclass
class Watch:
    """Every `every` steps, greedy accuracy on `problems` fixed problems of the gate split. Accepts everything.

    A step that was watched makes a version of the run. 0 switches watching off.
    """

    every: int = 25
    problems: int = 128
    seen: list[Problem] = field(default_factory=list, init=False)

    def setup(self, role: Role) -> None:
        """Draw the problems once; they do not depend on the run's seed."""
        self.seen = distinct(role.task, "gate", self.problems) if self.every else []

    def check(self, system: object) -> None:
        """Counts in range."""
        if self.every < 0 or self.problems < 1:
            raise UserError(
                f"gate.every must be at least 0 and gate.problems at least 1, got {self.every}, {self.problems}"
            )

    def due(self, s: Step) -> bool:
        """Whether this step is looked at."""
        return self.every > 0 and (s.t + 1) % self.every == 0

    def __call__(self, s: Step) -> bool:
        """Measure if it is time; always accept."""
        if self.due(s):
            self.outcomes(s)
        return True

    def outcomes(self, s: Step) -> np.ndarray:
        """Greedy outcomes on the gate problems, float64 [problems], nan where judging failed. Logs their mean."""
        found = greedy_outcomes(s, self.seen)
        if not np.isnan(found).all():
            s.log("gate/accuracy", float(np.nanmean(found)))
        return found


def greedy_outcomes(s: Step, problems: list[Problem]) -> np.ndarray:
    """Outcome of the policy's greedy answer to each problem; nan where judging failed."""
    role = s.role
    probe = s.child(role, [role.policy_actor()], "gate")
    groups = GREEDY([Request(p, 1) for p in problems], probe)
    rows = [g.trajectories[0] for g in groups]
    scores = verify(role.task, rows, role.ledger)
    return np.array(
        [np.nan if isinstance(x, Exception) or t.error else x.outcome for x, t in zip(scores, rows, strict=True)]
    )


@dataclass
class ScoreGate(Watch):
    """Like `Watch`, but goes back to the last accepted version when accuracy fell by more than luck explains.

    A watched step is refused if the mean of the paired differences to the last accepted version lies more than
    `errors` standard errors below zero, and below -`tolerance`. Weights and learners go back; the version goes on.
    """

    tolerance: float = 0.02
    errors: float = 2.0
    accepted: dict[str, Any] | None = field(default=None, init=False)

    def setup(self, role: Role) -> None:
        """Nothing is accepted before the first look."""
        super().setup(role)
        self.role = role

    def __call__(self, s: Step) -> bool:
        """Measure if it is time; True if the step stands."""
        if not self.due(s):
            return True
        now = self.outcomes(s)
        if self.accepted is not None and self.worse(now, np.asarray(self.accepted["outcomes"])):
            self.role.policy.set_weights(self.accepted["weights"])
            for path, part in self.learners().items():
                part.load_state_dict(copy_state(self.accepted["learn"][path]))
            judged = self.role.policy.version
            s.changes.append(Change("gate", judged, self.role.policy.bump(), "refused"))
            return False
        self.accepted = {
            "outcomes": now,
            "weights": {n: w.clone() for n, w in self.role.policy.weights().items()},
            "learn": {path: copy_state(part.state_dict()) for path, part in self.learners().items()},
        }
        return True

    def learners(self) -> dict[str, Any]:
        """The parts of the slot `learn` that have a state, wraps and wrapped ones, by path."""
        parts = self.role.parts.items()
        return {p: part for p, part in parts if parse_path(p)[1] == "learn" and hasattr(part, "state_dict")}

    def worse(self, now: np.ndarray, before: np.ndarray) -> bool:
        """Whether the paired differences are clearly below zero."""
        both = ~(np.isnan(now) | np.isnan(before))
        difference = (now - before)[both]
        if len(difference) < 2:
            return False
        error = difference.std(ddof=1) / len(difference) ** 0.5
        return bool(difference.mean() < -max(self.tolerance, self.errors * error))

    def state_dict(self) -> dict[str, Any]:
        """The last accepted version."""
        return {"accepted": self.accepted}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.accepted = state["accepted"]


def copy_state(state: Any) -> Any:
    """A state with tensors of its own."""
    if isinstance(state, dict):
        return {k: copy_state(v) for k, v in state.items()}
    return state.clone() if hasattr(state, "clone") else state


GREEDY = Sample(temperature=0.0)
