"""EVOLVE blocks: which lines of a program may change.

The marks are OpenEvolve's and ShinkaEvolve's: a line with the comment `# EVOLVE-BLOCK-START` opens a block, one with
`# EVOLVE-BLOCK-END` closes it. Several blocks are allowed; without any mark the whole file may change. The lines of the
marks themselves are outside. Lines are split at newlines only and counted from 1, as libcst and ast count them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evolvent.core.errors import UserError

MARK = re.compile(r"#\s*EVOLVE-BLOCK-(START|END)\b")


@dataclass(frozen=True)
class Span:
    """Lines `first` to `last` of a program, both included; an empty block has `last` = `first` - 1."""

    first: int
    last: int

    def holds(self, first: int, last: int) -> bool:
        """Whether the lines `first` to `last` are all in it."""
        return self.first <= first and last <= self.last


def blocks(source: str) -> list[Span]:
    """The parts that may change, in order. Raises UserError, with the line, for marks that do not pair up."""
    marked = _marked(source)
    return marked if marked is not None else [Span(1, source.count("\n") + 1)]


def same_outside(before: str, after: str) -> bool:
    """Whether `after` has the marks of `before`, and between them, outside the blocks, the same lines.

    False as well where the marks of `after` do not pair up. Raises UserError for those of `before`.
    """
    old = outside(before)
    try:
        return old == outside(after)
    except UserError:
        return False


def outside(source: str) -> list[list[str]]:
    """The lines before, between and after the blocks, marks included; empty for a file without marks.

    White space at the ends of lines and blank lines at the end of the file do not count. UserError as in `blocks`.
    """
    marked = _marked(source)
    if marked is None:
        return []
    lines = [line.rstrip() for line in source.rstrip().split("\n")]
    edges = [0, *(edge for span in marked for edge in (span.first - 1, span.last)), len(lines)]
    return [lines[edges[i] : edges[i + 1]] for i in range(0, len(edges), 2)]


def _marked(source: str) -> list[Span] | None:
    """The blocks of a file with marks; None for one without."""
    found: list[Span] = []
    opened: int | None = None
    for number, line in enumerate(source.split("\n"), start=1):
        marks = MARK.findall(line)
        if len(marks) > 1:
            raise UserError(f"line {number} has {len(marks)} EVOLVE-BLOCK marks; write one a line")
        if marks == ["START"]:
            if opened is not None:
                raise UserError(f"line {number} starts an EVOLVE block inside the one that line {opened} starts")
            opened = number
        elif marks == ["END"]:
            if opened is None:
                raise UserError(f"line {number} ends an EVOLVE block, but none is open; add EVOLVE-BLOCK-START above")
            found.append(Span(opened + 1, number - 1))
            opened = None
    if opened is not None:
        raise UserError(f"line {opened} starts an EVOLVE block that nothing ends; add EVOLVE-BLOCK-END below")
    return found or None
