"""Pieces of programs to put into another: where they come from, and their names made to fit where they go."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import libcst as cst
import numpy as np

from evolvent.core.errors import UserError
from evolvent.search.normal import normal_form
from evolvent.search.variation.blocks import same_outside
from evolvent.search.variation.names import BUILTINS, Bound, Names, Stretch, names_of
from evolvent.search.variation.tree import Program, Site, Statement, closed, program

T = TypeVar("T")

BROKEN = (cst.ParserSyntaxError, SyntaxError, UserError, ValueError, RecursionError)  # a text that cannot be used
LONGEST = 50_000  # characters of a program that operators may write
MODULES = sys.stdlib_module_names | {"np", "numpy", "scipy", "pd", "pandas", "torch", "plt"}
SAFE = ("abs", "float", "int", "round")  # what to call where the program has no function of its own
REDRAWN = 0.2  # how often a name that would do is changed for another one all the same
NEVER = (cst.Return, cst.Break, cst.Continue, cst.Raise, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal, cst.Pass)
KINDS = ("number", "truth", "list", "text", "function", "index", "iterable", "callable", "object")
DEFINITIONS = (cst.FunctionDef, cst.ClassDef)


@dataclass
class Donors:
    """Where new parts come from: components (expressions, statements, functions) and other parents.

    Texts that do not parse are left out.
    """

    library: Sequence[str] = ()
    others: Sequence[str] = ()
    components: list[Program] = field(init=False)
    parents: list[Program] = field(init=False)

    def __post_init__(self) -> None:
        self.components = list(_parsed(self.library))
        self.parents = list(_parsed(self.others))


def choose(rng: np.random.Generator, items: Sequence[T]) -> T:
    """One of several, all alike likely."""
    return items[int(rng.integers(len(items)))]


def only(component: Program) -> Site | None:
    """The expression that a component consists of; None for statements."""
    body = component.suites[0] if component.suites else []
    if len(body) != 1 or not isinstance(body[0].node, cst.SimpleStatementLine) or len(body[0].node.body) != 1:
        return None
    line = body[0].node.body[0]
    return next((s for s in component.sites if isinstance(line, cst.Expr) and s.node is line.value), None)


def expression(target: Program, kind: str, rng: np.random.Generator, donors: Donors) -> tuple[Program, Site] | None:
    """An expression of a kind, from a component, another parent or the program itself, and where it is from."""
    whole = [(p, s) for p in donors.components if (s := only(p)) and s.kind == kind]
    pools = [
        whole,
        *([(p, s) for p in ps for s in p.sites if s.kind == kind] for ps in (donors.components, donors.parents)),
    ]
    pools = [pool for pool in [*pools, [(target, s) for s in target.sites if s.kind == kind]] if pool]
    return choose(rng, choose(rng, pools)) if pools else None


def fitted(piece: str, target: Program, place: int, rng: np.random.Generator, bare: bool = False) -> str | None:
    """The text of an expression with its names made to fit the place (in characters) of the target; None: it cannot.

    It is in parentheses where it needs them, unless `bare`.
    """
    stretch = target.names.at(target.place(place))
    try:
        part = program(f"({piece})" if "\n" in piece else piece)
    except BROKEN:
        return None
    site = only(part)
    named = renamed(part, target, stretch, rng)
    if site is None or named is None:
        return None
    start, end = part.span(site.node)
    left = len(part.source) - end
    return closed(site.node, named[start : len(named) - left], bare)


def renamed(
    part: Program, target: Program, stretch: Stretch | None, rng: np.random.Generator, recursive: bool = False
) -> str | None:
    """The text of a piece, each name that is not bound at a stretch of the target made one that is; None: it cannot.

    Variables become other variables, functions other functions. What it assigns may become a variable of the target.
    A call of the function around it becomes another one unless `recursive`.
    """
    bound: Bound = stretch.inside if stretch else BUILTINS
    around = stretch.around if stretch else ()
    definitions = target.names.functions | target.names.imported
    variables = sorted(bound - BUILTINS - definitions)
    functions = sorted((bound & target.names.functions) - set(around))
    own = {u.name for u in part.uses if u.role == "store"} | part.names.functions
    loose = Names(part.source, bound).unbound
    called = {u.name for u in part.uses if u.role == "call"}
    based = {u.name for u in part.uses if u.role == "base"}
    to: dict[str, str] = {}
    for name in dict.fromkeys(u.name for u in part.uses):
        if name in own and (name in definitions or name in BUILTINS) and name not in part.names.functions:
            if not variables:
                return None
            to[name] = choose(rng, variables)
        elif name in loose or (name in called and name in around and not recursive):
            if name in based and name in MODULES:
                return None
            pool = (functions or list(SAFE)) if name in called else variables
            if not pool:
                return None
            to[name] = choose(rng, pool)
        elif variables and name not in part.names.functions:
            free = name in variables and name not in called
            if (free and rng.random() < REDRAWN) or (name in own and name not in bound and rng.random() < 0.5):
                to[name] = choose(rng, variables)
    return written(part.source, [(u.start, u.end, to.get(u.name, u.name)) for u in part.uses])


def written(source: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with stretches (start, end, new text), that do not overlap, replaced."""
    for start, end, text in sorted(edits, reverse=True):
        source = source[:start] + text + source[end:]
    return source


