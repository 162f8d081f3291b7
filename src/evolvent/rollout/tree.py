"""Trees of rollouts: grow a greedy tree for each request, prune it, then let its branches go on by sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import identifier
from evolvent.core.records import Group, Request
from evolvent.core.step import Step
from evolvent.engine.base import Branch, Tree
from evolvent.rollout.sample import Sample


@dataclass(kw_only=True)
class Lookahead(Sample):
    """A share of each group comes from a tree that is grown first; all that is not over then goes on by sampling.

    share       (t) -> the part of the group that is of the tree at step t
    branch      (probabilities of the `alternatives`) -> bool: which of them open a branch
    prune       (own tokens, parent's tokens) -> bool: asked `looks` tokens after a fork; descendants go with it
    full        share of the branches, over all trees, with which they are complete; `decay` less at the token limit

    A branch takes its top token. The trees are left when they are complete and no branch has a look ahead of it, or
    after `most` tokens. Copies of the root stand in for branches that are missing.
    """

    share: Callable[[int], float]
    branch: Callable[[np.ndarray], np.ndarray]
    prune: Callable[[list[int], list[int]], bool]
    looks: tuple[int, ...]
    most: int
    full: float
    decay: float
    alternatives: int = 2
    stride: int = 1

    TINY: ClassVar = {"looks": (2, 3), "most": 5}
    needs: ClassVar = ("fork", "alternatives")

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """Groups in the order of the requests. Metrics `tree/forks`, and `tree/pruned`: the share of them dropped."""
        self.width = [round(self.share(s.t) * (r.n - len(r.resume))) for r in requests]
        self.age = self.forks = self.pruned = 0
        if any(self.width):
            grow = Sample(0.0, self.max_tokens, self.stride, alternatives=self.alternatives, control=self)
            stems = [replace(r, n=1, resume=()) for r in requests]
            trees = grow(stems, s.child(s.role, s.actors, "tree"))
            requests = [self._resume(r, g, k) for r, g, k in zip(requests, trees, self.width, strict=True)]
        s.log("tree/forks", self.forks)
        s.log("tree/pruned", self.pruned / max(1, self.forks))
        return super().__call__(requests, s)

    @staticmethod
    def _resume(request: Request, tree: Group, width: int) -> Request:
        """The request, with the tree's branches and copies of its root to go on with."""
        rows = [replace(t, stop="" if t.stop == "left" else t.stop) for t in tree.trajectories]
        for i in range(width - len(rows)):
            rows.append(replace(rows[0], uid=identifier(rows[0].uid, i), rewards={}, info=dict(rows[0].info)))
        return replace(request, resume=(*request.resume, *rows[:width]))

    def between(self, tree: Tree, s: Step) -> None:
        """Prune, leave or branch, after every token of the trees."""
        self.age += 1
        grown = self._prune(tree)
        if self._over(grown, s.role.limit):
            for branch in tree.live:
                tree.stop(branch, "left")
        else:
            for family, width in zip(grown, self.width, strict=True):
                found = sorted(x for branch in family for x in self._openings(branch))
                for _, index, at, token in found[: max(0, width - len(family))]:
                    tree.fork(tree.branches[index], at=at, token=token)
                    self.forks += 1

    def _prune(self, tree: Tree) -> list[list[Branch]]:
        """Drop what has stayed like its parent; what is left of each tree."""
        prune, by = self.prune, {b.uid: b for b in tree.branches}
        families: list[list[Branch]] = [[] for _ in self.width]  # a tree has one root
        for b in tree.branches:  # children come after their parents
            if b.parent is not None and b.stop != "pruned":
                parent, own = by[b.parent], b.tokens[b.fork_at :].tolist()
                look = b.mask[b.fork_at :].sum() in self.looks and not b.stop and not parent.stop
                if parent.stop == "pruned" or (look and prune(own, parent.tokens[b.fork_at :].tolist())):
                    tree.stop(b, "pruned")
                    self.pruned += 1
            if b.stop != "pruned":
                families[b.root].append(b)
        return families

    def _over(self, grown: list[list[Branch]], limit: int) -> bool:
        live = [b for family in grown for b in family if not b.stop]
        have = sum(len(f) if any(not b.stop for b in f) else k for f, k in zip(grown, self.width, strict=True))
        enough = have >= round(sum(self.width) * (self.full - self.decay * self.age / limit))
        looked_at = (b.mask[b.fork_at :].sum() >= max(self.looks) for b in live if b.parent is not None)
        return self.age >= self.most or (enough and all(looked_at))

    def _openings(self, b: Branch) -> list[tuple[float, int, int, int]]:
        """Where a branch that has just moved may open others, the likeliest first: (-p, branch, place, token)."""
        if b.alternatives is None or b.mask.sum() != self.age:
            return []
        at = int(np.flatnonzero(b.mask)[-1])
        ids, p = b.alternatives[0][at], np.exp(b.alternatives[1][at])
        return [(-float(p[j]), b.index, at, int(ids[j])) for j in np.flatnonzero(self.branch(p))]

    def check(self, system: Any) -> None:
        """As for `Sample`; and trees have the log-probs of temperature 1."""
        super().check(system)
        if self.temperature not in (0, 1):
            raise UserError(f"a tree is grown at rollout.temperature=1, got {self.temperature}; leave it at 1")
