"""Propose: make up a problem of a named task and level.

    @countdown:3x20:   3*5=15;15+7=22;7,3,5>22        (first a way to solve it, then the problem)
    @arith:2x2:        12+34-5

All problems of a level have the same prompt: variety comes from sampling at temperature 1. A proposal counts if it
parses, belongs to the level and can be solved. Whether two proposals are the same is a matter of their keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import stream
from evolvent.core.records import Problem
from evolvent.tasks import arith, countdown
from evolvent.tasks.arith import Arith
from evolvent.tasks.base import Demo, Piece, Score, Split, key_of, one_user, split_of
from evolvent.tasks.countdown import Countdown, solutions, steps
from evolvent.tasks.extract import final_answer

DEFAULT = ("countdown:3x20",)
COUNTDOWN = re.compile(r"(\d{1,2}(?:,\d{1,2})+)>(\d{1,2})")


class Propose:
    """The `propose` role. Levels are those of other tasks: `countdown:3x20`, `arith:2x2`."""

    family = "propose"
    open_ended = True  # a proposal that is good once is good for every request of its level

    def __init__(self, levels: tuple[str, ...] = DEFAULT, wording: str = "compact") -> None:
        for level in levels:
            parse_level(level)
        self.categories = tuple(levels)
        self.name = f"{self.family}:{','.join(levels)}"
        self.wording = wording
        self.max_tokens = 96 if wording == "compact" else 512

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A request for a proposal. Its key holds a random number, which also chooses the gold proposal."""
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        while True:
            nonce = int(rng.integers(2**48))
            key = key_of(self.family, [category, nonce])
            if split_of(key) == split:
                return self.problem(category, nonce)

    def problem(self, level: str, nonce: int = 0, origin: str | None = None) -> Problem:
        """The request for a problem of this level; the same prompt for every `nonce`."""
        parse_level(level)
        if self.wording == "compact":
            text = f"@{level}:"
        else:
            text = f"Make up a new problem of the task and level {level}. End with <answer>the problem</answer>."
        data = {"level": level, "nonce": nonce}
        return Problem(key_of(self.family, [level, nonce]), one_user(text), data, level, self.name, origin=origin)

    def parse(self, level: str, completion: str) -> Problem | None:
        """The proposed problem, ready to be solved; None if the completion holds none of this level."""
        answer = final_answer(completion)
        if answer is None:
            return None
        task, shape = parse_level(level)
        text = answer.rsplit(";", 1)[-1]
        return self._countdown(text, shape) if task == "countdown" else self._arith(text, shape)

    def _countdown(self, text: str, shape: str) -> Problem | None:
        match = COUNTDOWN.fullmatch(text)
        if not match:
            return None
        count, largest = countdown.parse_level(shape)
        numbers, target = [int(n) for n in match[1].split(",")], int(match[2])
        if len(numbers) != count or not all(1 <= n <= largest for n in numbers):
            return None
        if str(target) != match[2] or ",".join(map(str, numbers)) != match[1]:
            return None  # a zero in front
        if target not in solutions(tuple(sorted(numbers))):
            return None
        return Countdown((shape,), self.wording).problem(numbers, target, shape)

    def _arith(self, text: str, shape: str) -> Problem | None:
        return Arith((shape,), self.wording).read(text, shape)

    def score(self, problem: Problem, completion: str) -> Score:
        """1 for a proposal of the level that can be solved; the answer is its key."""
        proposed = self.parse(problem.data["level"], completion)
        return Score(float(proposed is not None), proposed.key if proposed else None)

    def gold(self, problem: Problem) -> Demo:
        """A problem of the train split, chosen by the nonce; for countdown the simplest solution goes first."""
        level = problem.data["level"]
        task, shape = parse_level(level)
        rng = stream(problem.data["nonce"], "proposal", level)
        if task == "countdown":
            drawn = Countdown((shape,)).draw("train", rng)
            numbers, target = drawn.data["numbers"], drawn.data["target"]
            lines = steps(solutions(tuple(sorted(numbers)))[target]) or []
            text = "".join(f"{line};" for line in lines) + f"{','.join(map(str, numbers))}>{target}"
        else:
            text = Arith((shape,)).draw("train", rng).data["expression"]
        return [Piece(text if self.wording == "compact" else f"<answer>{text}</answer>")]


def parse_level(level: str) -> tuple[str, str]:
    """`countdown:3x20` as its two parts; `UserError` if it is no level of a task that can be proposed for."""
    task, _, shape = level.partition(":")
    try:
        if task == "countdown":
            countdown.parse_level(shape)
        elif task == "arith":
            arith.parse_level(shape)
        else:
            raise ValueError
    except ValueError:
        raise UserError(f"task `propose` has no level `{level}`; try countdown:3x20 or arith:2x2") from None
    return task, shape


def distinctness(keys: Sequence[str]) -> float:
    """Share of proposals that are the first of their key: 1 if all differ."""
    return len(set(keys)) / len(keys) if keys else 0.0
