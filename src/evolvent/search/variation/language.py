"""A restricted language of edits, for policies too small to write Python: two or three characters an edit.

    +pc   put statement c of the menu before the one at place p          -p    delete the one at p
    =pc   put it in the place of the one at p                            ^pq   exchange those at p and q
    *kf   multiply the k-th number by factor f

p, q, k and c are one character of `SIGNS`, f is a digit. The menu holds the statements of the task's component library,
then those of the seed program. Places and numbers are counted over the statements of the EVOLVE blocks, and after each
edit anew. An answer is up to `MOST` edits, one after the other. Every statement that is put somewhere is whole, so that
most random edits leave a program that can be run; what it is worth is for the evaluation to say.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evolvent.search.variation.blocks import Span, blocks
from evolvent.search.variation.edits import EditError

SIGNS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
FACTORS = (0.1, 0.3, 0.5, 0.8, 0.95, 1.05, 1.25, 2.0, 3.0, 10.0)
SIZES = {"+": 3, "=": 3, "-": 2, "^": 3, "*": 3}  # characters of an edit, by its first
MOST = 4
UNKNOWN = "."  # in the place of a statement that is not on the menu
MORE = 0.3  # probability that a random answer has one more edit
DIGITS = 8  # significant digits of a number that is written


@dataclass(frozen=True)
class Place:
    """A statement of a program: its lines from 1, its indentation, its normal text, and its numbers."""

    first: int
    last: int
    indent: str
    text: str


@dataclass(frozen=True)
class Number:
    """A number of a program: line from 1, columns from 0 in bytes, its value."""

    line: int
    start: int
    end: int
    value: int | float


@lru_cache(10_000)
def places(source: str) -> tuple[Place, ...]:
    """The statements of the EVOLVE blocks that can be named, in the order of the text.

    Left out are docstrings, definitions themselves (not what is in them), and what shares a line with another one.
    Raises SyntaxError for what is no Python.
    """
    spans, lines, found = blocks(source), source.split("\n"), []
    for node in _statements(_tree(source).body):
        first, last = node.lineno, node.end_lineno or node.lineno
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _inside(spans, first, last):
            indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
            alone = (
                node.col_offset == len(indent) and lines[last - 1].encode()[node.end_col_offset :].strip()[:1] != b";"
            )
            if alone and not _is_text(node):
                found.append(Place(first, last, indent, ast.unparse(node)))
    return tuple(found[: len(SIGNS)])


@lru_cache(10_000)
def numbers(source: str) -> tuple[Number, ...]:
    """The numbers of the EVOLVE blocks, in the order of the text; those in indices and slices are left out."""
    spans, found = blocks(source), []

    def look(node: ast.AST) -> None:
        if (
            isinstance(node, ast.Constant)
            and type(node.value) in (int, float)
            and _inside(spans, node.lineno, node.lineno)
        ):
            found.append(Number(node.lineno, node.col_offset, node.end_col_offset or 0, node.value))  # type: ignore[arg-type]
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.Subscript) and child is node.slice) and not isinstance(child, ast.JoinedStr):
                look(child)

    look(_tree(source))
    return tuple(sorted(found, key=lambda n: (n.line, n.start)))[: len(SIGNS)]


@lru_cache(16)
def _tree(source: str) -> ast.Module:
    return ast.parse(source)


def menu(components: Sequence[str], seed: str) -> tuple[str, ...]:
    """The statements that edits may put into programs: those of a library, then those of the seed program.

    Expressions of the library are left out, and so is what there is no sign for.
    """
    texts = [textwrap.dedent(text).strip() for text in components]
    texts = [text for text in texts if _is_statement(text)] + [place.text for place in places(seed)]
    return tuple(dict.fromkeys(ast.unparse(ast.parse(text)) for text in texts))[: len(SIGNS)]


def listing(source: str, choices: Sequence[str], room: int = 10_000) -> str:
    """What a policy sees of a program: how many numbers it has, then the sign of each place and of its statement.

    Of a program for which there is no room in so many characters the last statements are shown.
    """
    signs = dict(zip(choices, SIGNS, strict=False))
    pairs = [SIGNS[i] + signs.get(place.text, UNKNOWN) for i, place in enumerate(places(source))]
    head = f"#{len(numbers(source))}|"
    return head + "".join(pairs[max(0, len(pairs) - max(0, room - len(head)) // 2) :])


def apply(source: str, answer: str, choices: Sequence[str]) -> str:
    """The program after the edits of an answer. `EditError` for what is no edit, or names what is not there."""
    answer, count = answer.strip(), 0
    if not answer:
        raise EditError("the answer holds no edit")
    while answer:
        size, count = SIZES.get(answer[0], 0), count + 1
        if not size or len(answer) < size or count > MOST:
            raise EditError(f"the answer goes on with {answer[:3]!r}, which is no edit, or one too many")
        source, answer = _one(source, answer[:size], choices), answer[size:]
    return source


def drawn(source: str, choices: Sequence[str], rng: np.random.Generator) -> str:
    """A random answer that can be applied: one edit or more, each of a kind drawn uniformly, as what it names is."""
    answer = ""
    for _ in range(MOST):
        if (edit := _drawn(source, choices, rng)) is None:
            break
        answer, source = answer + edit, _one(source, edit, choices)
        if rng.random() >= MORE:
            break
    return answer


def _drawn(source: str, choices: Sequence[str], rng: np.random.Generator) -> str | None:
    try:
        here, there = len(places(source)), len(numbers(source))
    except SyntaxError:
        return None
    kinds = [k for k, n in (("+", here), ("=", here), ("-", here), ("^", here - 1), ("*", there)) if n > 0]
    if not kinds:
        return None
    kind = kinds[int(rng.integers(len(kinds)))]
    if kind == "*":
        return kind + SIGNS[int(rng.integers(there))] + SIGNS[int(rng.integers(len(FACTORS)))]
    if kind == "^":
        pair = sorted(rng.permutation(here)[:2].tolist())
        first, second = (places(source)[i] for i in pair)
        return kind + SIGNS[pair[0]] + SIGNS[pair[1]] if first.last < second.first else "-" + SIGNS[pair[1]]
    place = kind + SIGNS[int(rng.integers(here))]
    return place if kind == "-" else place + SIGNS[int(rng.integers(len(choices)))]


def _one(source: str, edit: str, choices: Sequence[str]) -> str:
    try:
        there, named = places(source), numbers(source)
    except SyntaxError:
        raise EditError("the edits before this one leave no Python") from None
    kind, (at, *rest) = edit[0], [SIGNS.find(sign) for sign in edit[1:]]
    what = (named, FACTORS) if kind == "*" else (there, there) if kind == "^" else (there, choices)
    for i, among in zip((at, *rest), what, strict=False):
        if not 0 <= i < len(among):
            raise EditError(f"the edit {edit} names something that is not there")
    lines = source.split("\n")
    if kind == "*":
        return "\n".join(_scaled(lines, named[at], FACTORS[rest[0]]))
    place = there[at]
    if kind == "^":
        first, second = sorted((place, there[rest[0]]), key=lambda p: p.first)
        if first.last >= second.first:
            raise EditError(f"the edit {edit} exchanges a statement with itself, or with one that is in it")
        lines[second.first - 1 : second.last] = _indented(first.text, second.indent)
        lines[first.first - 1 : first.last] = _indented(second.text, first.indent)
        return "\n".join(lines)
    new = _indented(choices[rest[0]], place.indent) if rest else []
    lines[place.first - 1 : place.first - 1 if kind == "+" else place.last] = new
    return "\n".join(lines)


def _scaled(lines: list[str], number: Number, factor: float) -> list[str]:
    """The lines with a number multiplied; a whole number stays whole, and moves by at least one."""
    value: int | float = number.value * factor
    if isinstance(number.value, int):
        value = round(value) if round(value) != number.value else number.value + (1 if factor > 1 else -1)
    else:
        value = float(f"{value:.{DIGITS}g}")
    text, line = repr(value) if value >= 0 else f"({value!r})", lines[number.line - 1].encode()
    lines[number.line - 1] = (line[: number.start] + text.encode() + line[number.end :]).decode()
    return lines


def _indented(text: str, indent: str) -> list[str]:
    return [indent + line if line else line for line in text.split("\n")]


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, in the order of the text, those inside of others after them."""
    for node in body:
        yield node
        for name in ("body", "orelse", "handlers", "finalbody"):
            for inner in getattr(node, name, []):
                yield from _statements(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def _inside(spans: Sequence[Span], first: int, last: int) -> bool:
    return any(span.holds(first, last) for span in spans)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_statement(text: str) -> bool:
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    return len(body) == 1 and not isinstance(body[0], ast.Expr)
