"""Strategies written by rules: an issue and its examples become a statement, what was lost becomes an exception.

Statements are general forms with pieces of the examples in them. For most issues some of them are of use, some do
nothing, and some destroy content: which is which is found out by evaluating them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

import numpy as np

from evolvent.search.curation.pools import LOST, Issue
from evolvent.search.segments import segments, with_segment
from evolvent.search.variation.fragments import BROKEN, sound
from evolvent.search.variation.tree import program
from evolvent.tasks.worlds.curation.issues import repaired

LEAST = 4  # characters that two examples must have in common
SHORT = 24  # characters up to which an example is a piece of a line, and not one
LINES, JOINED = ('lines = text.split("\\n")',), ('text = "\\n".join(lines)',)
FILTERED = re.compile(r"^(\s*lines = \[x for x in lines if )(.+)\]$")


def common(issue: Issue) -> str:
    """The longest piece that all examples of an issue have in common, or the first example if that is too short."""
    piece = issue.examples[0]
    for other in issue.examples[1:]:
        match = SequenceMatcher(None, piece, other, autojunk=False).find_longest_match()
        piece = piece[match.a : match.a + match.size]
    return piece.strip() if len(piece.strip()) >= LEAST else issue.examples[0].strip()


def shape(text: str) -> str:
    """A regular expression for texts like this one: runs of letters and of digits stand for any such run."""
    found = []
    for piece in re.findall(r"[A-Za-z]+|\d+|\s+|.", text):
        found.append("[A-Za-z]+" if piece[0].isalpha() and piece.isascii() else r"\d+" if piece.isdigit() else "")
        if not found[-1]:
            found[-1] = r"\s+" if piece.isspace() else re.escape(piece)
    return "".join(found)


def statements(issue: Issue, rng: np.random.Generator) -> list[str]:
    """What might be done about an issue, by its examples: lines with a piece of them go, or the piece does, or, of
    short ones, whatever has its shape, or whole documents do."""
    piece, example = common(issue), issue.examples[0]
    words = piece.split() or [piece]
    at = int(rng.integers(max(1, len(words) - 1)))
    part = " ".join(words[at : at + 2])
    found = [
        f"lines = [x for x in lines if {part!r} not in x]",
        f"lines = [x for x in lines if not x.startswith({example.split(' ')[0]!r})]",
        f"if {piece!r} in text:\n    return None",
        f"if text.count({words[at]!r}) > 3:\n    return None",
    ]
    if len(example) > SHORT:
        return [f"lines = [x for x in lines if {piece!r} not in x]", f"text = text.replace({piece!r}, '')", *found]
    found += [
        f"text = text.replace({example!r}, '')",
        f"text = re.sub({shape(example)!r}, '', text)",
        f"lines = [re.sub({'^' + shape(example)!r}, '', x) for x in lines]",
    ]
    if (mended := repaired(example)) != example:
        found += [f"text = text.replace({example!r}, {mended!r})"] * 2
    return found


def exceptions(issue: Issue) -> list[str]:
    """Conditions that keep lines like those which were lost: by their beginning, a sign, their length, their shape."""
    example = issue.examples[0]
    start = example[: len(example) - len(example.lstrip())] or example.split(" ")[0]
    signs = [sign for sign in ("|", "=", "<", ":", "^", "±", "(") if sign in example]
    return [
        f"x.startswith({start!r})",
        *(f"{sign!r} in x" for sign in signs),
        f"len(x) <= {max(len(e) for e in issue.examples)}",
        f"re.match({shape(example[:SHORT])!r}, x)",
    ]


def inserted(base: str, place: int, statement: str, rng: np.random.Generator) -> str | None:
    """The program with a statement somewhere in the function of a segment where its names are bound; None if there is
    no such place. What works on `lines` goes between the first that makes them and the last that joins them, or brings
    these with it."""
    rows = segments(base)[place].split("\n")
    first = next((i for i, row in enumerate(rows) if re.match(r"    lines\b", row)), len(rows))
    last = max((i for i, row in enumerate(rows) if "join(lines)" in row), default=-1)
    head = next((i for i, row in enumerate(rows) if row.startswith("    ") and '"""' not in row), 1)
    end = max((i for i, row in enumerate(rows) if row.startswith("    return ")), default=len(rows))
    inside = [i for i in range(first + 1, last + 1) if re.match(r"    \S", rows[i])]
    around = [
        i for i in range(head, end + 1) if not first < i <= last and i < len(rows) and re.match(r"    \S", rows[i])
    ]
    of_lines = re.search(r"\blines\b", statement) is not None
    spots = inside if of_lines and inside else around
    if not spots:
        return None
    at = spots[int(rng.integers(len(spots)))]
    own = [*(LINES if of_lines and not inside else ()), statement, *(JOINED if of_lines and not inside else ())]
    new = [f"    {row}" for part in own for row in part.split("\n")]
    return _sound(base, place, [*rows[:at], *new, *rows[at:]])


def excepted(base: str, place: int, condition: str, rng: np.random.Generator) -> str | None:
    """The program with an exception for one of the statements of a segment that filter lines, or without that
    statement; None if there is none."""
    rows = segments(base)[place].split("\n")
    spots = [i for i, row in enumerate(rows) if FILTERED.match(row)]
    if not spots:
        return None
    at = spots[int(rng.integers(len(spots)))]
    match = FILTERED.match(rows[at])
    assert match is not None
    new = [] if rng.random() < 0.3 else [f"{match[1]}{condition} or {match[2]}]"]
    return _sound(base, place, [*rows[:at], *new, *rows[at + 1 :]])


def _sound(base: str, place: int, rows: Sequence[str]) -> str | None:
    try:
        return sound(program(base), with_segment(base, place, "\n".join(rows)))
    except BROKEN:
        return None


def drawn(issues: Sequence[Issue], diagnosis: Mapping[str, float], rng: np.random.Generator) -> Issue | None:
    """An issue to do something about: its kind in proportion to what the judge says is left of it after the parent, or
    lost by it, then one of the kind by how often it was found. Without a diagnosis all kinds of noise are left and
    nothing is lost. None if there is nothing to do."""
    kinds = list(dict.fromkeys(issue.kind for issue in issues))
    shares = np.array([diagnosis.get(kind, 0.0) if diagnosis else float(not kind.startswith(LOST)) for kind in kinds])
    if not shares.sum() > 0:
        return None
    kind = kinds[int(rng.choice(len(kinds), p=shares / shares.sum()))]
    mine = [issue for issue in issues if issue.kind == kind]
    counts = np.array([issue.count for issue in mine], float)
    return mine[int(rng.choice(len(mine), p=counts / counts.sum()))]
