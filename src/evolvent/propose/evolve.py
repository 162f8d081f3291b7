"""Problems that evolve: weighed by their answers, drawn, and rewritten for later steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Problem, Request, Trajectory
from evolvent.core.step import Propose, Step

Scores = Float[np.ndarray, " answers"]


# --- what a problem is worth, from the scores of its answers (eva, arXiv 2411.00062, and its ablations) ---------


def gap(scores: Scores) -> float:
    """Best less worst."""
    return float(np.ptp(scores))


def room(scores: Scores) -> float:
    """Best less mean."""
    return float(scores.max() - scores.mean())


def variance(scores: Scores) -> float:
    """Population variance."""
    return float(scores.var())


def average(scores: Scores) -> float:
    """Mean: go where answers are good."""
    return float(scores.mean())


def inverse(scores: Scores) -> float:
    """1 / gap, with at least 0.001 for the gap: go where answers are alike."""
    return 1 / max(gap(scores), 1e-3)


def alike(scores: Scores) -> float:
    """1: every problem is worth the same."""
    return 1.0


# --- what becomes of it ----------------------------------------------------------------------------------------------

TRIES = 8  # problems of a category that are rewritten before the first step, until one comes out
Rewrite = Callable[[Problem, Any, np.random.Generator], Problem | None]  # None where nothing comes of it


@dataclass
class Evolve:
    """Around a part that proposes: `share` of its problems are children of earlier ones, the rest a fixed set.

    The first `seeds` problems of the inner part are that set. After each step a share `parents` of its problems is
    drawn, each once, in proportion to `worth`, and rewritten `children` times each. Children wait in a buffer of the
    newest `capacity`. With `again` they are drawn by their parent's worth, and by their own once they were tried, else
    each is handed out once, whatever its worth. Before the step `warmup` there are only seeds, from `alone` on only
    children, as far as they reach. Metrics: `evolve/gap` of all problems of the step, `evolve/children` among them,
    `evolve/buffer`, and `evolve/failed`, children that a task's own code failed to make, if there are any.
    """

    inner: Propose
    rewrite: Rewrite
    seeds: int = 10_000
    parents: float = 0.25
    children: int = 4
    share: float = 0.8
    worth: Callable[[np.ndarray], float] = gap
    capacity: int = 10_000
    again: bool = False
    warmup: int = 0
    alone: int | None = None
    known: list[Problem] = field(default_factory=list, init=False)
    buffer: dict[str, tuple[Problem, float]] = field(default_factory=dict, init=False)
    TINY: ClassVar = {"seeds": 256, "capacity": 256}

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """The rounds of the inner part, with other problems."""
        end = np.inf if self.alone is None else self.alone
        share = (0.0, self.share, 1.0)[(s.t >= self.warmup) + (s.t >= end)]
        for requests in self.inner(s):
            rng = s.rng("evolve")
            self.known += [r.problem for r in requests][: self.seeds - len(self.known)]
            waiting = list(self.buffer.values())
            weight = np.array([worth if self.again else 1.0 for _, worth in waiting])
            picked = [waiting[i][0] for i in drawn(round(share * len(requests)), weight, rng)]
            if not self.again:
                self.buffer = {k: v for k, v in self.buffer.items() if k not in {p.key for p in picked}}
            missing = len(requests) - len(picked)
            seeds = rng.choice(len(self.known), missing, replace=missing > len(self.known))
            s.log("evolve/children", len(picked))
            yield [Request(p, r.n) for r, p in zip(requests, [*picked, *(self.known[i] for i in seeds)], strict=True)]

    def observe(self, s: Step) -> None:
        """Weigh the step's problems, draw parents, and put their children into the buffer."""
        groups = [g for g in s.groups if g.valid]
        scores = [np.array([earned(t) for t in g.valid]) for g in groups]
        worth = np.array([self.worth(one) for one in scores])
        for g, value in zip(groups, worth.tolist(), strict=True):
            if g.problem.key in self.buffer:
                self.buffer[g.problem.key] = (g.problem, value)
        rng, failed = s.rng("rewrite"), 0
        for i in drawn(round(self.parents * len(groups)), worth, rng):
            for _ in range(self.children):
                try:
                    child = self.rewrite(groups[i].problem, s.role.task, rng)
                except VerifierError:
                    failed += 1
                    continue
                if child is not None:
                    self.buffer.setdefault(child.key, (child, float(worth[i])))
        if failed:
            s.log("evolve/failed", failed)
        self.buffer = dict(list(self.buffer.items())[-self.capacity :])
        s.log("evolve/gap", float(np.mean([gap(one) for one in scores])) if scores else 0.0)
        s.log("evolve/buffer", len(self.buffer))

    def check(self, system: object) -> None:
        """Shares in range, something to share out, and a task whose problems can be rewritten, which is tried."""
        if not (0 <= self.parents <= 1 and 0 <= self.share <= 1 and min(self.seeds, self.children, self.capacity) > 0):
            raise UserError(
                "propose.evolve: parents and share go from 0 to 1, seeds, children and capacity start at 1; share=0 is "
                "without children"
            )
        for role in getattr(system, "roles", {}).values():
            if self.share and any(part is self for part in role.parts.values()):
                self._try(role.task)

    def _try(self, task: Any) -> None:
        """`UserError` if nothing comes of the problems of a category, each of a few being tried."""
        rng = np.random.default_rng(0)
        for category in task.categories:
            failed = ""
            for _ in range(TRIES):
                try:
                    if self.rewrite(task.draw("train", rng, category), task, rng) is not None:
                        break
                except VerifierError as reason:
                    failed = str(reason)
            else:
                raise UserError(failed or f"{task.name}: rewriting {TRIES} problems gave nothing new; give other rows")

    def state_dict(self) -> dict[str, Any]:
        """Seeds, and the buffer with what its problems are worth."""
        problems, worth = [p for p, _ in self.buffer.values()], [w for _, w in self.buffer.values()]
        return {"known": list(self.known), "problems": problems, "worth": worth}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.known = list(state["known"])
        entries = zip(state["problems"], state["worth"], strict=True)
        self.buffer = {p.key: (p, w) for p, w in entries}


def drawn(count: int, weight: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Places drawn in proportion to `weight`, each once: `count`, or as many as have a weight above 0."""
    weight = np.maximum(weight, 0.0)
    count = min(count, int((weight > 0).sum()))
    return rng.choice(len(weight), count, replace=False, p=weight / weight.sum()).tolist() if count else []


def earned(t: Trajectory) -> float:
    """Score of an answer without what a reference takes from it (the KL term of RLOO)."""
    return sum(r.value for r in t.rewards.values() if r.source != "reference")
