"""Tasks by name: `countdown`, `arith:2x3-chain,3x3-chain`, `rg/gcd:1,2`, `my_task.py`, and sums of them with `+`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evolvent.core.errors import UserError, unknown
from evolvent.core.records import Problem
from evolvent.tasks.arith import Arith
from evolvent.tasks.base import Demo, Score, Split, Task
from evolvent.tasks.calc import Calc
from evolvent.tasks.countdown import Countdown

BUILT_IN: dict[str, Callable[..., Any]] = {"arith": Arith, "calc": Calc, "countdown": Countdown}


def load_task(spec: str, wording: str = "compact") -> Task:
    """The task of a specification; `wording` is the one that the model reads best."""
    parts = [p.strip() for p in spec.split("+")]
    if not all(parts):
        raise UserError(f"`{spec}` names no task; `evolvent tasks` lists them")
    tasks = [_one(part, wording) for part in parts]
    return tasks[0] if len(tasks) == 1 else Mixed(tasks)


def _one(spec: str, wording: str) -> Task:
    name, _, levels = spec.partition(":")
    chosen = tuple(level.strip() for level in levels.split(",") if level.strip())
    if name in BUILT_IN:
        return BUILT_IN[name](chosen, wording=wording) if chosen else BUILT_IN[name](wording=wording)
    if Path(spec).suffix in (".py", ".jsonl", ".parquet", ".csv"):
        raise UserError(f"{spec}: task files are not read yet")
    raise unknown("task", name, BUILT_IN, "`evolvent tasks` lists all; a task of your own is a .py file")


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

    def gold(self, problem: Problem) -> Demo | None:
        """By the task of the problem."""
        return self.tasks[problem.task].gold(problem)

    def _episode(self, problem: Problem) -> Any:
        make = getattr(self.tasks[problem.task], "episode", None)
        return make(problem) if make else None

    def _tools(self, problem: Problem) -> Any:
        tell = getattr(self.tasks[problem.task], "tools", None)
        return tell(problem) if tell else None
