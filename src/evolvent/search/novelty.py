"""Novelty: whether a program is worth an evaluation, judged before it gets one.

rule(program, archive) -> bool; a program that does not parse is a SyntaxError.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from evolvent.core.python import parses
from evolvent.core.ranges import Positive
from evolvent.search.archive import Archive
from evolvent.search.candidate import Candidate, island_of
from evolvent.search.normal import KEPT, similarity, tree_hash
from evolvent.search.segments import segments
from evolvent.search.variation.blocks import MARK


def forms(archive: Archive) -> set[str]:
    """Hashes of the normal forms of the history; do not write to them."""
    return archive.forms.of(archive.history)


Novelty = Callable[[str, Archive], bool]


def anything(program: str, archive: Archive) -> bool:
    """No rule."""
    return True


def unseen(program: str, archive: Archive) -> bool:
    """Nobody in the history, valid or not, is the same but for its layout and the names of its local variables.

    ThetaEvolve's penalty for lazy programs asks for the same of its database (level 2, arXiv 2511.23473).
    """
    return tree_hash(program) not in forms(archive)


def dissimilar(program: str, archive: Archive, *, threshold: Positive = 0.99) -> bool:
    """max likeness(program, program of the island) < threshold (ShinkaEvolve, arXiv 2509.19349).

    Cosines of character n-grams are in the place of embeddings. ShinkaEvolve lets pass what is at the threshold.
    """
    return all(likeness(program, c.text) < threshold for c in neighbours(archive))


def neighbours(archive: Archive) -> list[Candidate]:
    """The valid programs of the island whose turn it is: its members, and who was made there."""
    if not archive.members:
        return []
    members, island = {c.uid for c in archive.members}, island_of(archive.members)
    return [*archive.members, *(c for c in archive.history if c.valid and c.island == island and c.uid not in members)]


def likeness(a: str, b: str) -> float:
    """How alike is what may change in two programs, their EVOLVE blocks, from 0 to 1. Raises SyntaxError."""
    return similarity(changeable(a), changeable(b))


@lru_cache(KEPT)
def changeable(source: str) -> str:
    """A program of what may change in another one; that itself, if it has no marks.

    A block that is no program by itself, as a piece of a function, is the body of a function; or, where that is not
    Python either, a text.
    """
    if not MARK.search(source):
        return source
    text = "\n".join(segments(source))
    if parses(text):
        return text
    inside = "def block():\n" + "\n".join(f"    {line}" for line in text.split("\n"))
    return inside if parses(inside) else f"block = {text!r}"
