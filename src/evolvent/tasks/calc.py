"""Calc: work out an expression with a calculator tool that does one operation a call.

    12*7+5?  [12*7]  84  [84+5]  89  =89        (the policy writes the brackets and the last part)

Models with a tool format of their own call `calculator` in that format instead of writing brackets.
Levels are `{digits}x{operations}`, operators + - and *. The numbers are chosen so that mental arithmetic does not
reach far: the tool does, if the policy breaks the expression up in the right order. An outcome is all or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from evolvent.core.records import Problem
from evolvent.tasks.arith import OPERATORS, chain, identity
from evolvent.tasks.base import Demo, Piece, Reply, Score, Split, Tools, check_levels, key_of, one_user, split_of
from evolvent.tasks.extract import final_answer, integer

LEVEL = re.compile(r"(\d+)x(\d+)")
CALL = re.compile(r"\[(-?\d{1,15})([-+*])(-?\d{1,15})\]")
FAILED = "!"
HELP = "the calculator takes one operation on two whole numbers, as in 12*7"
TOOLS = Tools(
    (
        {
            "type": "function",
            "function": {
                "name": "calculator",
                "description": "Works out one operation on two whole numbers.",
                "parameters": {
                    "type": "object",
                    "properties": {"expression": {"type": "string", "description": "One operation, as in 12*7"}},
                    "required": ["expression"],
                },
            },
        },
    ),
    "To use the calculator, write the operation in brackets, as in [12*7], and stop: the result follows.",
)
DEFAULT = ("2x3",)


def parse_level(level: str) -> tuple[int, int]:
    """Digits and operations. Raises ValueError."""
    match = LEVEL.fullmatch(level)
    if not match:
        raise ValueError("want digits x operations")
    digits, operations = int(match[1]), int(match[2])
    if not (1 <= digits <= 6 and 1 <= operations <= 8):
        raise ValueError("digits go from 1 to 6, operations from 1 to 8")
    return digits, operations


def calculate(call: str) -> str:
    """The tool: `[a+b]`, `[a-b]` or `[a*b]` gives the result as text, anything else gives `!`."""
    match = CALL.fullmatch(call)
    return str(OPERATORS[match[2]](int(match[1]), int(match[3]))) if match else FAILED


class Calculator:
    """One episode: every turn that ends in a bracketed call gets the result, any other turn ends the episode."""

    def respond(self, turn: str) -> Reply:
        """Answer a turn of the policy."""
        at = turn.rfind("[")
        if not turn.endswith("]") or at < 0:
            return Reply("", done=True, calls=0)
        result = calculate(turn[at:])
        return Reply(result, note={"failed_calls": int(result == FAILED)})

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Answer a call of the function `calculator`."""
        expression = str(arguments.get("expression", "")).replace(" ", "")
        result = calculate(f"[{expression}]")
        return Reply(HELP if result == FAILED else result, note={"failed_calls": int(result == FAILED)})


class Calc:
    """The `calc` task: several turns, one tool."""

    family = "calc"
    turn_end = "]"  # the policy's turn ends here as well as at its end-of-text token

    def __init__(self, levels: tuple[str, ...] = DEFAULT, wording: str = "compact") -> None:
        self.categories = check_levels(self.family, levels, parse_level, "1x2, 2x3 or 3x4")
        self.name = f"{self.family}:{','.join(levels)}"
        self.wording = wording
        shapes = [parse_level(level) for level in levels]
        self.max_turns = max(o for _, o in shapes) + 3
        self.max_tokens = max((o + 1) * (2 * d * (o + 1) + 4) for d, o in shapes)
        if wording == "plain":
            self.max_tokens += 512

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A random expression of the split; at most one product in a row keeps numbers readable."""
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        digits, operations = parse_level(category)
        low, high = (2 if digits == 1 else 10 ** (digits - 1)), 10**digits
        while True:
            numbers = rng.integers(low, high, operations + 1).tolist()
            operators = ["+-*"[i] for i in rng.integers(0, 3, operations)]
            for i in range(1, operations):
                if operators[i] == operators[i - 1] == "*":
                    operators[i] = "+-"[int(rng.integers(2))]
            key = key_of(self.family, identity(numbers, operators))
            if split_of(key) == split:
                break
        text = str(numbers[0]) + "".join(f"{o}{n}" for o, n in zip(operators, numbers[1:], strict=True))
        lines = chain(numbers, operators)
        data = {"expression": text, "answer": int(lines[-1].rsplit("=", 1)[1]), "lines": lines}
        if self.wording == "compact":
            prompt = text + "?"
        else:
            prompt = (
                f"Work out {text}. You have a calculator for one operation at a time. When you know the result, end "
                "with <answer>the number</answer>."
            )
        return Problem(key, one_user(prompt), data, category, self.name)

    def tools(self, problem: Problem) -> Tools | None:
        """The calculator, for models that are told about it; the compact wording is learned from examples."""
        return None if self.wording == "compact" else TOOLS

    def episode(self, problem: Problem) -> Calculator:
        """The calculator's side of the conversation."""
        return Calculator()

    def score(self, problem: Problem, completion: str) -> Score:
        """Strict on the number of the last turn: `=89` in compact wording, the answer tag otherwise."""
        answer = final_answer(completion)
        if answer is not None and self.wording == "compact":
            answer = answer[1:] if answer.startswith("=") else None
        return Score(float(integer(answer) == problem.data["answer"]), answer)

    def gold(self, problem: Problem) -> Demo:
        """One call for each operation, in the order of the chain, then the result."""
        demo: Demo = []
        for line in problem.data["lines"]:
            call, result = line.rsplit("=", 1)
            demo += [Piece(f"[{call}]"), Piece(result, policy=False)]
        answer = problem.data["answer"]
        return [*demo, Piece(f"={answer}" if self.wording == "compact" else f"<answer>{answer}</answer>")]
