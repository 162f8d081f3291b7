"""The soft length penalty, at DAPO's own numbers and through the loop's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from tests.toys import random_policy, role_of

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.judge.overlong import Overlong
from evolvent.rollout.sample import Sample

PROBLEM = Problem("key", (), {})


@dataclass
class Right:
    """A judge that finds everything right, but for what has an error."""

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        for t in (t for g in groups for t in g.valid):
            t.reward("outcome", 1.0)


def judged(part: Overlong, lengths: list[int], limit: int) -> Group:
    """Answers of these lengths after judging."""
    rows = [
        Trajectory(i, PROBLEM, np.zeros(n + 2, np.int32), np.arange(n + 2) >= 2, np.zeros(n + 2, np.float32))
        for i, n in enumerate(lengths)
    ]
    rows[-1].error = "verifier: down"
    group = Group(PROBLEM, rows)
    part([group], Step(0, role_of(random_policy(1, 16), slots={"rollout": Sample(max_tokens=limit)})))
    return group


@pytest.mark.parametrize(
    ("length", "penalty"), [(1, 0.0), (16384, 0.0), (18432, -0.5), (20480, -1.0), (20000, -(20000 - 16384) / 4096)]
)
def test_the_penalty_of_the_paper(length: int, penalty: float) -> None:
    """L_max 16384 + 4096, at the scale of the paper's outcomes."""
    group = judged(Overlong(Right(), cache=4096 / 20480, penalty=1.0), [length, 1], 20480)
    assert group.trajectories[0].rewards["overlong"].value == pytest.approx(penalty)
    assert group.trajectories[0].outcome == 1.0
    assert group.trajectories[0].score == pytest.approx(1.0 + penalty)


def test_what_failed_is_not_punished() -> None:
    assert judged(Overlong(Right()), [10, 10], 10).trajectories[1].rewards == {}


def test_values_out_of_range_are_refused() -> None:
    for bad in (Overlong(Right(), cache=0.0), Overlong(Right(), penalty=-1.0)):
        with pytest.raises(UserError, match=r"judge\.overlong"):
            bad.check(None)
