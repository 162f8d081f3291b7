"""Arithmetic: `12+34-5=` wants the result, `12+34-5:` wants a chain of single operations that ends in it.

Levels are `{digits}x{operations}[-mul][-chain]`: `2x3-chain` is four two-digit numbers, joined by + and -, with a
chain of three lines. Without a chain the model has to do all carries in its head.

    chain of 12+34-5:   12+34=46;46-5=41      (products first, then left to right)
"""

from __future__ import annotations

import re
from functools import reduce
from operator import add, mul, sub

import numpy as np

from evolvent.core.records import Problem
from evolvent.tasks.base import Demo, Piece, Score, Split, check_levels, key_of, one_user, split_of
from evolvent.tasks.extract import final_answer, integer

OPERATORS = {"+": add, "-": sub, "*": mul}
LEVEL = re.compile(r"(\d+)x(\d+)(-mul)?(-chain)?")
DEFAULT = ("2x2",)


def parse_level(level: str) -> tuple[int, int, bool, bool]:
    """Digits, operations, with products, with a chain. Raises ValueError."""
    match = LEVEL.fullmatch(level)
    if not match:
        raise ValueError("want digits x operations")
    digits, operations = int(match[1]), int(match[2])
    if not (1 <= digits <= 12 and 1 <= operations <= 12):
        raise ValueError("digits and operations go from 1 to 12")
    return digits, operations, bool(match[3]), bool(match[4])


def chain(numbers: list[int], operators: list[str]) -> list[str]:
    """The lines `a+b=c` that reduce the expression: products first, then sums, left to right."""
    numbers, operators, lines = list(numbers), list(operators), []
    while operators:
        at = operators.index("*") if "*" in operators else 0
        a, op, b = numbers[at], operators.pop(at), numbers.pop(at + 1)
        numbers[at] = OPERATORS[op](a, b)
        lines.append(f"{a}{op}{b}={numbers[at]}")
    return lines


def identity(numbers: list[int], operators: list[str]) -> list[tuple[str, list[int]]]:
    """What makes two expressions the same problem: the multiset of signed products, whatever their order."""
    terms: list[tuple[str, list[int]]] = []
    for sign, number in zip(["+", *operators], numbers, strict=True):
        if sign == "*":
            terms[-1][1].append(number)
        else:
            terms.append((sign, [number]))
    return sorted((sign, sorted(factors)) for sign, factors in terms)


class Arith:
    """The `arith` task. `wording` is `compact` (for the seed models) or `plain` (for instructed models)."""

    family = "arith"

    def __init__(self, levels: tuple[str, ...] = DEFAULT, wording: str = "compact") -> None:
        self.categories = check_levels(self.family, levels, parse_level, "2x1, 3x2, 2x3-chain or 2x2-mul-chain")
        self.name = f"{self.family}:{','.join(levels)}"
        self.wording = wording
        shapes = [parse_level(level) for level in levels]
        # a line holds two running values and the result; none is longer than digits x factors plus a sign
        width = max(d * (o + 1 if m else 1) + 2 for d, o, m, _ in shapes)
        self.max_tokens = max((o * (3 * width + 3) if c else width) for d, o, m, c in shapes) + 2
        if wording == "plain":
            self.max_tokens += 256

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A random expression of the split; a level of at most one digit has few, and repeats soon."""
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        digits, operations, with_products, _ = parse_level(category)
        low, high = (0 if digits == 1 else 10 ** (digits - 1)), 10**digits
        signs = "+-*" if with_products else "+-"
        while True:
            numbers = rng.integers(low, high, operations + 1).tolist()
            operators = [signs[i] for i in rng.integers(0, len(signs), operations)]
            if with_products and "*" not in operators:
                operators[int(rng.integers(operations))] = "*"
            key = key_of(self.family, identity(numbers, operators))
            if split_of(key) == split:
                break
        return self.problem(numbers, operators, category)

    def problem(
        self, numbers: list[int], operators: list[str], category: str = "", origin: str | None = None
    ) -> Problem:
        """The problem of this expression, also where it did not come from `draw`."""
        text = str(numbers[0]) + "".join(f"{o}{n}" for o, n in zip(operators, numbers[1:], strict=True))
        lines = chain(numbers, operators)
        with_chain = bool(category) and parse_level(category)[3]
        answer = int(lines[-1].rsplit("=", 1)[1])
        data = {"expression": text, "answer": answer, "lines": lines, "chain": with_chain}
        key = key_of(self.family, identity(numbers, operators))
        return Problem(key, one_user(self._prompt(text, with_chain)), data, category, self.name, origin=origin)

    def read(self, text: str, category: str, origin: str | None = None) -> Problem | None:
        """The problem whose expression is `text`; None if it is not an expression of this level."""
        digits, operations, with_products, _ = parse_level(category)
        if not re.fullmatch(r"\d+([-+*]\d+)*", text):
            return None
        numbers, operators = re.findall(r"\d+", text), re.findall(r"[-+*]", text)
        if len(operators) != operations or ("*" in operators) != with_products:
            return None
        if any(len(n) != digits or (n[0] == "0" and digits > 1) for n in numbers):
            return None
        return self.problem([int(n) for n in numbers], operators, category, origin)

    def _prompt(self, text: str, with_chain: bool) -> str:
        if self.wording == "compact":
            return text + (":" if with_chain else "=")
        steps = "Work step by step, one operation a line, as `a+b=c`. " if with_chain else ""
        return f"Compute {text}. {steps}End with <answer>the number</answer>."

    def score(self, problem: Problem, completion: str) -> Score:
        """Strict on the final number. Shaping `lines`: the share of chain lines that are right at their place."""
        answer = final_answer(completion)
        if answer is not None and self.wording == "compact" and problem.data["chain"]:
            answer = answer.rsplit("=", 1)[1] if "=" in answer else None
        right = integer(answer) == problem.data["answer"]
        shaping = {}
        if problem.data["chain"]:
            checked = check_lines(problem, completion)
            shaping["lines"] = sum(checked) / len(problem.data["lines"])
        return Score(float(right), answer, shaping)

    def gold(self, problem: Problem) -> Demo:
        """The chain or the number, in the wording that was asked for."""
        compact = self.wording == "compact"
        lines, answer = problem.data["lines"], str(problem.data["answer"])
        if compact:
            return [Piece(";".join(lines) if problem.data["chain"] else answer)]
        return [Piece(("\n".join(lines) + "\n" if problem.data["chain"] else "") + f"<answer>{answer}</answer>")]


def check_lines(problem: Problem, completion: str) -> list[bool]:
    """For each line of the reference chain, whether the completion has it at that place."""
    written = [line.strip() for line in re.split(r"[;\n]", completion)]
    return [i < len(written) and written[i] == line for i, line in enumerate(problem.data["lines"])]


def evaluate(text: str) -> int | None:
    """Value of an expression of integers, + - and *, or None if it is not one."""
    if not re.fullmatch(r"\d+([-+*]\d+)*", text):
        return None
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    operators = re.findall(r"[-+*]", text)
    lines = chain(numbers, operators)
    return int(lines[-1].rsplit("=", 1)[1]) if lines else reduce(lambda a, _: a, numbers)
