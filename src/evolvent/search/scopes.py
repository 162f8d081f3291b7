"""Scopes: a program's surface divided into parts, each of which one specialist may change, and nobody else.

Each EVOLVE block is a scope, named by what it defines. A program of a single block, or without marks, has a scope for
each function, class and constant at the top level of it; with less than two of these it is one scope.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evolvent.search.changes import change
from evolvent.search.variation.blocks import MARK, Span, blocks
from evolvent.search.variation.syntax import mutate


@dataclass(frozen=True)
class Scope:
    """Lines of a program that belong together; from 1, both included."""

    name: str
    first: int
    last: int


def scopes(source: str) -> list[Scope]:
    """The parts of a program, in order; names are unique."""
    spans = blocks(source)
    if len(spans) > 1:
        found = [(_named(_text(source, span)) or f"block {i}", span) for i, span in enumerate(spans, start=1)]
    else:
        found = _definitions(source, spans[0])
        if len(found) < 2:
            found = [(_named(_text(source, spans[0])) or "program", spans[0])]
    names: list[str] = []
    for name, _ in found:
        names.append(name if name not in names else f"{name} ({names.count(name) + 1})")
    return [Scope(name, span.first, span.last) for name, (_, span) in zip(names, found, strict=True)]


def scope_named(source: str, name: str) -> Scope | None:
    """The scope of that name; None if the program has none."""
    return next((scope for scope in scopes(source) if scope.name == name), None)


def within_scope(before: str, after: str, scope: Scope) -> bool:
    """Whether all lines outside of the scope are as they were; white space at their ends does not count."""
    old, new = ([line.rstrip() for line in text.rstrip().split("\n")] for text in (before, after))
    head, tail = old[: scope.first - 1], old[scope.last :]
    if len(new) < len(head) + len(tail):
        return False
    return new[: len(head)] == head and new[len(new) - len(tail) :] == tail


def radius(before: str, after: str) -> int:
    """How far an edit goes: lines that went or lines that came, whichever are more."""
    made = change(before, after)
    gone = sum(line.startswith("-") for line in made)
    return max(gone, len(made) - gone)


OTHER = "EVOLVE_BLOCK"


def varied(
    source: str, scope: Scope | None, rng: np.random.Generator, library: Sequence[str]
) -> tuple[str, str] | None:
    """The program with a change of the syntax tree within the scope, or anywhere without one; and the operator. None
    where nothing was found."""
    if scope is None:
        made = mutate(source, rng, (), library)
        return None if made.operator == "none" else (made.source, made.operator)
    lines = source.replace("EVOLVE-BLOCK", OTHER).split("\n")
    part = lines[scope.first - 1 : scope.last]
    indent = next((line[: len(line) - len(line.lstrip())] for line in part if line.strip()), "")
    marked = [f"{indent}# EVOLVE-BLOCK-START", *part, f"{indent}# EVOLVE-BLOCK-END"]
    made = mutate("\n".join([*lines[: scope.first - 1], *marked, *lines[scope.last :]]), rng, (), library)
    if made.operator == "none":
        return None
    text = "\n".join(line for line in made.source.split("\n") if not MARK.search(line))
    return text.replace(OTHER, "EVOLVE-BLOCK"), made.operator


def _text(source: str, span: Span) -> str:
    return textwrap.dedent("\n".join(source.split("\n")[span.first - 1 : span.last]))


def _named(text: str) -> str:
    """What a text defines at its top level, in words; empty if that is nothing, or it is no Python."""
    try:
        return ", ".join(dict.fromkeys(name for node in ast.parse(text).body for name in _names(node)))
    except SyntaxError:
        return ""


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    return []


def _definitions(source: str, span: Span) -> list[tuple[str, Span]]:
    """Functions, classes and constants at the top level of a program, those inside of the span."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return []
    found = []
    for node in body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        last = node.end_lineno or node.lineno
        if (names := _names(node)) and span.holds(first, last):
            found.append((", ".join(names), Span(first, last)))
    return found
