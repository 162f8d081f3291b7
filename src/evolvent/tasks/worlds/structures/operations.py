"""What the scripted solver understands: steps are sentences, and each is a real operation on the problem's text.

A step gets the question and what the step before has given, a text or a list of texts, and gives one of the two. What
is in no form that stands here does nothing, as a step that says `think` does; what cannot be done fails.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Value = str | list[str]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
SIGNS: Mapping[type, Callable[..., int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.USub: operator.neg
}  # fmt: skip


@dataclass(frozen=True)
class Operation:
    """An operation: its sentence, with {a} and {b} for pieces of text; what it takes, `text` or `list`; where it
    belongs in a plan: take, list, work, sum or write."""

    says: str
    takes: str
    place: str
    act: Callable[..., Value]

    @property
    def form(self) -> re.Pattern[str]:
        """What it is recognised by."""
        return re.compile(re.escape(self.says).replace(r"\{a\}", "(.+?)").replace(r"\{b\}", "(.+?)"), re.DOTALL)


def _between(question: str, text: str, a: str, b: str) -> str:
    _, found, rest = question.partition(a)
    inner, closed, _ = rest.partition(b)
    if not found or not closed:
        raise ValueError(f"{a!r} and {b!r} are not there")
    return inner.strip()


def _after(question: str, text: str, a: str) -> str:
    _, found, rest = question.partition(a)
    if not found:
        raise ValueError(f"{a!r} is not there")
    return rest.strip()


def _after_colon(question: str, text: str) -> str:
    _, found, rest = question.rpartition(":")
    if not found:
        raise ValueError("there is no colon")
    return rest.strip()


def _sorted(words: list[str], down: bool) -> list[str]:
    try:
        return sorted(words, key=float, reverse=down)
    except ValueError:
        return sorted(words, reverse=down)


def _asked_order(question: str, words: list[str]) -> list[str]:
    last = max(("ascending", "descending"), key=question.lower().rfind)
    if last not in question.lower():
        raise ValueError("the question names no order")
    return _sorted(words, last == "descending")


def _kept(question: str, words: list[str]) -> list[str]:
    match = re.search(r"\b(keep|remove)\b.*?\b(larger|greater|smaller|less) than ([-\d.]+\d)", question.lower())
    if match is None:
        raise ValueError("the question asks to keep or remove nothing")
    larger, bound = match[2] in ("larger", "greater"), float(match[3])
    chosen = [w for w in words if (float(w) > bound if larger else float(w) < bound)]
    return chosen if match[1] == "keep" else [w for w in words if w not in chosen]


def _picked(question: str, words: list[str]) -> str:
    last = max(("largest", "smallest"), key=question.lower().rfind)
    plain = {w: float(w.replace(",", "")) for w in words}
    return (max if last == "largest" else min)(plain, key=lambda w: plain[w])


def _worked_out(question: str, text: str) -> str:
    return str(_value(ast.parse(text.strip().rstrip("=.? \n").strip(), mode="eval").body))


def _value(node: ast.expr) -> int:
    match node:
        case ast.Constant(int(number)):
            return number
        case ast.UnaryOp(op, inner) if type(op) in SIGNS:
            return int(SIGNS[type(op)](_value(inner)))
        case ast.BinOp(a, op, b) if type(op) in SIGNS:
            return int(SIGNS[type(op)](_value(a), _value(b)))
        case ast.BinOp(a, ast.Div(), b):
            whole, rest = divmod(_value(a), _value(b))
            if not rest:
                return whole
    raise ValueError("this is no arithmetic with whole numbers")


def _whole(words: Sequence[str]) -> list[int]:
    if not words:
        raise ValueError("the list is empty")
    return [int(w) for w in words]


def _primes(question: str, words: list[str]) -> str:
    return str(_primes_between(*_whole(words)))


@lru_cache(maxsize=256)
def _primes_between(low: int, high: int) -> int:
    if high > 10**6:
        raise ValueError("these numbers are too large")
    sieve = bytearray([0, 0] + [1] * high)
    for i in range(2, math.isqrt(high) + 1):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(sieve[i * i :: i]))
    return sum(sieve[max(low, 0) : high + 1])


def _letter(question: str, words: list[str]) -> str:
    letter, text = words
    return str(text.lower().count(letter.lower()))


def _pieces(text: str) -> list[str]:
    return [piece.strip() for piece in text.split(",")]


def _quoted(text: str) -> list[str]:
    return [a or b for a, b in QUOTED.findall(text)]


def _listed(found: list[str]) -> list[str]:
    if not found:
        raise ValueError("there is nothing to list")
    return found


LIBRARY: tuple[Operation, ...] = (
    Operation("Take what stands between '{a}' and '{b}'.", "text", "take", _between),
    Operation("Take what stands after '{a}'.", "text", "take", _after),
    Operation("Take what follows the last colon.", "text", "take", _after_colon),
    Operation("List the numbers.", "text", "list", lambda q, v: _listed(NUMBER.findall(v))),
    Operation("List the pieces in quotes.", "text", "list", lambda q, v: _listed(_quoted(v))),
    Operation(
        "Split the list of words at its commas.", "text", "list", lambda q, v: _listed(_pieces(v)),
    ),
    Operation(
        "Split the candidates at the spaces.", "text", "list", lambda q, v: _listed(v.rstrip(".?").split())
    ),
    Operation("Sort the list in ascending order.", "list", "work", lambda q, v: _sorted(v, False)),
    Operation("Sort the list in descending order.", "list", "work", lambda q, v: _sorted(v, True)),
    Operation("Sort the list in the order asked for, ascending or descending.", "list", "work", _asked_order),
    Operation("Reverse the list.", "list", "work", lambda q, v: v[::-1]),
    Operation("Keep or remove the entries that are larger or smaller than the number named.", "list", "work", _kept),
    Operation("Spell the word backward.", "text", "sum", lambda q, v: v.strip()[::-1]),
    Operation("Calculate the answer to the arithmetic problem.", "text", "sum", _worked_out),
    Operation("Find the greatest common divisor of the list.", "list", "sum", lambda q, v: str(math.gcd(*_whole(v)))),
    Operation("Find the least common multiple of the list.", "list", "sum", lambda q, v: str(math.lcm(*_whole(v)))),
    Operation("Calculate the product, a multiplication.", "list", "sum", lambda q, v: str(math.prod(_whole(v)))),
    Operation("Calculate the total.", "list", "sum", lambda q, v: str(sum(_whole(v)))),
    Operation("Count the entries of the list.", "list", "sum", lambda q, v: str(len(v))),
    Operation(
        "Count the 1 bits in the binary representation.", "list", "sum", lambda q, v: str(_whole(v)[-1].bit_count())
    ),
    Operation("Count the prime numbers between the two, inclusive.", "list", "sum", _primes),
    Operation("Count how many times the letter appears in the text.", "list", "sum", _letter),
    Operation("Pick the largest or smallest number, as asked.", "list", "sum", _picked),
    Operation("Write it as a comma-separated list.", "list", "write", lambda q, v: ", ".join(v)),
    Operation("Write each in quotes, in square brackets, the same format.", "list", "write", lambda q, v: str(v)),
)  # fmt: skip
PLACES = ("take", "list", "work", "sum", "write")
FIXED = (  # the generic ones that a fixed list of modules has; they may be adapted to others of the same verb
    "Take what follows the last colon.", "List the numbers.", "Split the list of words at its commas.",
    "Sort the list in ascending order.", "Reverse the list.", "Calculate the total.", "Count the entries of the list.",
    "Write it as a comma-separated list.",
)  # fmt: skip
ALONE = (FIXED[0], "Calculate the answer to the arithmetic problem.")  # of chain-of-thought: to work out what is asked


@dataclass(frozen=True)
class Filled:
    """A structure filled in for one question: the value of each step, and what went wrong, at which one (-1:
    nothing)."""

    values: tuple[Value, ...]
    answer: str | None
    failed: int = -1
    why: str = ""


FORMS = [(operation, operation.form) for operation in LIBRARY]


@lru_cache(maxsize=4096)
def understood(sentence: str) -> tuple[Operation, tuple[str, ...]] | None:
    """The operation that a sentence names, and its pieces of text."""
    for operation, form in FORMS:
        if match := form.fullmatch(sentence.strip()):
            return operation, match.groups()
    return None


def fill(structure: Mapping[str, str], question: str) -> Filled:
    """Carry out the steps in their order. The last value is the answer; a list is none."""
    value: Value = question
    values: list[Value] = []
    for i, sentence in enumerate(structure.values()):
        found = understood(sentence)
        if found is not None:
            operation, pieces = found
            if isinstance(value, list) != (operation.takes == "list"):
                kind = "list" if isinstance(value, list) else "text"
                return Filled(tuple(values), None, i, f"this step takes a {operation.takes}, and there is a {kind}")
            try:
                value = operation.act(question, value, *pieces)
            except (ValueError, SyntaxError, OverflowError, RecursionError, ZeroDivisionError, TypeError) as reason:
                return Filled(tuple(values), None, i, str(reason))
        values.append(value)
    return Filled(tuple(values), value if isinstance(value, str) else None)
