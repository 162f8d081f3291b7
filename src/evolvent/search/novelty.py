"""Novelty: whether a program is worth an evaluation, judged before it gets one.

rule(program, archive) -> bool; a program that does not parse is a SyntaxError.
"""

from __future__ import annotations

from collections.abc import Callable

from evolvent.core.ranges import Positive
from evolvent.search.archive import Archive
from evolvent.search.normal import similarity, tree_hash


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
    """max similarity(program, member) < threshold (ShinkaEvolve, arXiv 2509.19349).

    Cosines of character n-grams are in the place of embeddings. ShinkaEvolve compares with all programs of the parent's
    island, not with the members alone, and lets pass what is at the threshold.
    """
    return all(similarity(program, c.text) < threshold for c in archive.members)
