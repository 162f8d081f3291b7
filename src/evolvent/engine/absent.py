"""No model at all, `--model none`: for recipes that vary programs by rules and write no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.records import Trajectory
from evolvent.engine.base import Actor, Sampling, Tree
from evolvent.engine.text import FixedPolicy, TextFormat
from evolvent.tasks.base import Task


class AbsentPolicy(FixedPolicy):
    """Stands where a policy stands, and refuses whatever would train or read it."""

    def _refuse(self) -> NoReturn:
        raise UserError("the model is `none`, and this recipe trains or reads one; give a model with --model")


class AbsentEngine:
    """Refuses to sample."""

    offers: frozenset[str] = frozenset()

    def start(
        self, stubs: Sequence[Trajectory], actors: Mapping[str, Actor], sampling: Sampling, limits: Sequence[int]
    ) -> Tree:
        """There is nobody to ask: `UserError`."""
        raise UserError("this recipe has a model write, and the model is `none`; give one with --model")


def opened(task: Task, ledger: Ledger) -> tuple[AbsentPolicy, AbsentEngine]:
    """What stands for the model in such a run."""
    return AbsentPolicy("none", TextFormat()), AbsentEngine()
