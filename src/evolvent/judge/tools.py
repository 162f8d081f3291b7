"""A bonus for calling tools that fades as training goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evolvent.core.errors import UserError
from evolvent.core.records import Group
from evolvent.core.step import Judge, Step


@dataclass
class ToolBonus:
    """Reward `tools` = min(cap, each * calls) * mu(t), mu = (1 + cos(pi t / decay)) / 2 up to t = decay, then 0
    (SPEAR, arXiv 2509.22601). Calls that failed count as well."""

    inner: Judge
    each: float = 0.1
    cap: float = 1.0
    decay: int = 200

    def check(self, system: object) -> None:
        """Amounts in range."""
        if self.each < 0 or self.cap < 0 or self.decay < 0:
            raise UserError(
                "judge.tool_bonus.each, .cap and .decay must be at least 0, "
                f"got {self.each}, {self.cap} and {self.decay}"
            )

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge, then reward calls."""
        self.inner(groups, s)
        share = fade(s.t, self.decay)
        for t in (t for g in groups for t in g.valid):
            t.reward("tools", min(self.cap, self.each * t.info.get("calls", 0)) * share, "tool calls")


def fade(t: int, steps: int) -> float:
    """(1 + cos(pi t / steps)) / 2 up to t = steps, then 0."""
    return 0.0 if t >= steps else (1 + math.cos(math.pi * t / steps)) / 2
