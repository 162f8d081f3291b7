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

    The inner part runs again, with new draws, for as many problems as are missing; `most` times its number of problems
    in all is the end. Groups without signal stay in the step: leave them out of the update with `credit.groups`.
    Metric `asked` is the number of problems, relative to that of the inner part.
    """

    inner: Propose
    most: int = 10
    signal: Callable[[list[Group]], list[Group]] = with_signal

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """The rounds of the inner part, then shortened ones for what is missing."""
        wanted = 0
        seen: set[str] = set()
        for requests in self.inner(s):
            wanted += sum(r.problem.key not in seen for r in requests)  # later rounds may ask for the same ones again
            seen |= {r.problem.key for r in requests}
            yield requests
        asked = wanted
        while wanted > (found := len(self.signal(s.groups))):
            missing = min(wanted - found, self.most * wanted - asked)
            if missing <= 0:
                break
            asked += missing
            for requests in self.inner(s):
                yield requests[:missing]
        s.log("asked", asked / max(1, wanted))

    def check(self, system: object) -> None:
        """At least what the inner part asks for."""
        if self.most < 1:
            raise UserError(f"propose.refill.most must be at least 1, got {self.most}; 1 does not refill")
