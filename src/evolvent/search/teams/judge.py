"""Judging teams: the executor carries out their nodes, by the scripted worker or, where there is a model, by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from evolvent.core.errors import UserError
from evolvent.core.records import Group
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.engine.choose import open_model
from evolvent.search.loop import Evaluate
from evolvent.search.teams.worker import ModelWorker, rendered
from evolvent.tasks.worlds.workflow.team import BACKBONES
from evolvent.tasks.worlds.workflow.world import Workflow

QUESTIONS = "questions"  # in the data of a request's problem: the instances that a child is evaluated on


def teams_of(role: Role) -> Workflow:
    """The role's task, which has to be one of teams: `UserError` otherwise."""
    if isinstance(role.task, Workflow):
        return role.task
    raise UserError(f"this recipe evolves teams of agents, and {role.task.name} has none; give --task program:workflow")


@dataclass
class EvaluateTeams(Evaluate):
    """Judge: as `Evaluate`; a child is evaluated on the questions that its request's problem names.

    Where there is a model it carries out the nodes. `models` are further ones: with one of them it is the backbone
    `large`, with two they are `small` and `large`; the run's own model is all others. Without a model a node's turn
    counts as one model call, so that budgets can be in `calls`.
    """

    models: tuple[str, ...] = ()
    asks_model: ClassVar = True
    roles: dict[str, Role] = field(default_factory=dict, init=False)  # by backbone

    def setup(self, role: Role) -> None:
        """A task of teams, and models that are there: `UserError` otherwise."""
        task = teams_of(role)
        super().setup(role)
        if len(self.models) >= len(BACKBONES):
            raise UserError(f"judge.models has at most {len(BACKBONES) - 1} models beside the run's own")
        if isinstance(role.policy, AbsentPolicy):
            if self.models:
                raise UserError("judge.models are beside the run's own model, and there is none; give --model, too")
            return
        replay = getattr(getattr(role.engine, "transport", None), "replay", None)
        others = [open_model(model, role.task.name, role.ledger, role.seed, replay=replay)[:2] for model in self.models]
        made = [replace(role, policy=policy, engine=engine) for policy, engine in others]
        own = [role] * (len(BACKBONES) - len(made))
        self.roles = dict(zip(BACKBONES, [*own, *made], strict=True))
        task.explain = rendered
        task.worker = self._outside(role)

    def _outside(self, role: Role) -> ModelWorker:
        """Who carries out nodes when no step is under way: the best are executed anew."""
        return ModelWorker(self.roles, Step(0, role, [role.policy_actor()], label="evidence"), "team")

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate what the round has made."""
        task = teams_of(s.role)
        for t in (t for g in groups for t in g.valid):
            if QUESTIONS in t.problem.data and "instances" not in t.info:
                t.info["instances"] = tuple(t.problem.data[QUESTIONS])
        if isinstance(s.role.policy, AbsentPolicy):
            task.traces = {}
            super().__call__(groups, s)
            s.role.ledger.charge(model_calls=sum(len(t.runs) for t in task.traces.values()))
            return
        task.worker = ModelWorker(self.roles, s, f"team-{s.round}")
        try:
            super().__call__(groups, s)
        finally:
            task.worker = self._outside(s.role)
