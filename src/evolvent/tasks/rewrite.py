"""Rewriting a problem: a small complication (in depth) or a neighbour (in breadth), by the grammar of its task."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Problem
from evolvent.tasks.arith import Arith
from evolvent.tasks.base import split_of
from evolvent.tasks.countdown import Countdown, targets

TRIES = 20  # children that are no news, or not of the train split, are made again


def rewrite(problem: Problem, task: Any, rng: np.random.Generator, *, depth: float = 0.5) -> Problem | None:
    """Another problem of the train split, made of this one; `depth` is the probability of the next level.

    Levels are the task's categories, easiest first: in depth it is of the next, where there is one, in breadth of the
    same. It is a new draw of that level in which the numbers and signs of the problem have taken the places of as many;
    where that leaves nothing new, one number stays that of the draw. A countdown aims at the target within reach that
    is nearest to the old one. Other tasks that make their problems up have no such grammar: theirs is the new draw
    itself. A task of listed problems says with a `rewrite(problem, deeper, rng)` of its own what becomes of one, None
    where that is no news. `UserError` where it has none, `VerifierError` where that fails.
    """
    levels, home = task.categories, getattr(task, "tasks", {}).get(problem.task, task)
    if hasattr(home, "rewrite"):
        return home.rewrite(problem, bool(rng.random() < depth), rng)
    if hasattr(home, "listed"):
        raise UserError(
            f"{home.name} is a list of problems, and this recipe makes new ones of them; write a function `rewrite` "
            "beside its reward (docs/write-a-task.md; for rows in a file: rows.jsonl:judge.py), or take another recipe"
        )
    name = problem.category if problem.category in levels else f"{problem.task}/{problem.category}"
    at = levels.index(name) if name in levels else 0
    deeper = levels[min(at + 1, len(levels) - 1)] if rng.random() < depth else levels[at]
    for _ in range(TRIES):
        fresh = task.draw("train", rng, deeper)
        if fresh.task != problem.task:  # the next level is another task's
            fresh = task.draw("train", rng, levels[at])
        child = graft(problem, fresh, home, rng)
        if child is not None and child.key != problem.key and split_of(child.key) == "train":
            return child
    return fresh


def graft(old: Problem, fresh: Problem, task: Any, rng: np.random.Generator) -> Problem | None:
    """The fresh problem with as much of the old one as leaves something new; None if no such problem can be solved."""
    if isinstance(task, Arith):
        (kept, signs), (numbers, others) = terms(old), terms(fresh)
        signs = signs[: len(others)] + others[len(signs) :]
        lost = ("*" in others) != ("*" in signs)  # a level with products has one
        return task.problem(mixed(kept, numbers, rng), others if lost else signs, fresh.category, old.key)
    if isinstance(task, Countdown):
        listed = mixed(old.data["numbers"], fresh.data["numbers"], rng)
        reach = targets(tuple(sorted(listed)))
        aim = old.data["target"]
        near = min(reach, key=lambda t: abs(t - aim), default=None)
        return None if near is None else task.problem(listed, near, fresh.category, old.key)
    return fresh


def terms(problem: Problem) -> tuple[list[int], list[str]]:
    """Numbers and signs of an expression."""
    text = problem.data["expression"]
    return [int(n) for n in re.findall(r"\d+", text)], re.findall(r"[-+*]", text)


def mixed(kept: list[int], fresh: list[int], rng: np.random.Generator) -> list[int]:
    """The kept numbers, filled up with fresh ones; if none would be fresh, one of them in its place."""
    made = list(kept[: len(fresh)]) + list(fresh[len(kept) :])
    if len(fresh) <= len(kept):
        place = int(rng.integers(len(made)))
        made[place] = fresh[place]
    return made
