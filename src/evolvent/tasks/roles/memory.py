"""Memory: a few notes in front of a question, and only one of them matters.

    recall-3       a12;b47;c30;  ?b              47
    sum-3          a12;b47;c30;  ?25+b           47+25=72
    case-2-3x20    1,9,4>13:1*9+4;3,5,7>22:3*5+7;  3,5,7>22:     3*5+7

The number is that of the notes. In `recall` the note is the answer, in `sum` it is needed for one, and in `case` the
notes are countdown problems that were solved before, one of them the one that is asked. The notes are a message of
their own before the question, as `Request.memory` puts them there. The value follows the key, and the question ends
in the key: with `a:12;...?b=` small models do not learn to choose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from evolvent.core.records import Message, Problem
from evolvent.tasks.base import Demo, Piece, Score, Split, check_levels, key_of
from evolvent.tasks.countdown import Countdown, solutions, solves
from evolvent.tasks.countdown import parse_level as parse_countdown
from evolvent.tasks.extract import final_answer, integer
from evolvent.tasks.roles.base import belongs

LEVEL = re.compile(r"(recall|sum|case)-([1-9])(?:-(\d+x\d+))?")
DEFAULT = ("recall-4",)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
DECISION_WEIGHT = 5.0


def parse_level(level: str) -> tuple[str, int, str | None]:
    """Form, number of notes, countdown level of the notes. Raises ValueError."""
    match = LEVEL.fullmatch(level)
    if not match or (match[1] == "case") != (match[3] is not None):
        raise ValueError("want form-notes")
    if match[3]:
        parse_countdown(match[3])
    return match[1], int(match[2]), match[3]


class Memory:
    """The `memory` role."""

    family = "memory"
    parts: tuple[str, ...] = ("notes",)

    def __init__(self, levels: tuple[str, ...] = DEFAULT, wording: str = "compact") -> None:
        self.categories = check_levels(self.family, levels, parse_level, "recall-4, sum-2 or case-3-3x20")
        self.name = f"{self.family}:{','.join(levels)}"
        self.wording = wording
        self.max_tokens = 32 if wording == "compact" else 512

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """Random notes and a question about one of them."""
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        form, count, shape = parse_level(category)
        while True:
            at = int(rng.integers(count))
            underlying: list[str] = []
            if shape:
                task = Countdown((shape,))
                solved = {p.key: p for p in (task.draw(split, rng) for _ in range(count))}
                if len(solved) < count:
                    continue
                underlying, cases = list(solved), [p.data for p in solved.values()]
                notes = [[_text(d), solutions(tuple(sorted(d["numbers"])))[d["target"]]] for d in cases]
                data = {"form": form, "notes": notes, "at": at, **cases[at]}
            else:
                letters = rng.permutation(26)[:count]
                notes = [[LETTERS[i], str(n)] for i, n in zip(letters, rng.integers(10, 100, count), strict=True)]
                data = {"form": form, "notes": notes, "at": at, "other": int(rng.integers(10, 100))}
            key = key_of(self.family, [form, notes, at, data.get("other")])
            if belongs(key, split, *underlying):
                return Problem(key, self._prompt(data, notes), data, category, self.name)

    def _prompt(self, data: Mapping[str, Any], notes: list[list[str]]) -> tuple[Message, ...]:
        """Notes, if there are any, then the question."""
        form, name = data["form"], data["notes"][data["at"]][0]
        case = form == "case"
        if self.wording == "compact":
            written = "".join(f"{k}{v};" for k, v in notes)
            question = name if case else f"?{name}" if form == "recall" else f"?{data['other']}+{name}"
        else:
            written = "Notes:\n" + "".join(f"{k}{'' if case else ' is '}{v}\n" for k, v in notes)
            game = "use each of the numbers exactly once with + - * / and parentheses to make the number after >"
            added = "" if form == "recall" else f"{data.get('other')}+"
            wanted = f"For {name.rstrip(':')} {game}." if case else f"What is {added}{name}?"
            question = f"{wanted} End with <answer>the answer</answer>."
        return (*([Message("user", written)] if notes else []), Message("user", question))

    def exchange(self, problem: Problem, part: str, other: Problem | None) -> Problem:
        """Other notes, or none. Letters stay: it is the values that another problem's notes replace."""
        data = problem.data
        notes: list[list[str]] = []
        if other and data["form"] == "case":
            notes = other.data["notes"]
        elif other:
            values = [v for _, v in other.data["notes"]]
            notes = [[k, values[i % len(values)]] for i, (k, _) in enumerate(data["notes"])]
        return Problem(problem.key, self._prompt(data, notes), data, problem.category, self.name)

    def answer(self, problem: Problem) -> int:
        """The number that is asked for by `recall` and `sum`."""
        value = int(problem.data["notes"][problem.data["at"]][1])
        return value + (problem.data["other"] if problem.data["form"] == "sum" else 0)

    def score(self, problem: Problem, completion: str) -> Score:
        """1 for the right number; `case` is judged as countdown is."""
        answer, data = final_answer(completion), problem.data
        if data["form"] == "case":
            return Score(float(answer is not None and solves(answer, data["numbers"], data["target"])), answer)
        if answer and data["form"] == "sum" and self.wording == "compact":
            answer = answer.rsplit("=", 1)[1] if "=" in answer else None
        return Score(float(integer(answer) == self.answer(problem)), answer)

    def gold(self, problem: Problem) -> Demo:
        """What the note says, copied, and what follows from it. The copy counts five times in a supervised loss."""
        data = problem.data
        value = data["notes"][data["at"]][1]
        if self.wording != "compact":
            return [Piece(f"<answer>{value if data['form'] == 'case' else self.answer(problem)}</answer>")]
        if data["form"] == "sum":
            return [Piece(value, weight=DECISION_WEIGHT), Piece(f"+{data['other']}={self.answer(problem)}")]
        return [Piece(value, weight=DECISION_WEIGHT)]


def _text(data: Mapping[str, Any]) -> str:
    """A countdown problem as its compact prompt has it."""
    return f"{','.join(map(str, data['numbers']))}>{data['target']}:"
