"""Judging teams: the executor carries out their nodes, by the scripted worker or, where there is a model, by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolvent.core.errors import UserError
from evolvent.core.records import Group
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.loop import Evaluate
from evolvent.tasks.worlds.workflow.world import Workflow

QUESTIONS = "questions"  # in the data of a request's problem: the instances that a child is evaluated on


def teams_of(role: Role) -> Workflow:
    """The role's task, which has to be one of teams: `UserError` otherwise."""
    if isinstance(role.task, Workflow):
        return role.task
    raise UserError(
        f"this recipe evolves teams of agents, and {role.task.name} has none; give --task program:workflow"
    )


@dataclass
class EvaluateTeams(Evaluate):
    """Judge: as `Evaluate`; a child is evaluated on the questions that its request's problem names.

    Without a model a node's turn counts as one model call, so that budgets can be in `calls`.
    """

    def setup(self, role: Role) -> None:
        """A task of teams: `UserError` otherwise."""
        teams_of(role)
        super().setup(role)

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate what the round has made."""
        for t in (t for g in groups for t in g.valid):
            if QUESTIONS in t.problem.data and "instances" not in t.info:
                t.info["instances"] = tuple(t.problem.data[QUESTIONS])
        super().__call__(groups, s)
        if isinstance(s.role.policy, AbsentPolicy):
            s.role.ledger.charge(model_calls=sum(len(t.runs) for t in teams_of(s.role).traces.values()))
