"""The majority of a group's own answers as the judge: no label is needed, and none is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Group, Trajectory
from evolvent.core.step import Step
from evolvent.judge.elect import elected
from evolvent.judge.verify import verify


def answered(t: Trajectory) -> str | None:
    """The answer as the task reads it."""
    return t.info["answer"]


@dataclass
class Majority:
    """Reward `majority`: `agree` for the answer that most of the group gave, `differ` for others (TTRL, 2504.16084).

    The task is asked for the answer that it reads in each completion. Its verdict goes to the metrics alone: `outcome`
    (mean verdict) and `vote/right` (share of groups that elected a right answer); it is no reward and nothing learns
    from it. `vote/share` is the mean share of votes that the winner got. Ties go to the answer that came first; a
    completion without an answer has no vote and never agrees.

    `ballot` says what a trajectory votes for, where several ways of writing one answer should count together, as in
    `evolvent.tasks.countdown:reached`; None is no vote.
    """

    agree: float = 1.0
    differ: float = 0.0
    ballot: Callable[[Trajectory], str | None] = answered
    no_outcome: ClassVar = "a majority vote"

    def check(self, system: Any) -> None:
        """Agreement must pay."""
        if self.agree <= self.differ:
            raise UserError(f"judge.agree must be above judge.differ, got {self.agree} and {self.differ}")

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Let every group vote."""
        rows = [t for g in groups for t in g.valid]
        for t, score in zip(rows, verify(s.role.task, rows, s.role.ledger), strict=True):
            if isinstance(score, VerifierError):
                t.error = f"verifier: {score}"
                continue
            t.info["answer"], t.info["verdict"] = score.answer, score.outcome
        for group in groups:
            self.vote(group)
        watch([*s.groups, *groups], s)

    def vote(self, group: Group) -> None:
        """Reward the winner's voters; `info["accepted"]` says who they are."""
        ballots = [self.ballot(t) for t in group.valid]
        winner = elected(ballots)
        group.info["elected"] = winner
        group.info["share"] = 0.0 if winner is None else ballots.count(winner) / len(ballots)
        for t, ballot in zip(group.valid, ballots, strict=True):
            t.info["accepted"] = winner is not None and ballot == winner
            t.reward("majority", self.agree if t.info["accepted"] else self.differ, "vote")


def watch(groups: Sequence[Group], s: Step) -> None:
    """Log how united the votes were, and how right; see `Majority`."""
    judged = [g for g in groups if g.valid]
    if not judged:
        return
    right = [any(t.info["accepted"] and t.info["verdict"] >= 1.0 for t in g.valid) for g in judged]
    s.log("vote/share", float(np.mean([g.info["share"] for g in judged])))
    s.log("vote/right", float(np.mean(right)))
    s.log("outcome", float(np.mean([t.info["verdict"] for g in judged for t in g.valid])))
