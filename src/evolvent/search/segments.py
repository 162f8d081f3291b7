"""Programs as genomes: each EVOLVE block is a segment, which is varied, crossed and compared by itself.

A program without marks is one segment. Segments are shown and taken without the indentation that all lines share.
"""

from __future__ import annotations

import difflib
import itertools
import textwrap
from collections.abc import Sequence

import numpy as np

from evolvent.search.candidate import Candidate
from evolvent.search.variation.blocks import MARK, blocks
from evolvent.search.variation.fragments import BROKEN, sound
from evolvent.search.variation.syntax import mutate
from evolvent.search.variation.tree import program


def segments(source: str) -> list[str]:
    """The texts of the blocks, in order."""
    lines = source.split("\n")
    return [textwrap.dedent("\n".join(lines[b.first - 1 : b.last])).strip("\n") for b in blocks(source)]


def with_segment(source: str, place: int, text: str) -> str:
    """The program with another text in one of its blocks, indented as the old one."""
    lines, block = source.split("\n"), blocks(source)[place]
    old = [line for line in lines[block.first - 1 : block.last] if line.strip()]
    indent = min((line[: len(line) - len(line.lstrip())] for line in old), key=len, default="")
    new = textwrap.indent(textwrap.dedent(text).strip("\n"), indent).split("\n")
    return "\n".join([*lines[: block.first - 1], *new, *lines[block.last :]])


def differing(one: str, other: str) -> list[int]:
    """The places at which two programs have different segments; none where they have not as many."""
    a, b = segments(one), segments(other)
    return [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y] if len(a) == len(b) else []


def mutated(source: str, place: int, rng: np.random.Generator, library: Sequence[str]) -> tuple[str, str] | None:
    """The program with a change of the syntax tree in one segment, and the operator; None where there is none."""
    made = mutate(_alone(source, place), rng, (), library)
    return None if made.operator == "none" else (_mended(made.source), made.operator)


def crossed(source: str, other: str, place: int, rng: np.random.Generator) -> str | None:
    """The program with a part of the other one's segment in the like part of its own; None where that is nothing."""
    made = mutate(_alone(source, place), rng, [segments(other)[place]], (), {"cross": 1.0})
    return None if made.operator == "none" else _mended(made.source)


def carried(source: str, place: int, before: str, after: str) -> str | None:
    """The program with what was changed from a segment `before` to `after` changed in its own as well, wherever the
    lines that this concerns stand there just once; None where that is nowhere, or makes no sound program."""
    lines = segments(source)[place].split("\n")
    old, new = before.split("\n"), after.split("\n")
    for tag, i, j, k, m in reversed(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()):
        if tag == "equal":
            continue
        spots = [(i, j, 0)] if j > i else [(i - 1, i, 1), (i, i + 1, 0)]  # an insertion: after a line, or before one
        for first, last, after_it in spots:
            wanted = old[max(first, 0) : last]
            found = [n for n in range(len(lines) - len(wanted) + 1) if wanted and lines[n : n + len(wanted)] == wanted]
            if len(found) == 1:
                at = found[0] + after_it
                lines[at : at + j - i] = new[k:m]
                break
    try:
        return sound(program(source), with_segment(source, place, "\n".join(lines)))
    except BROKEN:
        return None


def ancestry(candidate: Candidate, history: Sequence[Candidate]) -> list[list[Candidate]]:
    """For each segment of a candidate all those on its line of first parents who have changed it, the oldest first."""
    line = [candidate]
    while line[-1].parents:
        line.append(history[line[-1].parents[0]])
    line.reverse()
    found: list[list[Candidate]] = [[] for _ in segments(candidate.text)]
    for before, after in itertools.pairwise(line):
        for place in differing(before.text, after.text):
            if place < len(found):
                found[place].append(after)
    return found


OTHER = "EVOLVE_BLOCK"


def _alone(source: str, place: int) -> str:
    """The program with the marks of one block only; those of the others are comments until `_mended`."""
    block, lines = blocks(source)[place], source.split("\n")
    own = (block.first - 2, block.last)
    kept = [
        line.replace("EVOLVE-BLOCK", OTHER) if MARK.search(line) and i not in own else line
        for i, line in enumerate(lines)
    ]
    return "\n".join(kept)


def _mended(source: str) -> str:
    return source.replace(OTHER, "EVOLVE-BLOCK")
