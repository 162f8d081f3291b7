"""A program as places to edit: its statements, expressions, numbers and names, by where they are in the text.

libcst says where things are; edits replace stretches of the text, so that everything else stays as it was written.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import libcst as cst

from evolvent.search.variation.blocks import MARK, blocks
from evolvent.search.variation.names import Place, names_of
from evolvent.search.variation.positions import positions

CONSTANTS = {"True": "truth", "False": "truth", "None": "none"}
Loop = cst.For | cst.While
ATOMS: tuple[type[cst.BaseExpression], ...] = (
    cst.Name,
    cst.Integer,
    cst.Float,
    cst.Call,
    cst.Attribute,
    cst.Subscript,
    cst.List,
    cst.Dict,
    cst.Set,
)
ATOMS += (cst.ListComp, cst.DictComp, cst.SetComp, cst.SimpleString, cst.FormattedString)
ENCLOSED = (cst.Tuple, cst.GeneratorExp, cst.NamedExpr, cst.Yield, cst.Await)  # always written in parentheses
OPEN = (
    cst.Return,
    cst.Assign,
    cst.AugAssign,
    cst.AnnAssign,
    cst.Expr,
    cst.If,
    cst.While,
    cst.Arg,
    cst.Index,
    cst.Element,
)
UNREAD = (cst.Import, cst.ImportFrom, cst.Annotation, cst.Global, cst.Nonlocal, cst.MatchPattern)
UNSEEN = {("Attribute", "attr"), ("Arg", "keyword"), ("FunctionDef", "name"), ("ClassDef", "name"), ("Param", "star")}
STORED = {("AssignTarget", "target"), ("AugAssign", "target"), ("AnnAssign", "target"), ("NamedExpr", "target")}
STORED |= {("For", "target"), ("CompFor", "target"), ("AsName", "name"), ("Param", "name")}
FIXED = {("Del", "target"), ("FunctionDef", "decorators"), ("ClassDef", "decorators"), ("ClassDef", "bases")}

SILENT: tuple[type, ...] = (
    cst.BaseParenthesizableWhitespace,
    cst.TrailingWhitespace,
    cst.EmptyLine,
    cst.Newline,
    cst.Comment,
    cst.Comma,
    cst.Semicolon,
    cst.Colon,
    cst.Dot,
    cst.AssignEqual,
    cst.LeftParen,
    cst.RightParen,
    cst.BaseUnaryOp,
    cst.BaseBinaryOp,
    cst.BaseBooleanOp,
    cst.BaseCompOp,
    cst.BaseAugOp,
)
KEPT = 128  # programs that are remembered; the tree of one of 100 lines takes about a MiB


@dataclass(frozen=True, slots=True)
class Kind:
    """What the walk has to know of a type of node. Asked once: libcst's types are abstract ones, and slow to ask."""

    name: str
    fields: tuple[str, ...]
    silent: bool  # nothing in it is of interest
    sign: bool
    unread: bool
    expression: bool
    fixes: bool  # what is in it stays where it is
    suite: bool
    short: bool
    scope: bool


@cache
def kind_of(made: Any) -> Kind | None:
    """Of a type of node; None for what is none."""
    if not issubclass(made, cst.CSTNode):
        return None
    return Kind(
        made.__name__,
        tuple(f.name for f in dataclasses.fields(made)),
        issubclass(made, SILENT),
        issubclass(made, cst.BaseCompOp | cst.BaseAugOp),
        issubclass(made, UNREAD),
        issubclass(made, cst.BaseExpression),
        issubclass(made, cst.FormattedString | cst.Param | cst.MatchCase),
        issubclass(made, cst.IndentedBlock | cst.Module),
        issubclass(made, cst.SimpleStatementSuite),
        issubclass(made, cst.FunctionDef | cst.ClassDef | cst.Lambda),
    )


@cache
def among(made: type, those: tuple[type, ...]) -> bool:
    """`issubclass`, remembered."""
    return issubclass(made, those)


@dataclass(frozen=True)
class Site:
    """An expression with the parentheses around it: `start` and `end` count characters of the text; `kind` is what may
    stand there, crudely.

    `bare`: it can be replaced by any expression without parentheses. `shape`: it is an index, an argument of range or a
    whole number for a keyword, which says how things are laid out and not how much of something there is.
    """

    node: cst.BaseExpression
    start: int
    end: int
    kind: str
    bare: bool
    free: bool
    shape: bool


@dataclass(frozen=True)
class Statement:
    """A statement on lines of its own, from its first decorator, with its place among those of its suite."""

    node: cst.BaseStatement
    first: int
    last: int
    indent: str
    suite: int
    index: int
    owner: cst.CSTNode
    free: bool


