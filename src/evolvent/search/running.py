"""What is asked of the whole history at every step, kept up to date, so that long runs are as fast as short ones."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from evolvent.search.candidate import Candidate
from evolvent.search.normal import tree_hash


class Running:
    """Something of a whole history that is kept up to date: each candidate is looked at once, also in long runs.

    A history that is not the one of before with something added (after going back to a checkpoint) is read anew.
    """

    def __init__(self) -> None:
        self.read: list[Candidate] = []  # the last one that was looked at
        self.count = 0

    def begin(self) -> None:
        """Nothing has been looked at."""
        raise NotImplementedError

    def add(self, candidate: Candidate) -> None:
        """Look at one more."""
        raise NotImplementedError

    def follow(self, history: Sequence[Candidate]) -> None:
        """Look at what is new."""
        if not self.count or len(history) < self.count or history[self.count - 1] is not self.read[0]:
            self.count = 0
            self.begin()
        for candidate in history[self.count :]:
            self.add(candidate)
        self.count, self.read = len(history), list(history[-1:])


class Best(Running):
    """The best candidate."""

    def begin(self) -> None:
        """Nobody."""
        self.found: Candidate | None = None

    def add(self, candidate: Candidate) -> None:
        """Take its place, if it is better."""
        whole = candidate.valid and candidate.evaluation.complete
        if whole and (self.found is None or candidate.merit > self.found.merit):
            self.found = candidate

    def of(self, history: Sequence[Candidate]) -> Candidate | None:
        """The best one of a history, the first of equals; None if nobody is valid and complete."""
        self.follow(history)
        return self.found


class Forms(Running):
    """The hashes of the normal forms of the programs."""

    def begin(self) -> None:
        """None."""
        self.hashes: set[str] = set()

    def add(self, candidate: Candidate) -> None:
        """Its hash as well; a text that is no Python has none."""
        with contextlib.suppress(SyntaxError):
            self.hashes.add(tree_hash(candidate.text))

    def of(self, history: Sequence[Candidate]) -> set[str]:
        """The hashes of a history; do not write to them."""
        self.follow(history)
        return self.hashes
