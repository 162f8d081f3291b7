"""Countdown: reach a target from given numbers with + - * /, each number used exactly once.

    3,5,7>22:   3*5+7

Levels are `{count}x{max}`: `3x20` is three numbers from 1 to 20; targets go from 1 to 99, every intermediate result
is a positive integer. Several solutions may be right; the verifier accepts any, `gold` is one fixed choice.
"""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

from evolvent.core.records import Problem, Trajectory
from evolvent.tasks.base import Demo, Piece, Score, Split, check_levels, key_of, one_user, split_of
from evolvent.tasks.extract import final_answer

LEVEL = re.compile(r"(\d+)x(\d+)")
EXPRESSION = re.compile(r"[0-9+\-*/() ]{1,120}")
TARGETS = range(1, 100)
SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
DEFAULT = ("2x50", "3x20")


def parse_level(level: str) -> tuple[int, int]:
    """How many numbers, and the largest. Raises ValueError."""
    match = LEVEL.fullmatch(level)
    if not match:
        raise ValueError("want count x max")
    count, largest = int(match[1]), int(match[2])
    if not (2 <= count <= 5 and 2 <= largest <= 99):
        raise ValueError("the count goes from 2 to 5, the largest number from 2 to 99")
    return count, largest


@lru_cache(maxsize=8192)
def solutions(numbers: tuple[int, ...]) -> dict[int, str]:
    """For every target that the sorted `numbers` can reach, one expression: the simplest, by a fixed order.

    Built over sub-multisets. Simplest means: fewest parentheses, then fewest / * and -, then alphabetical order.
    """

    @cache
    def reach(subset: tuple[int, ...]) -> dict[int, dict[str, tuple]]:
        """value -> {"sum"|"product"|"number": (cost, text)}: the best expression for each outermost operator."""
        if len(subset) == 1:
            return {subset[0]: {"number": ((0, 0, 0, 0), str(subset[0]))}}
        found: dict[int, dict[str, tuple]] = {}

        def offer(value: int, kind: str, cost: tuple, text: str) -> None:
            entry = (cost, text)
            kinds = found.setdefault(value, {})
            if kind not in kinds or entry < kinds[kind]:
                kinds[kind] = entry

        for left, right in _partitions(subset):
            for a, a_kinds in reach(left).items():
                for b, b_kinds in reach(right).items():
                    for a_kind, (a_cost, a_text) in a_kinds.items():
                        for b_kind, (b_cost, b_text) in b_kinds.items():
                            base = tuple(x + y for x, y in zip(a_cost, b_cost, strict=True))
                            offer(a + b, "sum", base, f"{a_text}+{b_text}")
                            if a > b:
                                closed = b_kind == "sum"
                                text = f"{a_text}-({b_text})" if closed else f"{a_text}-{b_text}"
                                offer(a - b, "sum", _plus(base, closed, 0, 0, 1), text)
                            opened = (a_kind == "sum") + (b_kind == "sum")
                            a_in = f"({a_text})" if a_kind == "sum" else a_text
                            b_in = f"({b_text})" if b_kind == "sum" else b_text
                            offer(a * b, "product", _plus(base, opened, 0, 1, 0), f"{a_in}*{b_in}")
                            if b > 1 and a % b == 0:
                                closed = b_kind != "number"
                                b_in = f"({b_text})" if closed else b_text
                                cost = _plus(base, (a_kind == "sum") + closed, 1, 0, 0)
                                offer(a // b, "product", cost, f"{a_in}/{b_in}")
        return found

    table = reach(numbers)
    return {v: min(kinds.values())[1] for v, kinds in sorted(table.items()) if v in TARGETS}


@lru_cache(maxsize=8192)
def targets(numbers: tuple[int, ...]) -> list[int]:
    """The targets that the sorted `numbers` can reach, in ascending order: the keys of `solutions`, found faster."""
    return sorted(values(numbers).intersection(TARGETS))


@lru_cache(maxsize=8192)
def values(subset: tuple[int, ...]) -> frozenset[int]:
    """Every positive integer that the sorted numbers of `subset` can make."""
    if len(subset) == 1:
        return frozenset(subset)
    found: set[int] = set()
    for left, right in _partitions(subset):
        for b in values(right):
            larger = [a for a in values(left) if a >= b]  # the rest comes with the parts exchanged
            found.update([a + b for a in larger])
            found.update([a * b for a in larger])
            found.update([a - b for a in larger])
            if b > 1:
                found.update([a // b for a in larger if not a % b])
    return frozenset(found - {0})


def _plus(cost: tuple, parentheses: int, divisions: int, products: int, differences: int) -> tuple:
    p, d, m, s = cost
    return p + int(parentheses), d + divisions, m + products, s + differences


def _partitions(items: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All ordered splits of a multiset into two parts that are not empty, without repeats."""
    found = set()
    for pick in range(1, 2 ** len(items) - 1):
        left = tuple(x for i, x in enumerate(items) if pick >> i & 1)
        right = tuple(x for i, x in enumerate(items) if not pick >> i & 1)
        found.add((left, right))
    return sorted(found)


def evaluate(text: str) -> tuple[Fraction, list[int]] | None:
    """Value and numbers of an expression of integers, + - * / and parentheses; None if it is not one."""
    if not EXPRESSION.fullmatch(text):
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        numbers: list[int] = []
        return _value(tree, numbers), numbers
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _value(node: ast.AST, numbers: list[int]) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        numbers.append(node.value)
        return Fraction(node.value)
    if isinstance(node, ast.BinOp):
        a, b = _value(node.left, numbers), _value(node.right, numbers)
        if isinstance(node.op, ast.Add):
            return a + b
        if isinstance(node.op, ast.Sub):
            return a - b
        if isinstance(node.op, ast.Mult):
            return a * b
        if isinstance(node.op, ast.Div):
            return a / b
    raise ValueError("not an expression of the game")


def steps(text: str) -> list[str] | None:
    """The evaluation, one operation a line, `3*5=15`, `15+7=22`; None if the text is not an expression.

    Innermost operations come first, then left to right. The line of a result that is no integer is `7/2=?`, and the
    last one.
    """
    if not EXPRESSION.fullmatch(text):
        return None
    lines: list[str] = []

    def value(node: ast.AST) -> int | None:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if not isinstance(node, ast.BinOp) or type(node.op) not in SIGNS:
            raise ValueError("not an expression of the game")
        a = value(node.left)
        b = value(node.right) if a is not None else None
        if a is None or b is None:
            return None
        exact = _value(ast.BinOp(ast.Constant(a), node.op, ast.Constant(b)), [])
        whole = int(exact) if exact.denominator == 1 else None
        lines.append(f"{a}{SIGNS[type(node.op)]}{b}={'?' if whole is None else whole}")
        return whole

    try:
        value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None
    return lines


def solves(text: str, numbers: list[int], target: int) -> bool:
    """Whether the expression uses each number exactly once and gives the target."""
    found = evaluate(text)
    return found is not None and found[0] == target and sorted(found[1]) == sorted(numbers)


def reached(t: Trajectory) -> str | None:
    """What the answer of a judged trajectory comes to, whatever the target, as text: something to vote on.

    None if it is no expression, or does not use each of the given numbers exactly once.
    """
    found = evaluate(t.info["answer"] or "")
    return str(found[0]) if found and sorted(found[1]) == sorted(t.problem.data["numbers"]) else None


class Countdown:
    """The `countdown` task. `wording` is `compact` (for the seed models) or `plain` (for instructed models)."""

    family = "countdown"

    def __init__(self, levels: tuple[str, ...] = DEFAULT, wording: str = "compact") -> None:
        self.categories = check_levels(self.family, levels, parse_level, "3x12, 3x20 or 4x12")
        self.name = f"{self.family}:{','.join(levels)}"
        self.wording = wording
        most = max(parse_level(level)[0] for level in levels)
        self.max_tokens = 3 * most + 2 * most if wording == "compact" else 512

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """Random numbers, then a random target among those that they can reach."""
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        count, largest = parse_level(category)
        while True:
            numbers = rng.integers(1, largest + 1, count).tolist()
            reachable = targets(tuple(sorted(numbers)))
            if not reachable:
                continue
            target = reachable[int(rng.integers(len(reachable)))]
            key = key_of(self.family, [sorted(numbers), target])
            if split_of(key) == split:
                return self.problem(numbers, target, category)

    def problem(self, numbers: list[int], target: int, category: str = "", origin: str | None = None) -> Problem:
        """The problem of these numbers and this target, also where neither came from `draw`."""
        key = key_of(self.family, [sorted(numbers), target])
        listed = ",".join(map(str, numbers))
        if self.wording == "compact":
            text = f"{listed}>{target}:"
        else:
            text = (
                f"Use each of the numbers {listed.replace(',', ', ')} exactly once with + - * / and parentheses to "
                f"make {target}. End with <answer>the expression</answer>."
            )
        data = {"numbers": numbers, "target": target}
        return Problem(key, one_user(text), data, category, self.name, origin=origin)

    def score(self, problem: Problem, completion: str) -> Score:
        """1 if the final expression solves the problem, else 0."""
        answer = final_answer(completion)
        right = answer is not None and solves(answer, problem.data["numbers"], problem.data["target"])
        return Score(float(right), answer)

    def gold(self, problem: Problem) -> Demo | None:
        """The simplest solution."""
        found = solutions(tuple(sorted(problem.data["numbers"]))).get(problem.data["target"])
        if found is None:
            return None
        return [Piece(found if self.wording == "compact" else f"<answer>{found}</answer>")]