@dataclass(frozen=True)
class Use:
    """A place where a variable's name is written: `role` is "store", "call", "base" (of an attribute), or "value"."""

    name: str
    start: int
    end: int
    role: str


class Program:
    """A parsed program. Raises cst.ParserSyntaxError, SyntaxError or UserError (marks). `free` is inside the blocks."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = source.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.spans = blocks(source)
        self.names = names_of(source)
        self.sites: list[Site] = []
        self.numbers: list[Site] = []  # with the minus in front; also in default values of parameters
        self.suites: list[list[Statement]] = []
        self.uses: list[Use] = []
        self.signs: list[tuple[int, int]] = []  # comparison and assignment operators in the blocks
        self.short: list[tuple[int, int]] = []  # suites on the line of their header: that line, start of the suite
        self.in_strings: set[int] = set()  # lines that begin inside a string
        self._module = cst.parse_module(source)
        self._where = positions(self._module)
        found = kind_of(cst.Module)
        assert found is not None
        self._walk(self._module, found, None, "", False, False)

    @property
    def statements(self) -> list[Statement]:
        """All statements on lines of their own."""
        return [statement for suite in self.suites for statement in suite]

    def place(self, offset: int) -> Place:
        """A position in the text as ast counts: line, and column in bytes."""
        line = bisect_right(self.starts, offset) - 1
        return line + 1, len(self.lines[line][: offset - self.starts[line]].encode())

    def text(self, node: cst.CSTNode) -> str:
        """What is written for a node, without parentheses around it."""
        start, end = self.span(node)
        return self.source[start:end]

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Where a node starts and ends in the text, in characters."""
        return self._where[id(node)]

    def _rows(self, node: cst.CSTNode) -> tuple[int, int]:
        """The lines that a node starts and ends on, from 1."""
        start, end = self._where[id(node)]
        return bisect_right(self.starts, start), bisect_right(self.starts, end)

    def first_line(self, statement: Statement) -> int:
        """The line that a statement starts on, its decorators aside, as ast has it."""
        return self._rows(statement.node)[0]

    def cut(self, first: int, last: int, put: Sequence[str] = ()) -> str:
        """The text with the lines `first` to `last` (none if `last` < `first`) replaced by those of `put`."""
        return "\n".join([*self.lines[: first - 1], *put, *self.lines[last:]])

    def part(self, first: int, last: int, indent: str = "") -> list[str]:
        """Lines as they would stand at another indentation, those with marks left out."""
        old = len(self.lines[first - 1]) - len(self.lines[first - 1].lstrip())
        found = []
        for number in range(first, last + 1):
            line = self.lines[number - 1]
            if number in self.in_strings:
                found.append(line)
            elif not MARK.search(line):
                found.append(indent + (line[old:] if not line[:old].strip() else line.lstrip()) if line.strip() else "")
        return found

    def _walk(
        self, node: cst.CSTNode, kind: Kind, parent: cst.CSTNode | None, field: str, fixed: bool, shape: bool
    ) -> None:
        key = (type(parent).__name__, field)
        if kind.unread or key in UNSEEN:
            return
        shape = shape or _shapes(node, parent, field)
        if kind.expression:
            fixed = fixed or key in FIXED or key in STORED
            self._expression(node, parent, field, fixed, shape)  # type: ignore[arg-type]
            shape = shape and type(node) is not cst.Call
        fixed = fixed or key in FIXED or kind.fixes
        if kind.suite:
            self._suite(node, parent or node)  # type: ignore[arg-type]
        if kind.short and parent is not None:
            self.short.append((self._rows(parent)[0], self.span(node)[0]))
        inner = {"body": fixed and kind.name == "Lambda", "params": fixed} if kind.scope else {}
        for name in kind.fields:
            value = getattr(node, name)
            for child in value if type(value) in (list, tuple) else (value,):
                below = kind_of(type(child))  # type: ignore[arg-type]
                if below is None:
                    continue
                if below.sign and self._free(child):
                    self.signs.append(self.span(child))
                if not below.silent and id(child) in self._where:
                    self._walk(child, below, node, name, inner.get(name, fixed), shape)

    def _suite(self, node: cst.IndentedBlock | cst.Module, owner: cst.CSTNode) -> None:
        found: list[Statement] = []
        for index, statement in enumerate(node.body):
            first, last = self._rows(statement)
            if isinstance(statement, cst.FunctionDef | cst.ClassDef) and statement.decorators:
                first = self._rows(statement.decorators[0])[0]
            line = self.lines[first - 1]
            indent = line[: len(line) - len(line.lstrip())]
            free = any(span.holds(first, last) for span in self.spans)
            found.append(Statement(statement, first, last, indent, len(self.suites), index, owner, free))
        self.suites.append(found)

    def _expression(
        self, node: cst.BaseExpression, parent: cst.CSTNode | None, field: str, fixed: bool, shape: bool
    ) -> None:
        start, end = self.span(node)
        free = self._free(node)
        stored = (type(parent).__name__, field) in STORED
        made = type(node)
        if isinstance(node, cst.Name) and node.value not in CONSTANTS:
            role = {"func": "call", "value": "base"}.get(field, "value") if _used_whole(parent, field) else "value"
            self.uses.append(Use(node.value, start, end, "store" if stored else role))
        text = among(made, (cst.BaseString,))
        if text:
            first, last = self.place(start)[0], self.place(end)[0] if end < len(self.source) else len(self.lines)
            self.in_strings.update(range(first + 1, last + 1))
        if node.lpar:
            start, end = self.span(node.lpar[0])[0], self.span(node.rpar[-1])[1]
        kind = _kind(node, parent, field)
        kind = "index" if shape and kind == "number" else kind
        site = Site(node, start, end, kind, type(parent) in OPEN, free, shape)
        if _is_number(node) and not (type(parent) is cst.UnaryOperation and _is_number(parent)):
            default = type(parent) is cst.Param and field == "default"
            if (not fixed or default) and free:
                self.numbers.append(site)
        if not fixed and not (text and type(parent) is cst.Expr):
            self.sites.append(site)

    def _free(self, node: cst.CSTNode) -> bool:
        first, last = self._rows(node)
        return any(span.holds(first, last) for span in self.spans)


