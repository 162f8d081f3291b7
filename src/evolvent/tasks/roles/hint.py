"""Hint: a countdown problem with the beginning of a solution, inside the prompt.

    3,5,7>22_3*:    3*5+7

The answer is the whole expression. The other way to give a hint needs no format: `prefix` is text that counts as
already written by the model (`Request.hint`), and the plain countdown task continues it.
"""

from __future__ import annotations

import re

import numpy as np

from evolvent.core.records import Problem
from evolvent.tasks.base import Demo, Piece, Score, Split, check_levels, key_of, one_user
from evolvent.tasks.countdown import Countdown, parse_level, solutions, solves
from evolvent.tasks.extract import final_answer
from evolvent.tasks.roles.base import belongs

DEFAULT = ("4x12",)
TOKEN = re.compile(r"\d+|[-+*/()]")


def prefix(solution: str, share: float) -> str:
    """The first `share` (0 to 1) of a solution, in whole numbers and operators, and never all of it."""
    tokens = TOKEN.findall(solution)
    return "".join(tokens[: min(round(share * len(tokens)), len(tokens) - 1)])


class Hint:
    """The `hint` role, on the levels of countdown."""

    family = "hint"
    parts: tuple[str, ...] = ("hint",)

    def __init__(self, levels: tuple[str, ...] = DEFAULT, wording: str = "compact") -> None:
        self.categories = check_levels(self.family, levels, parse_level, "3x20, 4x12 or 4x20")
        self.name = f"{self.family}:{','.join(levels)}"
        self.wording = wording
        self._countdown = Countdown(levels)
        self.max_tokens = self._countdown.max_tokens if wording == "compact" else 512

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A countdown problem of the split with the first part of its simplest solution, up to three quarters of it."""
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        while True:
            base = self._countdown.draw(split, rng, category)
            numbers, target = base.data["numbers"], base.data["target"]
            hint = prefix(solutions(tuple(sorted(numbers)))[target], rng.uniform(0, 0.75))
            problem = self.problem(numbers, target, hint, category)
            if belongs(problem.key, split, base.key):
                return problem

    def problem(
        self, numbers: list[int], target: int, hint: str, category: str = "", origin: str | None = None
    ) -> Problem:
        """The countdown problem with this hint."""
        key = key_of(self.family, [sorted(numbers), target, hint])
        data = {"numbers": numbers, "target": target, "hint": hint}
        return Problem(key, one_user(self._prompt(numbers, target, hint)), data, category, self.name, origin=origin)

    def _prompt(self, numbers: list[int], target: int, hint: str) -> str:
        listed = ",".join(map(str, numbers))
        if self.wording == "compact":
            return f"{listed}>{target}_{hint}:"
        return (
            f"Use each of the numbers {listed.replace(',', ', ')} exactly once with + - * / and parentheses to make "
            f"{target}. Hint: a solution begins with {hint or '(unknown)'}. End with <answer>the expression</answer>."
        )

    def exchange(self, problem: Problem, part: str, other: Problem | None) -> Problem:
        """Another hint, or an empty one."""
        data = problem.data
        text = self._prompt(data["numbers"], data["target"], other.data["hint"] if other else "")
        return Problem(problem.key, one_user(text), data, problem.category, self.name)

    def score(self, problem: Problem, completion: str) -> Score:
        """1 if the final expression solves the problem, whether or not it follows the hint."""
        answer = final_answer(completion)
        right = answer is not None and solves(answer, problem.data["numbers"], problem.data["target"])
        return Score(float(right), answer)

    def gold(self, problem: Problem) -> Demo | None:
        """The simplest solution."""
        found = solutions(tuple(sorted(problem.data["numbers"]))).get(problem.data["target"])
        if found is None:
            return None
        return [Piece(found if self.wording == "compact" else f"<answer>{found}</answer>")]
