"""Tasks by name: `countdown`, `arith:2x3-chain,3x3-chain`, `rg/gcd:1,2`, `my_task.py`, and sums of them with `+`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evolvent.core import places
from evolvent.core.errors import UserError, VerifierError, unknown
from evolvent.core.records import Problem
from evolvent.tasks import ADAPTERS, BUILT_IN, OTHERS
from evolvent.tasks.base import Attempt, Demo, Score, Split, Task, score_all

REASONING_GYM = "evolvent.tasks.reasoning_gym.task"
USER = "evolvent.tasks.user"
FILES = (".py", ".jsonl", ".parquet", ".csv")


def load_task(spec: str, wording: str = "compact") -> Task:
    """The task of a specification; `wording` is the one that the model reads best."""
    tasks = [_one(part, wording) for part in parts_of(spec)]
    return tasks[0] if len(tasks) == 1 else Mixed(tasks)


def parts_of(spec: str) -> list[str]:
    """The tasks of a sum; the name of a file may have a plus in it."""
    whole = Path(spec.partition(":")[0]).exists()
    parts = [spec] if whole else [p.strip() for p in spec.split("+")]
    if not all(parts):
        raise UserError(f"`{spec}` names no task; `evolvent tasks` lists them")
    return parts


def sources_of(spec: str) -> list[str | Path]:
    """What the tasks of a specification are made of: modules, and the user's own files."""
    found: list[str | Path] = []
    for part in parts_of(spec):
        found.append(module_of(part))
        found += [Path(piece) for piece in part.split(":") if piece.endswith(FILES)]
    return found


def is_file(spec: str) -> bool:
    """Whether a specification names a user's file."""
    return any(part.endswith(FILES) for part in spec.split(":"))


def _one(spec: str, wording: str) -> Any:
    name, _, rest = spec.partition(":")
    if name in ADAPTERS:
        return importlib.import_module(ADAPTERS[name]).load(rest)
    if is_file(spec):
        from evolvent.tasks.user import load_user_task

        return load_user_task(spec)
    chosen = tuple(level.strip() for level in rest.split(",") if level.strip())
    if name.startswith("rg/"):
        from evolvent.tasks.reasoning_gym.task import ReasoningGym

        return ReasoningGym(name.removeprefix("rg/"), chosen, wording=wording)
    if name not in BUILT_IN:
        raise _no_task(name)
    made = places.at(BUILT_IN[name].place)
    return made(chosen, wording=wording) if chosen else made(wording=wording)


def _no_task(name: str) -> UserError:
    """The error for a name that no task has; it may be that of a file."""
    if os.path.exists(name):
        kinds = ", ".join(FILES[1:])
        return UserError(f"{name} cannot be a task; give a .py file with problems and a reward, or rows in {kinds}")
    own = f"a task of your own is a .py file, or rows in {', '.join(FILES[1:])}"
    return unknown("task", name, BUILT_IN, f"`evolvent tasks` lists all; {own}")


def module_of(spec: str) -> str:
    """The module that holds the task of a specification without `+`. `UserError` if there is none."""
    name = spec.partition(":")[0]
    if name in ADAPTERS:
        return ADAPTERS[name]
    if is_file(spec):
        return USER
    if name.startswith("rg/"):
        return REASONING_GYM
    if name not in BUILT_IN:
        raise _no_task(name)
    return BUILT_IN[name].place.partition(":")[0]


def task_table() -> list[dict[str, str]]:
    """What there is, for a table: task, levels, text. Imports none of them."""
    rows = [(name, entry.levels, entry.text) for name, entry in BUILT_IN.items()]
    return [dict(zip(("task", "levels", "text"), row, strict=True)) for row in [*rows, *OTHERS]]


class Mixed:
    """Several tasks as one; categories are `task/category`, problems are judged by the task that made them."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks = {t.name: t for t in tasks}
        if len(self.tasks) < len(tasks):
            raise UserError("a sum of tasks names one of them twice; give its levels in one place, as in arith:2x1,2x2")
        self.name = "+".join(self.tasks)
        self._home = {f"{t.name}/{c}": (t, c) for t in tasks for c in t.categories}
        self.categories = tuple(self._home)
        self.max_tokens = max(t.max_tokens for t in tasks)
        if any(hasattr(t, "episode") for t in tasks):
            self.episode = self._episode
            self.max_turns = max(getattr(t, "max_turns", 1) for t in tasks)
            self.turn_end = next((t.turn_end for t in tasks if hasattr(t, "turn_end")), None)
        if any(hasattr(t, "tools") for t in tasks):
            self.tools = self._tools

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A problem of one of the tasks; its category is the task's own."""
        name = category or self.categories[int(rng.integers(len(self.categories)))]
        task, inner = self._home[name]
        return task.draw(split, rng, inner)

    def score(self, problem: Problem, completion: str) -> Score:
        """By the task of the problem."""
        return self.tasks[problem.task].score(problem, completion)

    def score_many(self, attempts: Sequence[Attempt]) -> list[Score | VerifierError]:
        """By the tasks of the problems, each asked once."""
        found: dict[int, Score | VerifierError] = {}
        for name, task in self.tasks.items():
            mine = [i for i, attempt in enumerate(attempts) if attempt.problem.task == name]
            found |= zip(mine, score_all(task, [attempts[i] for i in mine]), strict=True)
        return [found[i] for i in range(len(attempts))]

    def gold(self, problem: Problem) -> Demo | None:
        """By the task of the problem."""
        return self.tasks[problem.task].gold(problem)

    def _episode(self, problem: Problem) -> Any:
        make = getattr(self.tasks[problem.task], "episode", None)
        return make(problem) if make else None

    def _tools(self, problem: Problem) -> Any:
        tell = getattr(self.tasks[problem.task], "tools", None)
        return tell(problem) if tell else None
