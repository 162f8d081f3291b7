"""Variation without a model: operators on the syntax tree of a Python program.

An operator takes a program, a generator and donors (a component library, other parents), and gives a new text, or None
where it has nothing to do. It changes only what is inside the EVOLVE blocks. `mutate` draws operators until one gives a
sound program: it compiles, differs in its normal form, keeps the signatures of functions, and uses no name that is not
bound. Default values of parameters keep their place, but their numbers may be tuned.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced

import libcst as cst
import numpy as np

from evolvent.search.variation.crossing import cross
from evolvent.search.variation.fragments import (
    BROKEN,
    DEFINITIONS,
    KINDS,
    Donors,
    choose,
    expression,
    fitted,
    movable,
    only,
    site_of,
    sound,
    statement,
    stretch_at,
    written,
)
from evolvent.search.variation.names import BUILTINS, Stretch
from evolvent.search.variation.tree import Loop, Program, Site, Statement, closed, program

Operator = Callable[[Program, np.random.Generator, Donors], str | None]

SIGMA = 0.3  # step of a tuned constant, in units of its logarithm
DRAWN = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 10.0, 100.0)  # what a constant is now and then replaced by
REDRAW = 0.1

ARITHMETIC: dict[str, tuple[str, ...]] = {
    "+": ("-", "*"),
    "-": ("+", "*", "/"),
    "*": ("+", "-", "/"),
    "/": ("*", "-", "//"),
    "//": ("/", "%", "*"),
    "%": ("//", "*"),
    "**": ("*",),
    "&": ("|", "^"),
    "|": ("&", "^"),
    "^": ("&", "|"),
    "<<": (">>",),
    ">>": ("<<",),
    "and": ("or",),
    "or": ("and",),
}
SWITCHED: dict[str, tuple[str, ...]] = {
    "<": ("<=", ">", ">="),
    "<=": ("<", ">=", ">"),
    ">": (">=", "<", "<="),
    ">=": (">", "<=", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "in": ("not in",),
    "not in": ("in",),
    "is": ("is not",),
    "is not": ("is",),
    "+=": ("-=", "*="),
    "-=": ("+=", "*="),
    "*=": ("/=", "+="),
    "/=": ("*=", "-="),
    "//=": ("/=",),
    "%=": ("//=",),
}
CALLS: tuple[tuple[str, ...], ...] = (
    ("min", "max"),
    ("any", "all"),
    ("floor", "ceil"),
    ("sin", "cos"),
    ("exp", "log"),
    ("argmin", "argmax"),
    ("mean", "median"),
)
OF_ONE = (("sum", "max", "min"),)  # the same with one argument


@dataclass(frozen=True)
class Variation:
    """A program text, and the operator that wrote it; "none" with the parent's own text."""

    source: str
    operator: str


def tuned(value: float, integer: bool, rng: np.random.Generator, sigma: float = SIGMA) -> float:
    """A constant, without its sign, moved: times exp(N(0, sigma)), or by a small whole number; now and then redrawn."""
    if rng.random() < REDRAW or (value == 0.0 and not integer):
        return choose(rng, [drawn for drawn in DRAWN if drawn != value and not (integer and drawn % 1)])
    if integer:
        most = max(2, round(sigma * value))
        return max(0, value + int(rng.integers(1, most + 1)) * (1 if rng.random() < 0.5 else -1))
    return float(f"{value * math.exp(rng.normal(0.0, sigma)):.8g}")


