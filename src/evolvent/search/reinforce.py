"""Learning while searching: families of siblings, which are each other's baseline, and a learner for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from evolvent.core.ranges import Count
from evolvent.core.records import Batch, Change, Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.text import FixedPolicy
from evolvent.learn.policy_gradient import PolicyGradient
from evolvent.search.loop import Parents


@dataclass
class Families(Parents):
    """Propose: as `Parents`, with `n` children of each of the `children` parents that a step draws: one group each."""

    n: Count = 16
    TINY: ClassVar = {"children": 4, "n": 16}

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of requests."""
        for requests in super().__call__(s):
            yield [replace(r, n=self.n) if r.uses else r for r in requests]


def sampled(groups: list[Group]) -> list[Group]:
    """Groups with a member that a policy wrote; there is nothing to learn from what a rule wrote."""
    return [g for g in groups if any(t.sampled for t in g.valid)]


@dataclass
class Reinforce(PolicyGradient):
    """`PolicyGradient` where there are weights to train, and nothing at all where there are none.

    train  None: if the weights are here; False: never, so that a search has a frozen policy; True: `UserError` where
           the weights are elsewhere (`--model none`, an endpoint)

    Metric `learns`: 1 where it trains, 0 where the search is one of inference alone.
    """

    train: bool | None = None
    idle: bool = field(default=False, init=False)
    TINY: ClassVar = {"lr": 1e-3}

    def setup(self, role: Role) -> None:
        """See `Fit.setup`."""
        fixed = isinstance(role.policy, FixedPolicy)
        self.idle = self.train is False or (self.train is None and fixed)
        if not self.idle:
            super().setup(role)

    def tell(self, batches: Sequence[Batch], s: Step) -> list[Change]:
        """See `Fit.tell`; without weights to train, no change."""
        s.log("learns", not self.idle)
        return [] if self.idle else super().tell(batches, s)

    def state_dict(self) -> dict[str, Any]:
        """See `Fit.state_dict`."""
        return {} if self.idle else super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        if not self.idle:
            super().load_state_dict(dict(state))
