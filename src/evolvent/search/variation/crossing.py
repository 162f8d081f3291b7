"""Crossing two programs: a part of another parent in the place of the like part here."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import numpy as np

from evolvent.search.variation.fragments import (
    DEFINITIONS,
    KINDS,
    Donors,
    choose,
    fitted,
    site_of,
    statement,
    stretch_at,
    written,
)
from evolvent.search.variation.tree import Program, Statement


def cross(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """A part of another parent in the place of the like part here: an EVOLVE block, the body of a function of the same
    name, a statement of the same type, or an expression of the same kind."""
    if not donors.parents:
        return None
    other = choose(rng, donors.parents)
    ways: list[Callable[[Program, Program, np.random.Generator], str | None]] = [
        _cross_block,
        _cross_function,
        _cross_statement,
        _cross_expression,
    ]
    for way in rng.permutation(len(ways)):
        text = ways[int(way)](p, other, rng)
        if text is not None and text != p.source:
            return text
    return None


def _cross_block(p: Program, other: Program, rng: np.random.Generator) -> str | None:
    if len(p.spans) != len(other.spans) or 1 in (p.spans[0].first, other.spans[0].first):  # one without marks
        return None
    i = int(rng.integers(len(p.spans)))
    ours, theirs = p.spans[i], other.spans[i]
    return p.cut(ours.first, ours.last, other.lines[theirs.first - 1 : theirs.last])


def _cross_function(p: Program, other: Program, rng: np.random.Generator) -> str | None:
    bodies = {suite[0].owner.name.value: suite for suite in other.suites if suite and _function(suite)}  # type: ignore[attr-defined]
    ours = [suite for suite in p.suites if suite and _function(suite) and suite[0].owner.name.value in bodies]  # type: ignore[attr-defined]
    ours = [suite for suite in ours if any(span.holds(suite[0].first, suite[-1].last) for span in p.spans)]
    if not ours:
        return None
    body = choose(rng, ours)
    theirs = bodies[body[0].owner.name.value]  # type: ignore[attr-defined]
    return _put(p, body[0], body[-1], other, theirs[0], theirs[-1], rng, True)


def _cross_statement(p: Program, other: Program, rng: np.random.Generator) -> str | None:
    def sort(s: Statement) -> type:
        return type(s.node.body[0]) if isinstance(s.node, cst.SimpleStatementLine) else type(s.node)

    ours = [s for s in p.statements if s.free and not isinstance(s.node, DEFINITIONS)]
    pairs = [(a, b) for a in ours for b in other.statements if sort(a) is sort(b)]
    if not pairs:
        return None
    a, b = choose(rng, pairs)
    return _put(p, a, a, other, b, b, rng)


def _cross_expression(p: Program, other: Program, rng: np.random.Generator) -> str | None:
    site = site_of(p, rng, KINDS)
    found = [s for s in other.sites if s.kind == site.kind] if site else []
    if site is None or not found:
        return None
    text = fitted(other.text(choose(rng, found).node), p, site.start, rng, site.bare)
    return written(p.source, [(site.start, site.end, text)]) if text is not None else None


def _function(suite: list[Statement]) -> bool:
    return isinstance(suite[0].owner, cst.FunctionDef)


def _put(
    p: Program,
    a: Statement,
    b: Statement,
    other: Program,
    c: Statement,
    d: Statement,
    rng: np.random.Generator,
    recursive: bool = False,
) -> str | None:
    """Statements `a` to `b` replaced by `c` to `d` of another parent."""
    part = statement(other.part(c.first, d.last), p, stretch_at(p, a), rng, recursive)
    return p.cut(a.first, b.last, part.part(1, len(part.lines), a.indent)) if part else None