def tune(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """One constant moved, its sign kept."""
    return written(p.source, [_moved(p, choose(rng, p.numbers), rng)]) if p.numbers else None


def tune_all(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """All constants moved at once, but for indices, arguments of range and whole numbers for keywords."""
    return written(p.source, [_moved(p, site, rng) for site in p.numbers if not site.shape])


def insert(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """A statement put before or after another one: a component, one of another parent or one from elsewhere here.

    It goes into a suite of the program, if there is one in the blocks; definitions and imports go to the top level.
    """
    own = [(p, s) for s in p.statements if movable(s)]
    theirs = [(q, s) for q in donors.parents for s in q.statements if movable(s)]
    components = [(q, None) for q in donors.components]
    pools: list[Sequence[tuple[Program, Statement | None]]] = [x for x in (components, theirs, own) if x]
    if not pools:
        return None
    source, moved = choose(rng, choose(rng, pools))
    defines = moved is None and all(not movable(s) for s in source.statements if not s.indent)
    free = [s for s in p.statements if s.free]
    places = [s for s in free if isinstance(s.owner, cst.Module) == defines] or free
    if not places:
        return None
    spots = [spot for s in places for spot in _spots(p, s)]
    if not spots:
        return None
    piece = program("\n".join(source.part(moved.first, moved.last))) if moved else source
    needed = set(piece.names.unbound)
    at_home = [spot for spot in spots if spot[1] and needed <= spot[1].inside]
    at, stretch, after = choose(rng, at_home if at_home and rng.random() < AT_HOME else spots)
    lines = source.part(moved.first, moved.last) if moved else _component(source, p, stretch, rng)
    part = statement(lines, p, stretch, rng) if lines else None
    if part is None:
        return None
    line = at.last + 1 if after else at.first
    return p.cut(line, line - 1, part.part(1, len(part.lines), at.indent))


def _spots(p: Program, s: Statement) -> list[tuple[Statement, Stretch | None, bool]]:
    """Before a statement and after it, with what is bound there; not after one that nothing follows."""
    before = stretch_at(p, s)
    spots: list[tuple[Statement, Stretch | None, bool]] = [(s, before, False)]
    if before is None or before.after is not None:
        after = before and replaced(before, inside=before.after or before.inside)
        spots.append((s, after, True))
    return spots


def delete(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """A statement left out; the only one of a suite and definitions stay."""
    last = {s.suite: s.index for s in p.statements}
    found = [s for s in p.statements if s.free and last[s.suite] > 0 and not isinstance(s.node, DEFINITIONS)]
    found = [s for s in found if movable(s) or not isinstance(s.owner, cst.FunctionDef)]
    if not found:
        return None
    gone = choose(rng, found)
    return p.cut(gone.first, gone.last)


def swap(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """Two statements of a suite, one after the other, exchanged."""
    pairs = [(a, b) for suite in p.suites for a, b in itertools.pairwise(suite) if movable(a) and movable(b)]
    pairs = [(a, b) for a, b in pairs if any(span.holds(a.first, b.last) for span in p.spans)]
    if not pairs:
        return None
    a, b = choose(rng, pairs)
    between = p.lines[a.last : b.first - 1]
    return p.cut(a.first, b.last, [*p.lines[b.first - 1 : b.last], *between, *p.lines[a.first - 1 : a.last]])


def replace(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """An expression replaced by one of the same crude kind: a component, a part of one, of another parent or of the
    program itself, a variable, or a constant."""
    site = site_of(p, rng, KINDS)
    if site is None:
        return None
    stretch, draw = p.names.at(p.place(site.start)), rng.random()
    variables = _variables(p, stretch)
    if site.kind == "number" and draw < 0.15 and variables:
        return written(p.source, [(site.start, site.end, choose(rng, variables))])
    if site.kind == "number" and draw < 0.25:
        return written(p.source, [(site.start, site.end, repr(choose(rng, DRAWN)))])
    found = expression(p, site.kind, rng, donors)
    text = fitted(found[0].text(found[1].node), p, site.start, rng, site.bare) if found else None
    return written(p.source, [(site.start, site.end, text)]) if text is not None else None


def operator(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """An operator exchanged for a similar one: + for -, < for <=, and for or, += for -=, min for max; or the sides of
    one that does not commute exchanged."""
    choices: list[tuple[int, int, str]] = []
    for start, end in p.signs:
        choices += [(start, end, new) for new in SWITCHED.get(" ".join(p.source[start:end].split()), ())]
    for site in p.sites:
        node = site.node
        if not site.free:
            continue
        if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
            sign = p.text(node.operator)
            left, right = (closed(side, p.text(side)) for side in (node.left, node.right))
            texts = [f"{left} {new} {right}" for new in ARITHMETIC.get(sign, ())]
            texts += [f"{right} {sign} {left}"] if sign in ("-", "/", "//", "%", "**") else []
            choices += [(site.start, site.end, closed(node, text, site.bare)) for text in texts]
        elif isinstance(node, cst.Call):
            name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
            if isinstance(name, cst.Name):
                groups = CALLS + OF_ONE if len(node.args) == 1 else CALLS
                like = {new for group in groups if name.value in group for new in group if new != name.value}
                choices += [(*p.span(name), new) for new in sorted(like)]
    return written(p.source, [choose(rng, choices)]) if choices else None


def wrap(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """An expression put into another: a call, a sum or product with a constant or variable, a conditional, a component
    with a name of its own to fill, or a function of the program; a condition is negated."""
    site = site_of(p, rng, ("number", "truth"))
    if site is None:
        return None
    old = p.text(site.node)
    inside = closed(site.node, old)
    if site.kind == "truth":
        return written(p.source, [(site.start, site.end, closed(site.node, f"not {inside}", site.bare))])
    stretch = p.names.at(p.place(site.start))
    variables = _variables(p, stretch)
    other = choose(rng, variables) if variables and rng.random() < 0.5 else repr(choose(rng, DRAWN[1:]))
    sign = choose(rng, ("+", "-", "*", "/"))
    sums = [f"-{inside}", f"{inside} {sign} {other}"]
    sums.append(f"{inside} if {inside} {choose(rng, ('<', '>'))} {other} else {other}")
    forms = [f"abs({old})", f"max({old}, {other})", f"min({old}, {other})"]
    forms += sums if site.bare else [f"({text})" for text in sums]
    functions = sorted((stretch.inside & p.names.functions) - set(stretch.around)) if stretch else []
    forms += [f"{name}({old})" for name in functions]
    filled = [text for q in donors.components if (text := _filled(q, inside, stretch, rng))]
    if filled and rng.random() < 0.5:
        text = fitted(choose(rng, filled), p, site.start, rng, site.bare)
        return written(p.source, [(site.start, site.end, text)]) if text else None
    return written(p.source, [(site.start, site.end, choose(rng, forms))])


def duplicate(p: Program, rng: np.random.Generator, donors: Donors) -> str | None:
    """A statement that does more when it is done again, or all of the body of a loop, written twice."""
    found = [(s, s) for s in p.statements if s.free and movable(s) and _repeats(s)]
    found += [(suite[0], suite[-1]) for suite in p.suites if len(suite) > 1 and isinstance(suite[0].owner, Loop)]
    found = [(a, b) for a, b in found if any(span.holds(a.first, b.last) for span in p.spans)]
    if not found:
        return None
    first, last = choose(rng, found)
    return p.cut(last.last + 1, last.last, p.lines[first.first - 1 : last.last])


OPERATORS: dict[str, Operator] = {
    "tune": tune,
    "tune_all": tune_all,
    "insert": insert,
    "delete": delete,
    "swap": swap,
    "replace": replace,
    "operator": operator,
    "wrap": wrap,
    "duplicate": duplicate,
    "cross": cross,
}
AT_HOME = 0.8  # how often a statement goes where all names that it uses are bound, if there is such a place
WEIGHTS = dict.fromkeys(OPERATORS, 1.0) | {"tune": 2.0, "tune_all": 0.5, "replace": 2.0, "swap": 0.5, "duplicate": 0.5}


def mutate(
    source: str,
    rng: np.random.Generator,
    others: Sequence[str] = (),
    library: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
    tries: int = 20,
) -> Variation:
    """One variation of a program. `weights` are of the operators by name, 0 for those not in it (default: `WEIGHTS`).

    Gives the parent's own text, with operator "none", where `tries` draws changed nothing or the parent does not parse.
    """
    drawn = WEIGHTS if weights is None else weights
    chances = np.array([drawn.get(name, 0.0) for name in OPERATORS])
    try:
        p = program(expanded(source))
        donors = Donors(library, others)
    except BROKEN:
        return Variation(source, "none")
    if not donors.parents:
        chances[list(OPERATORS).index("cross")] = 0.0
    if not chances.sum() > 0.0:
        return Variation(source, "none")
    for _ in range(tries):
        name = list(OPERATORS)[int(rng.choice(len(chances), p=chances / chances.sum()))]
        try:
            text = OPERATORS[name](p, rng, donors)
            found = sound(p, text) if text is not None else None
        except BROKEN:
            continue
        if found is not None:
            return Variation(found, name)
    return Variation(source, "none")


def expanded(source: str) -> str:
    """The program with each suite in the blocks that stands on the line of its header (`if a: b`) below it instead, so
    that statements can be put beside it. Raises what `Program` raises."""
    p = program(source)
    short = [(line, at) for line, at in p.short if any(s.holds(line, p.place(at)[0]) for s in p.spans)]
    edits = []
    for line, start in short:
        before = p.source[:start].rstrip(" \t\\\n")
        header = p.lines[line - 1]
        indent = header[: len(header) - len(header.lstrip())] + "    "
        edits.append((len(before), start, f"\n{indent}"))
    return written(p.source, edits)


def _moved(p: Program, site: Site, rng: np.random.Generator) -> tuple[int, int, str]:
    node = site.node
    minus = "-" if isinstance(node, cst.UnaryOperation) else ""
    literal = node.expression if isinstance(node, cst.UnaryOperation) else node
    integer = isinstance(literal, cst.Integer)
    value = tuned(float(literal.evaluated_value), integer, rng)  # type: ignore[attr-defined]
    new = minus + repr(int(value) if integer else value)
    if not math.isfinite(value):
        return site.start, site.end, p.source[site.start : site.end]
    return site.start, site.end, f"({new})" if minus and node.lpar else new


def _repeats(s: Statement) -> bool:
    """Whether doing a statement again may change something: not for `a = b`."""
    if not isinstance(s.node, cst.SimpleStatementLine):
        return True
    for small in s.node.body:
        if not isinstance(small, cst.Assign):
            return True
        names = {target.target.value for target in small.targets if isinstance(target.target, cst.Name)}
        small.value.visit(reads := _Names())
        if names & reads.found or len(names) < len(small.targets):
            return True
    return False


class _Names(cst.CSTVisitor):
    """Collects the names in an expression."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        """One more."""
        self.found.add(node.value)


def _variables(p: Program, stretch: Stretch | None) -> list[str]:
    return sorted(stretch.inside - BUILTINS - p.names.functions - p.names.imported) if stretch else []


def _component(part: Program, p: Program, stretch: Stretch | None, rng: np.random.Generator) -> list[str]:
    """The lines of a component as statements: an expression is given or added to a variable."""
    site = only(part)
    if site is None:
        return part.lines
    variables = _variables(p, stretch)
    if not variables or not stretch or not stretch.around:
        return []
    sign = choose(rng, ("=", "=", "+=", "*="))
    return f"{choose(rng, variables)} {sign} {closed(site.node, part.text(site.node), True)}".split("\n")


def _filled(part: Program, inside: str, stretch: Stretch | None, rng: np.random.Generator) -> str | None:
    """A component that is an expression, with another expression in the place of one of its unbound names."""
    site = only(part)
    bound = stretch.inside if stretch else BUILTINS
    free = sorted({u.name for u in part.uses if u.role == "value" and u.name not in bound}) if site else []
    if site is None or not free:
        return None
    name = choose(rng, free)
    edits = [(u.start, u.end, inside) for u in part.uses if u.name == name]
    start, end = part.span(site.node)
    text = written(part.source, edits)
    return text[start : len(text) - (len(part.source) - end)]
