"""The numbers in a program as variables (`search.tune` optimises them).

Which ones: numeric literals inside the EVOLVE blocks, default values of parameters among them, with a minus in front.
Not those that say how things are laid out (indices, slices, arguments of range, whole numbers for keywords such as
axis=0), unless asked, and never those in decorators, annotations, f-strings and targets of assignments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
import numpy as np
from jaxtyping import Float

from evolvent.search.variation.fragments import written
from evolvent.search.variation.tree import Site, program

DIGITS = 8  # significant digits of a constant that is written
LARGEST = 1e300  # of a constant that was moved


@dataclass(frozen=True)
class Constant:
    """A number in a program: line from 1, column from 0 in characters, its value, whether it is a whole number."""

    line: int
    column: int
    value: float
    integer: bool


def constants(source: str, shapes: bool = False) -> list[Constant]:
    """The exposed numbers of a program, in the order of the text; with `shapes` also those for the layout.

    Raises cst.ParserSyntaxError, SyntaxError, or UserError for the marks.
    """
    p = program(source)
    found = []
    for site in _sites(source, shapes):
        line = p.place(site.start)[0]
        literal = _literal(site)
        sign = 1 if literal is site.node else -1
        value = sign * float(literal.evaluated_value)
        found.append(Constant(line, site.start - p.starts[line - 1], value, isinstance(literal, cst.Integer)))
    return found


def with_constants(source: str, values: Sequence[float], shapes: bool = False) -> str:
    """The program with the values in the place of those that `constants` lists; whole numbers stay whole.

    Those that do not differ keep their text. Raises ValueError for a wrong count and for values that are not finite.
    """
    edits = []
    for site, old, value in zip(_sites(source, shapes), constants(source, shapes), values, strict=True):
        if not math.isfinite(value):
            raise ValueError(f"the value {value} for the constant at line {old.line} is not finite")
        new = round(value) if old.integer else float(f"{value:.{DIGITS}g}")
        if new != old.value:
            text = repr(new)
            signed = isinstance(site.node, cst.UnaryOperation) and not site.node.lpar  # then a minus can stand there
            edits.append((site.start, site.end, text if new >= 0 or site.bare or signed else f"({text})"))
    return written(source, edits)


def moved(start: Sequence[Constant], point: Float[np.ndarray, " constants"]) -> list[float]:
    """Values at a point, 0 being where they are: a coordinate is the logarithm of a factor for positive constants that
    are not whole, which so stay positive, else a shift in units of the constant (1 at least; 4 for whole numbers)."""
    found = []
    for constant, z in zip(start, point.tolist(), strict=True):
        if constant.value > 0 and not constant.integer:
            value = constant.value * math.exp(min(max(z, -50.0), 50.0))
        else:
            value = constant.value + z * max(abs(constant.value), 4.0 if constant.integer else 1.0)
        found.append(min(max(value, -LARGEST), LARGEST))
    return found


def _sites(source: str, shapes: bool) -> list[Site]:
    p = program(source)
    found = [site for site in p.numbers if math.isfinite(float(_literal(site).evaluated_value))]
    return sorted((site for site in found if shapes or not site.shape), key=lambda site: site.start)


def _literal(site: Site) -> cst.Integer | cst.Float:
    node = site.node.expression if isinstance(site.node, cst.UnaryOperation) else site.node
    assert isinstance(node, cst.Integer | cst.Float)
    return node
