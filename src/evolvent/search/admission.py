"""Admission rules: who may be a parent after a candidate has been evaluated. Nobody leaves the history.

rule(candidate, members) -> members
"""

from __future__ import annotations

from collections.abc import Callable

from evolvent.search.candidate import Candidate

Admission = Callable[[Candidate, list[Candidate]], list[Candidate]]


def keep_all(candidate: Candidate, members: list[Candidate]) -> list[Candidate]:
    """Everybody who is valid."""
    return [*members, candidate] if candidate.valid else members


def top(candidate: Candidate, members: list[Candidate], *, size: int = 40) -> list[Candidate]:
    """The best `size`; of equals those who came first. In the order in which they were made."""
    if not candidate.valid:
        return members
    best = sorted([*members, candidate], key=lambda c: (-c.value, c.uid))[:size]
    return sorted(best, key=lambda c: c.uid)
