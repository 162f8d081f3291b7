"""The loop: propose, roll out, judge, credit, keep, learn, gate. The same for everything that evolves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evolvent.core.errors import UserError, tally
from evolvent.core.ledger import Budget, Ledger
from evolvent.core.records import Trajectory
from evolvent.core.role import Role, refuse_blind
from evolvent.core.step import Step, Turns

if TYPE_CHECKING:
    from evolvent.models.policy import Policy


WINDOW = 20  # trajectories that are judged by how many failed; a step of fewer counts with those before it


class TooManyErrors(UserError):
    """More trajectories failed than a run should carry on with."""


@dataclass
class System:
    """Roles over one policy, engine and ledger, and whose turn it is."""

    roles: dict[str, Role]
    policy: Policy | None
    ledger: Ledger
    turns: Turns
    t: int = 0
    max_errors: float = 0.5
    clock: Callable[[], float] = time.perf_counter
    errors: dict[str, int] = field(default_factory=dict)
    failed: list[bool] = field(default_factory=list)  # of the latest trajectories, at most WINDOW, in order

    @property
    def parts(self) -> dict[str, Any]:
        """Every part ever built, wrapped ones included, by role and path."""
        return {path: part for role in self.roles.values() for path, part in role.parts.items()}

    def setup(self) -> None:
        """Hand each part its role, then let it check the system; called once, before the first step."""
        for role in self.roles.values():
            role.others = self.roles
            refuse_blind(role)
            for path, part in role.parts.items():
                missing = set(getattr(part, "needs", ())) - role.engine.offers
                if missing:
                    raise UserError(
                        f"`{path}` needs an engine with {', '.join(sorted(missing))}, and "
                        f"{type(role.engine).__name__} does not offer that; choose another model or recipe"
                    )
                if hasattr(part, "setup"):
                    part.setup(role)
        for part in self.parts.values():
            if hasattr(part, "check"):
                part.check(self)

    def run(self, budget: Budget) -> Iterator[list[Step]]:
        """Steps until the budget is used up, one list of roles' steps at a time."""
        while not self.ledger.reached(budget):
            yield self.step()

    def step(self) -> list[Step]:
        """One step of every role whose turn it is."""
        start = self.clock()
        steps = [self._role_step(self.roles[name]) for name in self.turns(list(self.roles), self.t)]
        self.t += 1
        self.ledger.charge(steps=1, seconds=self.clock() - start)
        return steps

    def _role_step(self, role: Role) -> Step:
        s = Step(self.t, role)
        slots = role.slots
        watch = Stopwatch(s, self.clock)
        learn = slots.get("learn")
        s.actors = learn.ask(s) if learn else [role.policy_actor()]
        rounds = slots["propose"](s)
        while True:
            with watch("propose"):
                requests = next(rounds, None)
            if requests is None:
                break
            with watch("rollout"):
                s.fresh = slots["rollout"](requests, s)
            with watch("judge"):
                slots["judge"](s.fresh, s)
            s.groups += s.fresh
            s.round += 1
        self._count_errors(s)
        with watch("credit"):
            s.batches = slots["credit"](s) if "credit" in slots else []
        if "keep" in slots:
            with watch("keep"):
                s.changes += slots["keep"](s)
        if learn:
            with watch("learn"):
                if hasattr(role.engine, "release"):
                    role.engine.release()  # memory that sampling holds and training needs
                s.changes += learn.tell(s.batches, s)
        if "gate" in slots:
            with watch("gate"):
                s.log("gate/accepted", slots["gate"](s))
        for part in role.parts.values():
            if hasattr(part, "observe"):
                part.observe(s)
        summarise(s)
        return s

    def _count_errors(self, s: Step) -> None:
        """Count what failed, and stop where it is more than a run may lose: of the step, or of the latest WINDOW
        trajectories where the step has fewer and the run has had others, for one lost request is no reason to stop."""
        trajectories = [t for g in s.groups for t in g.trajectories]
        errors = [str(t.error) for t in trajectories if t.error is not None]
        s.log("errors", len(errors))
        for error in errors:
            tally(self.errors, error)
        seen, where = [t.error is not None for t in trajectories], f"of step {s.t}"
        self.failed = [*self.failed, *seen][-WINDOW:]
        most = self.max_errors * len(seen)
        if len(seen) < len(self.failed):
            seen, where, most = self.failed, f"up to step {s.t}", self.max_errors * WINDOW
        if errors and sum(seen) > most:
            raise TooManyErrors(
                f"{sum(seen)} of {len(seen)} trajectories {where} failed, more than the {self.max_errors:.0%} that a "
                f"run may lose; the latest error: {errors[-1]}"
            )

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        states = {p: part.state_dict() for p, part in self.parts.items() if hasattr(part, "state_dict")}
        return {
            "t": self.t,
            "ledger": self.ledger.state_dict(),
            "policy": self.policy.state_dict() if self.policy else None,
            "parts": states,
            "errors": dict(self.errors),
            "failed": list(self.failed),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state; the system must have been built from the same plan."""
        self.t = state["t"]
        self.ledger.load_state_dict(state["ledger"])
        self.errors, self.failed = dict(state["errors"]), list(state.get("failed", []))
        if self.policy:
            self.policy.load_state_dict(state["policy"])
        for path, saved in state["parts"].items():
            self.parts[path].load_state_dict(saved)


class Stopwatch:
    """Seconds of each stage of a step, as metrics `seconds/<stage>`."""

    def __init__(self, s: Step, clock: Callable[[], float]) -> None:
        self.s, self.clock, self.name, self.start = s, clock, "", 0.0

    def __call__(self, name: str) -> Stopwatch:
        self.name = name
        return self

    def __enter__(self) -> None:
        self.start = self.clock()

    def __exit__(self, *_: object) -> None:
        key = f"seconds/{self.name}"
        self.s.metrics[key] = self.s.metrics.get(key, 0.0) + self.clock() - self.start


def everyone(roles: Sequence[str], t: int) -> list[str]:
    """All roles step, in the order in which they were declared."""
    return list(roles)


def summarise(s: Step) -> None:
    """The numbers that every run has: score, outcome, length, truncation, entropy, groups without signal, and the share
    of a group's answers that differ.

    `entropy` is an estimate, the mean of -log p over the tokens sampled. A judge that rewards something else than the
    outcome may have logged `outcome` itself.
    """
    rows = [t for g in s.groups for t in g.valid]
    s.log("trajectories", len(rows))
    if not rows:
        return
    s.log("score", mean([t.score for t in rows]))
    if "outcome" not in s.metrics:
        s.log("outcome", mean([t.outcome for t in rows]))
    s.log("length", float(np.mean([t.sampled for t in rows])))
    s.log("truncated", float(np.mean([t.truncated for t in rows])))
    if tokens := sum(t.sampled for t in rows):
        s.log("entropy", -sum(float(t.logprob[t.mask].sum(dtype=np.float64)) for t in rows) / tokens)
    judged = [valid for g in s.groups if (valid := g.valid)]
    s.log("flat_groups", float(np.mean([is_flat(valid) for valid in judged])))
    s.log("distinct", float(np.mean([len({t.completion for t in valid}) / len(valid) for valid in judged])))


def mean(values: Sequence[float]) -> float:
    """Of finite values, which is finite although their sum may not be."""
    with np.errstate(over="ignore"):
        found = float(np.mean(values))
    return found if np.isfinite(found) else sum(x / len(values) for x in values)


def is_flat(trajectories: Sequence[Trajectory]) -> bool:
    """All scores of a group are equal: no signal for a group baseline."""
    scores = [t.score for t in trajectories]
    return max(scores) - min(scores) < 1e-9
