"""Best of n: the verifier chooses the answer among several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evolvent.core.records import Group, Trajectory
from evolvent.core.step import Judge, Step


def verified_best(group: Group) -> Trajectory | None:
    """The trajectory with the highest outcome, the first of equals; None if every one failed."""
    return max(group.valid, key=lambda t: t.outcome, default=None)


@dataclass
class BestOf:
    """After judging, `group.info["answer"]` is the trajectory that the verifier likes best.

    Needs the verifier when answers are given, not only in training: an upper reference, not a competitor. Metric
    `answered` is the mean outcome of the chosen answers.
    """

    inner: Judge

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge, then choose."""
        self.inner(groups, s)
        for group in groups:
            group.info["answer"] = verified_best(group)
        answers = [g.info["answer"].outcome for g in [*s.groups, *groups] if g.info.get("answer") is not None]
        if answers:
            s.log("answered", float(np.mean(answers)))
