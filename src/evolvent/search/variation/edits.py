"""What a model writes, read: search/replace diffs and full rewrites of a program.

The diff format is OpenEvolve's and ShinkaEvolve's; one answer may hold several, applied in order:

    <<<<<<< SEARCH
    old lines
    =======
    new lines
    >>>>>>> REPLACE

A search text is whole lines and has to match in one place. White space at the ends of lines and blank lines at the end
of a text do not count; nothing else is guessed. An `EditError` says to the model what to write instead.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from evolvent.core.python import parses
from evolvent.search.variation.blocks import blocks, outside, same_outside

SEARCH, DIVIDER, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
WANTED = "write the whole program between ```python and ```"
OPENING, CLOSING = re.compile(r"[ \t]*```[ \t]*(\w*)[^`]*"), re.compile(r"[ \t]*```\s*")  # lines of a code fence
PYTHON = ("python", "py", "python3")
ENDS = 20  # closing lines that a fence is tried with
SHOWN = 3  # similar lines that an error names


class EditError(ValueError):
    """An edit that cannot be applied. Its text is fit to be shown to the model that wrote the edit."""


@dataclass(frozen=True)
class Replacement:
    """Lines to find, and the lines to put there; no newline at the end, an empty `replace` deletes."""

    search: str
    replace: str


def parse_diff(text: str) -> list[Replacement]:
    """The replacements of an answer, in order; what stands around them is ignored.

    Raises EditError where there is none, where the marks do not follow each other, and for an empty search text.
    """
    found: list[Replacement] = []
    parts: list[list[str]] = []  # of the one that is open: its search lines, then its new lines
    begun = 0
    for number, line in enumerate(text.split("\n"), start=1):
        mark = line.strip()
        if mark == SEARCH:
            if parts:
                raise EditError(f"line {number} of the answer starts a diff inside the one of line {begun}")
            parts, begun = [[]], number
        elif mark == DIVIDER and (parts or SEARCH in text):
            if len(parts) != 1:
                raise EditError(f"line {number} of the answer is a {DIVIDER} that belongs to no `{SEARCH}`")
            parts.append([])
        elif mark == REPLACE:
            if len(parts) != 2:
                raise EditError(f"line {number} of the answer ends a diff without `{SEARCH}` and {DIVIDER} before it")
            search, replace = ("\n".join(part).rstrip() for part in parts)
            if not search:
                raise EditError(f"the diff at line {begun} of the answer has an empty search text; copy old lines")
            found.append(Replacement(search, replace))
            parts = []
        elif parts:
            parts[-1].append(line.rstrip("\r"))
    if parts:
        raise EditError(f"the diff at line {begun} of the answer is cut off: no `{REPLACE}` line")
    if not found:
        raise EditError(f"the answer holds no diff; write `{SEARCH}`, old lines, `{DIVIDER}`, new lines, `{REPLACE}`")
    return found


def apply(source: str, replacements: Sequence[Replacement], fix_indent: bool = False) -> str:
    """The program after the replacements, one after the other.

    A search text that matches once inside the EVOLVE blocks is meant there, wherever else it matches; one that matches
    only across or outside them must leave what is outside as it is. With `fix_indent`, a text that matches nowhere is
    tried with all its lines indented alike by more or less, and the new lines with it. Raises EditError otherwise.
    """
    after = source
    for i, replacement in enumerate(replacements, start=1):
        after = _apply(after, replacement, f"diff {i} of {len(replacements)}", fix_indent)
    return within(source, after)


def _apply(source: str, replacement: Replacement, name: str, fix_indent: bool) -> str:
    lines = source.split("\n")
    wanted, new = replacement.search.rstrip().split("\n"), replacement.replace.rstrip()
    if wanted == [""]:
        raise EditError(f"{name}: the search text is empty; copy the lines to change")
    put = new.split("\n") if new else []
    at = _matches(lines, wanted)
    if not at and fix_indent:
        for extra in sorted({_indent(line) - _indent(wanted[0]) for line in lines if line.strip()}):
            at = _matches(lines, _shifted(wanted, extra))
            if at:
                put = _shifted(put, extra)
                break
    spans = blocks(source)
    inside = [i for i in at if any(s.holds(i + 1, i + len(wanted)) for s in spans)]
    at = inside or at
    if not at:
        raise EditError(f"{name}: the search text matches nowhere:\n{_quoted(wanted)}{_similar(lines, wanted)}")
    if len(at) > 1:
        where = ", ".join(str(i + 1) for i in at)
        raise EditError(
            f"{name}: the search text matches {len(at)} times, at lines {where}; add some around it:\n{_quoted(wanted)}"
        )
    lines[at[0] : at[0] + len(wanted)] = put
    return within(source, "\n".join(lines))


def rewrite(text: str) -> str:
    """The program of an answer that writes all of it: the last ```python fence, or the last fence of any language, or
    the whole text if that parses. It ends with one newline. Raises EditError where there is none."""
    fences = fenced(text)
    python = [body for language, body in fences if language in PYTHON]
    if fences:
        return (python or [body for _, body in fences])[-1].strip("\r\n") + "\n"
    if "```" in text:
        raise EditError(f"the answer has a code fence that is not closed; {WANTED}")
    if not parses(text):
        raise EditError(f"the answer holds no program; {WANTED}")
    if not text.strip():
        raise EditError(f"the answer is empty; {WANTED}")
    return text.strip("\r\n") + "\n"


