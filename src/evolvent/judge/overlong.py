"""Soft punishment of answers that come close to the length limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolvent.core.errors import UserError
from evolvent.core.records import Group
from evolvent.core.step import Judge, Step


@dataclass
class Overlong:
    """Reward `overlong`: 0 up to L - C tokens, then linear down to -penalty at L (DAPO, arXiv 2503.14476, eq. 13).

    L is the most tokens that an episode may have and C = `cache` * L (4096 of 20480 in the paper). The paper's
    outcomes are -1 and 1 and its penalty is 1; ours are 0 and 1, hence half of it.
    """

    inner: Judge
    cache: float = 0.2
    penalty: float = 0.5

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge, then punish what was judged."""
        self.inner(groups, s)
        limit = s.role.limit
        for t in (t for g in groups for t in g.valid):
            over = t.sampled - (1 - self.cache) * limit
            t.reward("overlong", -self.penalty * min(1.0, max(0.0, over / (self.cache * limit))), "length")

    def check(self, system: object) -> None:
        """Shares and signs in range."""
        if not 0 < self.cache <= 1 or self.penalty < 0:
            raise UserError(
                f"judge.overlong.cache must be in (0, 1] and .penalty at least 0, got {self.cache} and {self.penalty}"
            )