def statement(
    lines: Sequence[str], target: Program, stretch: Stretch | None, rng: np.random.Generator, recursive: bool = False
) -> Program | None:
    """Statements, at no indentation, with their names made to fit a place; None: it cannot be."""
    try:
        part = program("\n".join(lines))
        text = renamed(part, target, stretch, rng, recursive)
        return program(text) if text is not None else None
    except BROKEN:
        return None


def movable(s: Statement) -> bool:
    """Whether a statement may be put elsewhere: it defines nothing, ends nothing and is no docstring."""
    if isinstance(s.node, cst.SimpleStatementLine):
        first = s.node.body[0]
        text = isinstance(first, cst.Expr) and isinstance(first.value, cst.BaseString)
        return not text and not any(isinstance(small, NEVER) for small in s.node.body)
    return not isinstance(s.node, DEFINITIONS)


def sound(before: Program, after: str) -> str | None:
    """`after`, if it is a program that may take the place of `before`; None otherwise.

    It compiles, differs in its normal form, keeps what is outside the blocks and the signatures of functions,
    and has no more uses of a name where it is not bound.
    """
    if len(after) > LONGEST or after == before.source or not same_outside(before.source, after):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # such as 1(2): it compiles, and fails when it runs
            compile(after, "<program>", "exec", dont_inherit=True)
            if normal_form(after) == normal_form(before.source) or names_of(after).unbound - before.names.unbound:
                return None
            old, new = signatures(before.source), signatures(after)
    except BROKEN:
        return None
    return after if all(new.get(name) == kept for name, kept in old.items()) else None


@lru_cache(256)
def signatures(source: str) -> dict[str, list[str]]:
    """The headers of the functions of a module and its classes, by name; of default values only that there is one."""
    found: dict[str, list[str]] = {}

    def look(body: Sequence[ast.stmt], path: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(path + node.name, []).append(",".join(map(ast.dump, node.bases)))
                look(node.body, f"{path}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
                node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
                parts = [type(node).__name__, ast.dump(node.args), *map(ast.dump, node.decorator_list)]
                found.setdefault(path + node.name, []).append(" ".join([*parts, ast.dump(node.returns or ast.Pass())]))

    look(ast.parse(source).body, "")
    return found


def stretch_at(p: Program, s: Statement) -> Stretch | None:
    """What is bound at a statement."""
    return p.names.statement((p.first_line(s), len(s.indent)))


def site_of(p: Program, rng: np.random.Generator, kinds: Sequence[str]) -> Site | None:
    """A place for another expression, of one of the kinds."""
    found = [site for site in p.sites if site.free and site.kind in kinds]
    return choose(rng, found) if found else None


def _parsed(texts: Sequence[str]) -> Iterable[Program]:
    for text in texts:
        try:
            yield program(text)
        except BROKEN:
            continue
