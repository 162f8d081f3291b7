"""What the roles share: inputs that can be taken away or exchanged, so that one can measure what an answer rests on.

A role is a task whose prompt holds more than a question: a hint, a critique, a draft, notes. `parts` names them, and
`exchange` replaces one of them by that of another problem, or by nothing. The verifier's data stay as they are: what
changes is only what the model gets to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from evolvent.core.records import Problem
from evolvent.tasks.base import Task, split_of


@runtime_checkable
class Role(Task, Protocol):
    """A task with inputs that the answer should depend on."""

    parts: tuple[str, ...]

    def exchange(self, problem: Problem, part: str, other: Problem | None) -> Problem:
        """The problem with the `part` of `other` in its prompt, or without that part if `other` is None."""
        ...


def shuffled(role: Role, problems: Sequence[Problem], part: str, rng: np.random.Generator) -> list[Problem]:
    """Every problem with the `part` of another one of the list (a random cycle, so that none keeps its own)."""
    order = rng.permutation(len(problems))
    after = dict(zip(order.tolist(), np.roll(order, 1).tolist(), strict=True))
    return [role.exchange(p, part, problems[after[i]]) for i, p in enumerate(problems)]


def missing(role: Role, problems: Sequence[Problem], part: str) -> list[Problem]:
    """Every problem without its `part`."""
    return [role.exchange(p, part, None) for p in problems]


def belongs(key: str, split: str, *underlying: str) -> bool:
    """Whether a role's problem lies in the split together with the problems that it was made from."""
    return all(split_of(k) == split for k in (key, *underlying))
