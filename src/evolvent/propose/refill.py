"""Refill: propose again until enough groups have a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Request
from evolvent.core.step import Propose, Step
from evolvent.learn.credit import with_signal


@dataclass
class Refill:
    """Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): as many groups with a signal as the inner part asks for.

    The inner part runs again, with new draws, for as many problems as are missing, at most `passes` times in all.
    Groups without signal stay in the step: leave them out of the update with `credit.groups`.
    """

    inner: Propose
    passes: int = 10
    signal: Callable[[list[Group]], list[Group]] = with_signal

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """The rounds of the inner part, then shortened ones for what is missing."""
        wanted = 0
        seen: set[str] = set()
        for requests in self.inner(s):
            wanted += sum(r.problem.key not in seen for r in requests)  # later rounds may ask for the same ones again
            seen |= {r.problem.key for r in requests}
            yield requests
        used = 1
        while used < self.passes:
            missing = wanted - len(self.signal(s.groups))
            if missing <= 0:
                break
            for requests in self.inner(s):
                yield requests[:missing]
            used += 1
        s.log("passes", used)

    def check(self, system: object) -> None:
        """At least one pass."""
        if self.passes < 1:
            raise UserError(f"propose.refill.passes must be at least 1, got {self.passes}")
