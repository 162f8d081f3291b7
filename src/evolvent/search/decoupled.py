"""Expansion and evaluation decided apart: each step makes one child, or evaluates one candidate on one instance.

HGM, arXiv 2510.21614: a new agent is not evaluated at all at first; how often it will be, depends on how it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers
from evolvent.core.ranges import Nonnegative, Positive, Share, Whole
from evolvent.core.records import Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import again, programs_of
from evolvent.search.parents import ParentRule, clade_counts, own_trials, spent, tempered, thompson, thompson_clade
from evolvent.tasks.evaluation import INSTANCE


@dataclass
class ExpandOrEvaluate:
    """Propose: a child if N^alpha >= children so far, with N evaluations of single instances until now; else one
    evaluation. The first `first` steps make children; the very first one evaluates the seed program, on everything.

    Who has a child is up to `parent`. Who is evaluated has the largest theta ~ Beta(tau (1 + S), tau (1 + F)), with the
    successes and failures of its own, of all that have instances left; which of them is drawn evenly. `cool_down` and
    `budget` as in `thompson_clade`; the seed program's evaluations are not part of N.

    One decision a step, so nothing is ever pending. Children that do not work count as well (those of the published
    code do not), or else a parent that cannot change itself would be tried forever. Metrics: `expanded`, 0 or 1; of a
    parent `clade`, the share of successes in its clade, `clade_rank`, the share of members whose clade does better, and
    `own`, its own value.
    """

    parent: ParentRule = thompson_clade
    alpha: Share = 0.6
    first: Whole = 5
    cool_down: Nonnegative = 0.0
    budget: Positive = 800

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round with one request."""
        archive, task = archive_of(s.role), programs_of(s.role)
        problem = task.draw("train", s.rng("problem"))
        if not archive.history:
            yield [Request(problem, 1)]
            return
        pool, every = archive.pool(), task.instances("train")
        open_ones = [c for c in pool.members if untested(c, every)]
        expand = not open_ones or self.expands(archive.history)
        s.log("expanded", expand)
        rng = s.rng("decision")
        if expand:
            parent = self.parent(pool, rng)
            counts = clade_counts(archive.history)
            shares = {c.uid: counts[c.uid][0] / max(1.0, sum(counts[c.uid])) for c in pool.members}
            s.log("clade", shares[parent.uid])
            s.log("clade_rank", float(np.mean([share > shares[parent.uid] for share in shares.values()])))
            s.log("own", parent.value)
            yield [Request(problem, 1, uses=(str(parent.uid),))]
            return
        trials = np.array([own_trials(c, None) for c in open_ones])
        tau = tempered(archive.history, self.cool_down, self.budget)
        candidate = open_ones[int(np.argmax(thompson(trials, tau, rng)))]
        left = untested(candidate, every)
        (uid,) = identifiers(1, s.role.seed, *s.path, s.round, "again")
        yield [again(candidate, problem, [left[int(rng.integers(len(left)))]], uid)]

    def expands(self, history: Sequence[Candidate]) -> bool:
        """Whether the next step makes a child."""
        children = len(history) - 1
        return children < self.first or spent(history) ** self.alpha >= children

    def setup(self, role: Role) -> None:
        """A world of instances: `UserError` otherwise."""
        if not programs_of(role).instances("train"):
            raise UserError(
                f"this recipe evaluates one instance at a time, and {role.task.name} has none; "
                "give --task program:repair or program:swe"
            )


def untested(candidate: Candidate, every: Sequence[str]) -> list[str]:
    """The instances that a candidate has not been evaluated on."""
    return [name for name in every if f"{INSTANCE}{name}" not in candidate.evaluation.metrics]
