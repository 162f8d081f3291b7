"""Wrong verdicts on purpose, to see what a method makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolvent.core.errors import UserError
from evolvent.core.records import Group
from evolvent.core.step import Judge, Step


@dataclass
class FlipLabels:
    """Reward `flip` = 1 - 2 * outcome for a random `share` of the trajectories: their score says the opposite.

    The reward `outcome` stays the true verdict, so that metrics do too.
    """

    inner: Judge
    share: float = 0.15

    def check(self, system: object) -> None:
        """A share."""
        if not 0 <= self.share <= 1:
            raise UserError(f"judge.flip_labels.share must be in [0, 1], got {self.share}")

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge, then flip."""
        self.inner(groups, s)
        rows = [t for g in groups for t in g.valid]
        for t, draw in zip(rows, s.rng("flip").random(len(rows)), strict=True):
            if draw < self.share:
                t.reward("flip", 1 - 2 * t.outcome, "noise")
