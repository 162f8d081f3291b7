"""Revise: a countdown problem, a wrong draft and a critique; the answer is a corrected expression.

    3,5,7>22:3*5-7#5+^    3*5+7        (after the 5 write +)
    3,5,7>8:5*3-7#3&7^    5*7-3 ...    (3 and 7 change places)

The critique names one change that makes the draft right. Both are needed: without the draft there is nothing to
change, without the critique one does not know what to change, and the levels are too hard to start afresh.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from evolvent.core.records import Problem
from evolvent.tasks.base import Demo, Piece, Score, Split, check_levels, key_of, one_user
from evolvent.tasks.countdown import Countdown, parse_level, solutions, solves
from evolvent.tasks.extract import final_answer
from evolvent.tasks.roles.base import belongs

DEFAULT = ("4x20",)
TOKEN = re.compile(r"\d+|[-+*/()]")


class Revise:
    """The `revise` role, on the levels of countdown."""

    family = "revise"
    parts: tuple[str, ...] = ("draft", "critique")

    def __init__(self, levels: tuple[str, ...] = DEFAULT, wording: str = "compact") -> None:
        self.categories = check_levels(self.family, levels, parse_level, "3x20, 4x12 or 4x20")
        self.name = f"{self.family}:{','.join(levels)}"
        self.wording = wording
        self._countdown = Countdown(levels)
        self.max_tokens = 5 * max(parse_level(level)[0] for level in levels) if wording == "compact" else 512

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A countdown problem whose numbers all differ, its solution with one thing changed, and how to undo that."""
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        while True:
            base = self._countdown.draw(split, rng, category)
            numbers, target = base.data["numbers"], base.data["target"]
            if len(set(numbers)) < len(numbers):
                continue
            draft, critique = spoil(solutions(tuple(sorted(numbers)))[target], rng)
            if solves(draft, numbers, target):
                continue
            problem = self.problem(numbers, target, draft, critique, category)
            if belongs(problem.key, split, base.key):
                return problem

    def problem(
        self,
        numbers: list[int],
        target: int,
        draft: str,
        critique: str,
        category: str = "",
        origin: str | None = None,
    ) -> Problem:
        """The request to correct `draft` by `critique`."""
        key = key_of(self.family, [sorted(numbers), target, draft, critique])
        data = {"numbers": numbers, "target": target, "draft": draft, "critique": critique}
        return Problem(key, one_user(self._prompt(data)), data, category, self.name, origin=origin)

    def _prompt(self, data: Mapping[str, Any]) -> str:
        listed = ",".join(map(str, data["numbers"]))
        draft, critique = data["draft"], data["critique"]
        if self.wording == "compact":
            return f"{listed}>{data['target']}:{draft}#{critique}^"
        return (
            f"Use each of the numbers {listed.replace(',', ', ')} exactly once with + - * / and parentheses to make "
            f"{data['target']}. A first draft, which is wrong: {draft or '(none)'}. Critique: "
            f"{explain(str(critique)) or '(none)'}. End with <answer>the corrected expression</answer>."
        )

    def exchange(self, problem: Problem, part: str, other: Problem | None) -> Problem:
        """Another draft or critique, or an empty one."""
        shown = {**problem.data, part: other.data[part] if other else ""}
        return Problem(problem.key, one_user(self._prompt(shown)), problem.data, problem.category, self.name)

    def score(self, problem: Problem, completion: str) -> Score:
        """1 if the final expression solves the problem, whether or not it follows the critique."""
        answer = final_answer(completion)
        right = answer is not None and solves(answer, problem.data["numbers"], problem.data["target"])
        return Score(float(right), answer)

    def gold(self, problem: Problem) -> Demo | None:
        """The draft with the critique applied."""
        text = apply(problem.data["draft"], problem.data["critique"])
        if text is None or not solves(text, problem.data["numbers"], problem.data["target"]):
            return None
        return [Piece(text if self.wording == "compact" else f"<answer>{text}</answer>")]


def spoil(text: str, rng: np.random.Generator) -> tuple[str, str]:
    """A draft that differs from the right expression in one place, and the critique that undoes it."""
    tokens = TOKEN.findall(text)
    if rng.random() < 0.5:
        places = [i for i, t in enumerate(tokens) if t in "+-*/" and tokens[i - 1].isdigit()]
        at = places[int(rng.integers(len(places)))]
        before, right = tokens[at - 1], tokens[at]
        tokens[at] = "+-*/".replace(right, "")[int(rng.integers(3))]
        return "".join(tokens), before + right
    places = [i for i, t in enumerate(tokens) if t.isdigit()]
    i, j = sorted(rng.choice(places, 2, replace=False).tolist())
    tokens[i], tokens[j] = tokens[j], tokens[i]
    return "".join(tokens), f"{tokens[i]}&{tokens[j]}"


def apply(draft: str, critique: str) -> str | None:
    """The draft with the change that the critique names; None if the critique does not fit it."""
    tokens = TOKEN.findall(draft)
    if match := re.fullmatch(r"(\d+)([-+*/])", critique):
        if match[1] not in tokens[:-1]:
            return None
        tokens[tokens.index(match[1]) + 1] = match[2]
        return "".join(tokens)
    if match := re.fullmatch(r"(\d+)&(\d+)", critique):
        if match[1] not in tokens or match[2] not in tokens:
            return None
        i, j = tokens.index(match[1]), tokens.index(match[2])
        tokens[i], tokens[j] = match[2], match[1]
        return "".join(tokens)
    return None


def explain(critique: str) -> str:
    """The critique as a sentence."""
    if match := re.fullmatch(r"(\d+)([-+*/])", critique):
        return f"the operator after {match[1]} should be {match[2]}"
    if match := re.fullmatch(r"(\d+)&(\d+)", critique):
        return f"{match[1]} and {match[2]} should change places"
    return critique