@lru_cache(KEPT)
def program(source: str) -> Program:
    """`Program(source)`, remembered: parents and components come back often."""
    return Program(source)


def closed(node: cst.BaseExpression, text: str, bare: bool = False) -> str:
    """The text of an expression so that it can stand anywhere, or where `bare` says that no parentheses are needed."""
    if "\n" not in text and (isinstance(node, ATOMS) or (bare and not isinstance(node, ENCLOSED))):
        return text
    return f"({text})"


def _is_number(node: cst.CSTNode) -> bool:
    made = type(node)
    if made is cst.UnaryOperation and type(node.operator) is cst.Minus:  # type: ignore[attr-defined]
        inner = node.expression  # type: ignore[attr-defined]
        return type(inner) in (cst.Integer, cst.Float) and not inner.lpar
    return made in (cst.Integer, cst.Float)


def _used_whole(parent: cst.CSTNode | None, field: str) -> bool:
    """Whether an expression is what is called, or what an attribute or index is taken of."""
    if type(parent) is cst.Call:
        return field == "func"
    return type(parent) in (cst.Attribute, cst.Subscript) and field == "value"


def _shapes(node: cst.CSTNode, parent: cst.CSTNode | None, field: str) -> bool:
    """Whether an expression says how things are laid out: an index, or a whole number for a keyword."""
    made = type(parent)
    if made in (cst.Index, cst.Slice):
        return True
    if made is cst.Call and type(parent.func) is cst.Name and parent.func.value == "range":  # type: ignore[union-attr]
        return field == "args"
    return made is cst.Arg and parent.keyword is not None and type(node) is cst.Integer  # type: ignore[union-attr]


def _kind(node: cst.BaseExpression, parent: cst.CSTNode | None, field: str) -> str:
    made = type(node)
    if _used_whole(parent, field):
        return "callable" if field == "func" else "object"
    if type(parent) in (cst.Index, cst.Slice):
        return "index"
    if type(parent) in (cst.For, cst.CompFor) and field == "iter":
        return "iterable"
    if made is cst.Name and node.value in CONSTANTS:  # type: ignore[attr-defined]
        return CONSTANTS[node.value]  # type: ignore[attr-defined]
    if made is cst.UnaryOperation:
        return "truth" if type(node.operator) is cst.Not else "number"  # type: ignore[attr-defined]
    for name, those in KINDS:
        if among(made, those):
            return name
    return "number"


KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("truth", (cst.Comparison, cst.BooleanOperation)),
    ("text", (cst.BaseString,)),
    ("list", (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.BaseComp)),
    ("function", (cst.Lambda,)),
    ("other", (cst.Yield, cst.Await, cst.StarredElement, cst.NamedExpr, cst.Imaginary, cst.Ellipsis)),
)
