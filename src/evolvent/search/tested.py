"""A writer who tries its programs, and mends those that fail, before they are handed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evolvent.core.ranges import Count
from evolvent.core.records import Group, Message, Request, Trajectory
from evolvent.core.step import Step


@dataclass
class Tested:
    """Around a part that writes: what is not valid is written anew with what went wrong, up to `rounds` evaluations in
    all (LoongFlow's executor, arXiv 2512.24077). Every evaluation is paid for; the last program is the candidate.

    Metric: `mended`, how many were valid after they had not been.
    """

    inner: Any
    rounds: Count = 3

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request, evaluated."""
        judge, groups, mended = s.role.slots["judge"], self.inner(requests, s), 0
        judge(groups, s)
        for number in range(1, self.rounds):
            failed = [
                (g, i, r)
                for g, r in zip(groups, requests, strict=True)
                for i, t in enumerate(g.trajectories)
                if r.uses and wrong(t)
            ]
            if not failed:
                break
            inner = s.child(s.role, s.actors, f"mend-{s.round}-{number}")
            inner.controls = s.controls
            asks = [replace(r, n=1, memory=(*r.memory, report(g.trajectories[i]))) for g, i, r in failed]
            again = self.inner(asks, inner)
            judge(again, inner)
            for (g, i, _), made in zip(failed, again, strict=True):
                g.trajectories[i] = made.trajectories[0]
                mended += not wrong(made.trajectories[0])
        s.log("mended", mended)
        return groups


def wrong(t: Trajectory) -> bool:
    """Whether a program was evaluated, and is not valid."""
    return t.error is None and t.info["evaluation"].value is None


def report(t: Trajectory) -> Message:
    """What is said of a program that failed."""
    text = f"This program did not work ({t.info['evaluation'].status}: {t.info['evaluation'].feedback.strip()})"
    return Message("system", f"{text}. Avoid that.\n\n```python\n{t.info['program'].rstrip()}\n```")
