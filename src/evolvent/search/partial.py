"""Partial roll-outs of programs: children whose answers take long go on in the next step; nobody waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Request
from evolvent.core.step import Step
from evolvent.rollout import partial
from evolvent.search.vary import Vary


@dataclass
class Partial(partial.Partial):
    """`over` times as many families of children are under way as a step takes; see `evolvent.rollout.partial`.

    With `over=1` every step waits for all of its children, as in the published runs of ThetaEvolve (arXiv 2511.23473),
    whose scripts start as many groups as they take. A child is kept on the island of the step that takes it.
    """

    over: float = 1.0

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the engine has to offer: a look at every token, where anything is to be paused."""
        return ("tokens",) if self.over > 1 else ()

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """As many complete families as requests, the oldest first."""
        begun = any(r.uses for r in requests)  # the seed program comes first, and nobody writes it
        return super().__call__(requests, s) if self.over > 1 and begun else self.inner(requests, s)

    def check(self, system: object) -> None:
        """At least what is asked for, of one model and once: then all that is under way is sampled together."""
        super().check(system)
        write = self.inner.write if self.over > 1 and isinstance(self.inner, Vary) else None
        if write and (write.attempts > 1 or write.ensemble.models):
            raise UserError(
                f"rollout.partial.over={self.over:g} needs answers that are asked for once, of one model; add --set "
                "rollout.write.attempts=1, and leave rollout.write.ensemble.models out"
            )
