"""Judge: is this countdown expression right for these numbers and this target?

    3,5,7>22:3*5+7~   3*5=15;15+7=22;>22;3,5,7;y
    3,5,7>22:3*6+4~   3*6=18;18+4=22;>22;3,?,?;n

The completion is the evaluation, one operation a line; the target beside the value; the given numbers, with ? for those
that the candidate leaves out; and then the verdict: y or n. Half of the problems are right.
The wrong ones are mostly near misses: the right numbers and a value close to the target, or the target itself from
numbers that were not given (one exchanged, or one used twice).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from evolvent.core.records import Problem
from evolvent.tasks.base import Demo, Piece, Score, Split, check_levels, key_of, one_user
from evolvent.tasks.countdown import Countdown, parse_level, solutions, solves, steps
from evolvent.tasks.extract import final_answer
from evolvent.tasks.roles.base import belongs

DEFAULT = ("3x20",)
DECISION_WEIGHT = 5.0
RESULT_WEIGHT = 3.0  # of results: most candidates hit the target, and copying it is easier than computing
KINDS = {"near": 0.45, "operator": 0.25, "exchanged": 0.15, "twice": 0.15}  # shares of the wrong candidates


class Judge:
    """The `judge` role, on the levels of countdown."""

    family = "judge"
    parts: tuple[str, ...] = ("candidate",)

    def __init__(self, levels: tuple[str, ...] = DEFAULT, wording: str = "compact") -> None:
        self.categories = check_levels(self.family, levels, parse_level, "3x12, 3x20 or 4x12")
        self.name = f"{self.family}:{','.join(levels)}"
        self.wording = wording
        self._countdown = Countdown(levels)
        most = max(parse_level(level)[0] for level in levels)
        self.max_tokens = 24 * most if wording == "compact" else 512

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A countdown problem of the split with a candidate that is right half of the time."""
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        right = bool(rng.random() < 0.5)
        kind = "right" if right else str(rng.choice(list(KINDS), p=list(KINDS.values())))
        while True:
            base = self._countdown.draw(split, rng, category)
            numbers, target = base.data["numbers"], base.data["target"]
            candidate = right_candidate(numbers, target, rng) if right else wrong(kind, numbers, target, rng)
            if candidate is None:
                continue
            problem = self.problem(numbers, target, candidate, category, kind)
            if belongs(problem.key, split, base.key):
                return problem

    def problem(
        self,
        numbers: list[int],
        target: int,
        candidate: str,
        category: str = "",
        kind: str = "",
        origin: str | None = None,
    ) -> Problem:
        """The question whether `candidate` solves countdown for these numbers and this target."""
        key = key_of(self.family, [sorted(numbers), target, candidate])
        data = {
            "numbers": numbers, "target": target, "candidate": candidate, "kind": kind,
            "right": solves(candidate, numbers, target),
        }  # fmt: skip
        return Problem(
            key, one_user(self._prompt(numbers, target, candidate)), data, category, self.name, origin=origin
        )

    def _prompt(self, numbers: list[int], target: int, candidate: str) -> str:
        if self.wording == "compact":
            return f"{','.join(map(str, numbers))}>{target}:{candidate}~"
        return (
            f"Is {candidate or '(nothing)'} equal to {target}, and does it use each of the numbers "
            f"{', '.join(map(str, numbers))} exactly once? Work out the value step by step. End with "
            "<answer>y</answer> or <answer>n</answer>."
        )

    def exchange(self, problem: Problem, part: str, other: Problem | None) -> Problem:
        """Another candidate, or an empty one."""
        data = problem.data
        text = self._prompt(data["numbers"], data["target"], other.data["candidate"] if other else "")
        return Problem(problem.key, one_user(text), data, problem.category, self.name)

    def verdict(self, completion: str) -> bool | None:
        """What the completion says: True for y, False for n, None if it says neither."""
        answer = final_answer(completion)
        return {"y": True, "n": False}.get(answer.rsplit(";", 1)[-1]) if answer else None

    def score(self, problem: Problem, completion: str) -> Score:
        """1 if the verdict is the truth, else 0."""
        verdict = self.verdict(completion)
        answer = None if verdict is None else "ny"[verdict]
        return Score(float(verdict is problem.data["right"]), answer)

    def gold(self, problem: Problem) -> Demo:
        """The evaluation, then the verdict; results count three times in a supervised loss, the verdict five times."""
        data = problem.data
        lines = steps(data["candidate"]) or []
        letter = "y" if data["right"] else "n"
        if self.wording == "compact":
            demo: Demo = []
            for line in lines:
                terms, result = line.split("=")
                demo += [Piece(f"{terms}="), Piece(f"{result};", weight=RESULT_WEIGHT)]
            rest = ",".join(crossed_off(data["numbers"], data["candidate"]))
            return [*demo, Piece(f">{data['target']};{rest};"), Piece(letter, weight=DECISION_WEIGHT)]
        return [Piece("".join(f"{line}\n" for line in lines)), Piece(f"<answer>{letter}</answer>")]


def crossed_off(numbers: Sequence[int], candidate: str) -> list[str]:
    """The given numbers, with `?` for those that are not in the candidate (as often as they were given)."""
    left = Counter(map(int, re.findall(r"\d+", candidate)))
    found = []
    for number in numbers:
        found.append(str(number) if left[number] else "?")
        left[number] -= left[number] > 0
    return found


def right_candidate(numbers: list[int], target: int, rng: np.random.Generator) -> str:
    """The simplest solution, half of the time with the operands of its sums and products in random order."""
    text = solutions(tuple(sorted(numbers)))[target]
    return text if rng.random() < 0.5 else commuted(text, rng)


def commuted(text: str, rng: np.random.Generator) -> str:
    """The same value, written in another order: operands of + and * change places at random."""

    def write(node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.BinOp):
            return node
        left, right = write(node.left), write(node.right)
        if isinstance(node.op, ast.Add | ast.Mult) and rng.random() < 0.5:
            left, right = right, left
        return ast.BinOp(left, node.op, right)

    return ast.unparse(write(ast.parse(text, mode="eval").body)).replace(" ", "")


def wrong(kind: str, numbers: list[int], target: int, rng: np.random.Generator) -> str | None:
    """A candidate that does not solve the problem, of one of the `KINDS`; None if there is none for these numbers."""
    if kind == "near":  # the right numbers, a value at most 10 away
        reachable = solutions(tuple(sorted(numbers)))
        close = [v for v in reachable if 0 < abs(v - target) <= 10]
        text = reachable[close[int(rng.integers(len(close)))]] if close else None
    elif kind == "operator":  # a solution with one operator changed
        text = other_operator(right_candidate(numbers, target, rng), rng)
    else:  # the target from other numbers
        changed = list(numbers)
        i = int(rng.integers(len(numbers)))
        if kind == "twice":
            changed[i] = numbers[i - 1]
        else:
            changed[i] = max(1, numbers[i] + int(rng.integers(1, 4)) * (1 if rng.random() < 0.5 else -1))
        text = solutions(tuple(sorted(changed))).get(target)
        if text is not None and rng.random() < 0.5:
            text = commuted(text, rng)
    return None if text is None or solves(text, numbers, target) else text


def other_operator(text: str, rng: np.random.Generator) -> str:
    """The expression with one of its operators replaced by another one."""
    places = [m.start() for m in re.finditer(r"[-+*/]", text)]
    at = places[int(rng.integers(len(places)))]
    choices = "+-*/".replace(text[at], "")
    return text[:at] + choices[int(rng.integers(3))] + text[at + 1 :]