def fenced(text: str) -> list[tuple[str, str]]:
    """Language, in small letters, and body of each code fence that is closed.

    The strings of a program may hold lines that look like fences, so one ends at the first ``` that makes it parse, and
    at the first one at all where none does.
    """
    lines, found, at = text.split("\n"), [], 0
    while at < len(lines):
        opening = OPENING.fullmatch(lines[at])
        at += 1
        ends = [i for i in range(at, len(lines)) if CLOSING.fullmatch(lines[i])] if opening else []
        if opening and ends:
            language = opening[1].lower()
            tried = ends[:ENDS] if language in (*PYTHON, "") else []
            end = next((i for i in tried if parses("\n".join(lines[at:i]))), ends[0])
            found.append((language, "\n".join(lines[at:end])))
            at = end + 1
    return found


def within(before: str, after: str) -> str:
    """`after`, if it differs from `before` inside the EVOLVE blocks only; else raises EditError, with a line."""
    if same_outside(before, after):
        return after
    old = [line for part in outside(before) for line in part]
    new = [line.rstrip() for line in after.split("\n")]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    lost = [line for tag, i, j, _, _ in matcher.get_opcodes() if tag in ("delete", "replace") for line in old[i:j]]
    gone = f"this line is missing or was changed: {lost[0].strip()!r}" if lost else "lines were added or moved outside"
    raise EditError(f"only what is between EVOLVE-BLOCK-START and EVOLVE-BLOCK-END may change, marks excluded; {gone}")


def _matches(lines: list[str], wanted: list[str]) -> list[int]:
    """Where all of `wanted` stands in `lines`, white space at the ends aside; from 0."""
    have, want = [line.rstrip() for line in lines], [line.rstrip() for line in wanted]
    return [i for i in range(len(have) - len(want) + 1) if have[i : i + len(want)] == want]


def _similar(lines: list[str], wanted: list[str]) -> str:
    """The lines of the program that are most like the first line of `wanted` that it does not have."""
    have = {line.rstrip() for line in lines}
    key = next((line for line in wanted if line.strip() and line.rstrip() not in have), "")
    if not key:
        return "\nits lines are in the program, but not one after the other"
    scored = [(difflib.SequenceMatcher(None, key, line).ratio(), -i) for i, line in enumerate(lines, start=1)]
    best = [-i for ratio, i in sorted(scored, reverse=True)[:SHOWN] if ratio > 0.5]
    return "".join(["\nsimilar lines:", *(f"\n  line {i}: {lines[i - 1]}" for i in best)]) if best else ""


def _quoted(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _shifted(lines: list[str], extra: int) -> list[str]:
    """The lines with `extra` more spaces in front, or fewer, as far as there are any."""
    return [" " * max(0, _indent(line) + extra) + line.lstrip(" ") if line.strip() else line for line in lines]
