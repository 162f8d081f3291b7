"""The bonus for tool calls, and verdicts that are wrong on purpose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.toys import random_policy, role_of

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.judge.noise import FlipLabels
from evolvent.judge.tools import ToolBonus

PROBLEM = Problem("key", (), {})


@dataclass
class Given:
    """A judge with fixed verdicts; None is a failure."""

    verdicts: list[float | None] = field(default_factory=list)

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        for t in (t for g in groups for t in g.trajectories):
            verdict = self.verdicts[t.uid]
            if verdict is None:
                t.error = "verifier: down"
            else:
                t.reward("outcome", verdict)


def judged(part: object, count: int, t: int = 0, calls: Sequence[int] = ()) -> list[Trajectory]:
    """Trajectories after judging."""
    zeros = np.zeros(2, np.float32)
    rows = [Trajectory(i, PROBLEM, zeros.astype(np.int32), zeros > 0, zeros) for i in range(count)]
    for row, number in zip(rows, calls, strict=False):
        row.info["calls"] = number
    part([Group(PROBLEM, rows)], Step(t, role_of(random_policy(1, 16))))  # type: ignore[operator]
    return rows


@pytest.mark.parametrize(
    ("t", "share"), [(0, 1.0), (50, (1 + math.cos(math.pi / 4)) / 2), (100, 0.5), (200, 0.0), (500, 0.0)]
)
def test_the_bonus_fades(t: int, share: float) -> None:
    rows = judged(ToolBonus(Given([0.0, 1.0, 1.0, None]), decay=200), 4, t, [0, 3, 25, 5])
    assert [r.rewards["tools"].value for r in rows[:3]] == pytest.approx([0.0, 0.3 * share, 1.0 * share])
    assert rows[1].score == pytest.approx(1.0 + 0.3 * share)
    assert rows[3].rewards == {}


def test_no_decay_is_no_bonus() -> None:
    assert judged(ToolBonus(Given([1.0]), decay=0), 1, 0, [3])[0].score == 1.0


def test_flipped_scores_say_the_opposite_and_outcomes_stay() -> None:
    verdicts: list[float | None] = [float(i % 2) for i in range(4000)]
    rows = judged(FlipLabels(Given(verdicts), share=0.15), 4000)
    flipped = [r for r in rows if "flip" in r.rewards]
    assert all(r.score == 1 - r.outcome for r in flipped)
    assert all(r.score == r.outcome for r in rows if "flip" not in r.rewards)
    assert [r.outcome for r in rows] == verdicts
    assert len(flipped) / 4000 == pytest.approx(0.15, abs=0.02)


def test_flips_repeat_with_the_step() -> None:
    def of(t: int) -> list[float]:
        return [r.score for r in judged(FlipLabels(Given([1.0] * 100), share=0.5), 100, t)]

    assert of(3) == of(3)
    assert of(3) != of(4)


def test_values_out_of_range_are_refused() -> None:
    for part in (ToolBonus(Given(), each=-0.1), FlipLabels(Given(), share=1.5)):
        with pytest.raises(UserError):
            part.check(None)  # type: ignore[attr-defined]
