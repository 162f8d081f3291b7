"""Partial roll-outs: more groups are under way than a step takes; what is not finished goes on in the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.step import RollOut, Step
from evolvent.engine.base import Tree
from evolvent.rollout.sample import Sample


@dataclass
class Partial:
    """Keeps `over` times as many groups under way as are asked for, and pauses the others once those are complete.

    Groups that are not handed back wait, whole, and go first in the next round; what is missing beside them and the
    requests is another draw of `propose`. With `over=1` it does nothing (APRIL, arXiv 2509.18521).

    Metrics: `resumed`, the share of answers handed back that took several rounds; `off_policy`, the share of their
    tokens that earlier versions sampled; `idle`, 1 - tokens / (decode steps * slots), a slot for each answer under way.
    """

    inner: RollOut
    over: float = 2.0
    waiting: list[Group] = field(default_factory=list, init=False)
    spare: int = field(default=0, init=False)  # requests that may stay unfinished
    owner: Sequence[int] = field(default=(), init=False)  # the request of each root
    place: dict[int, int] = field(default_factory=dict, init=False)  # of the request of each answer, by uid
    stride = 1
    needs = ("tokens",)

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """As many complete groups as requests, the oldest first."""
        if s.parent is not None:  # another role's act or a probe: nothing may wait
            return self.inner(requests, s)
        if len(s.actors) > 1:
            raise UserError("partial roll-outs are finished later, by the policy; a population cannot; leave one out")
        asks = self.under_way(requests, s)
        self.spare, self.place = len(asks) - len(requests), {t.uid: i for i, r in enumerate(asks) for t in r.resume}
        units, ledger, known = ("sampled", "decode_steps"), s.role.ledger, len(s.pending)
        before = [ledger.of(unit) for unit in units]
        s.controls.append(self)
        finished = self.inner(asks, s)
        s.controls.remove(self)
        tokens, steps = (ledger.of(unit) - was for unit, was in zip(units, before, strict=True))
        groups = [Group(r.problem, []) for r in asks]
        for t in s.pending[known:]:
            groups[self.place[t.uid]].trajectories.append(t)
        taken = finished[: len(requests)]
        self.waiting = finished[len(requests) :] + [g for g in groups if g.trajectories]
        rows = [t for g in taken for t in g.trajectories]
        old = sum(off_policy(t, s.actors[0].version) for t in rows)
        s.log("resumed", sum("versions" in t.info for t in rows) / max(1, len(rows)))
        s.log("off_policy", old / max(1, sum(t.sampled for t in rows)))
        s.log("idle", 1 - tokens / max(1, steps * sum(r.n for r in asks)))
        return taken

    def under_way(self, requests: Sequence[Request], s: Step) -> list[Request]:
        """What waits, the requests, and more of them up to `over` times their number."""
        asks = [Request(g.problem, len(g.trajectories), resume=tuple(g.trajectories)) for g in self.waiting]
        asks += requests
        while (missing := int(self.over * len(requests)) - len(asks)) > 0:
            ahead = s.child(s.role, s.actors, f"ahead-{s.round}-{missing}")  # draws of its own
            asks += next(s.role.propose(ahead))[:missing]
        return asks

    def begin(self, tree: Tree, requests: Sequence[Request], owner: Sequence[int], s: Step) -> None:
        """Learn whose branches they are."""
        self.owner = owner

    def between(self, tree: Tree, s: Step) -> None:
        """Pause all that runs once no more requests than `spare` have anything running."""
        if len({self.owner[b.root] for b in tree.live}) <= self.spare:
            for branch in tree.live:
                tree.stop(branch, "paused")
            self.place |= {b.uid: self.owner[b.root] for b in tree.branches}

    def check(self, system: object) -> None:
        """At least what is asked for, around a roll-out whose answers are those that it was asked for."""
        if isinstance(self.inner, Sample) and type(self.inner) is not Sample:
            raise UserError(
                f"partial roll-outs pause and resume plain sampling, and `{type(self.inner).__name__}` makes answers "
                "of its own on the way; leave one of the two out"
            )
        if self.over < 1:
            raise UserError(f"rollout.partial.over must be at least 1, got {self.over}; 1 waits for every answer")

    def state_dict(self) -> dict[str, Any]:
        """What waits."""
        return {"waiting": self.waiting}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.waiting = list(state["waiting"])


def off_policy(t: Trajectory, version: int) -> int:
    """How many of its tokens other versions of the policy sampled."""
    parts = [(0, 0), *t.info.get("versions", [(t.version, len(t.tokens))])]
    return sum(int(t.mask[a:b].sum()) for (_, a), (v, b) in pairwise(parts) if v != version)
