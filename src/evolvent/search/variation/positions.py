"""Where the nodes of a libcst tree are in the text, as offsets: what `PositionProvider` says, at a third of its time.

libcst has a tree write its text anew, and takes down where each node begins and ends; so does this, without what its
general way costs (two objects and a hash for each of them, a generator for each recording).
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import libcst as cst

Spans = dict[int, tuple[int, int]]  # by `id` of the node: where it starts and ends, in characters


def positions(module: cst.Module) -> Spans:
    """Of all nodes of a tree, white space around them left out; they hold as long as the tree is kept."""
    state = Writing(module)
    module._codegen(state)  # type: ignore[arg-type]
    return state.spans


class Writing:
    """What nodes call to write their text: libcst's `CodegenState`, but for keeping the text."""

    def __init__(self, module: cst.Module) -> None:
        self.default_indent, self.default_newline = module.default_indent, module.default_newline
        self.at = 0  # characters written so far
        self.tokens: list[str] = []  # only whether there are any is asked for
        self.indent = 0
        self.indents: list[int] = []
        self.started: list[int] = []
        self.spans: Spans = {}

    def increase_indent(self, value: str) -> None:
        """The lines of a block begin with this as well."""
        self.indents.append(len(value))
        self.indent += len(value)

    def decrease_indent(self) -> None:
        """The block has ended."""
        self.indent -= self.indents.pop()

    def add_indent_tokens(self) -> None:
        """The beginning of a line."""
        self.at += self.indent

    def add_token(self, value: str) -> None:
        """Text."""
        self.at += len(value)
        if not self.tokens:
            self.tokens.append(value)

    def pop_trailing_newline(self) -> None:
        """The newline at the end, which the file has not got; nothing comes after it."""

    def before_codegen(self, node: cst.CSTNode) -> None:
        """A node begins, with the white space that belongs to it."""
        self.started.append(self.at)

    def after_codegen(self, node: cst.CSTNode) -> None:
        """It has ended. What it has said of itself, without white space, counts before this."""
        start = self.started.pop()
        if id(node) not in self.spans:
            self.spans[id(node)] = start, self.at

    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Recording:
        """Between entering and leaving, the node itself is written; it may begin or end where another one does."""
        return Recording(self, node, start_node, end_node)


class Recording:
    """One node that says where it is."""

    __slots__ = ("first", "last", "node", "start", "state")

    def __init__(self, state: Writing, node: Any, first: Any, last: Any) -> None:
        self.state, self.node, self.first, self.last = state, node, first, last

    def __enter__(self) -> None:
        self.start = self.state.at

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        spans = self.state.spans
        start = self.start if self.first is None else spans[id(self.first)][0]
        spans[id(self.node)] = start, self.state.at if self.last is None else spans[id(self.last)][1]
