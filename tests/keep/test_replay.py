"""The replay buffer: what enters, when it is replayed, with which advantages and weight, and its state."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.toys import random_policy, role_of

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.keep.replay import Replay, ramp
from evolvent.lineage import pack

PROBLEM = Problem("key", (), {"of": "countdown"}, "easy")
ROLE = role_of(random_policy(1, 16))


def row(uid: int, score: float, calls: int = 1) -> Trajectory:
    """A judged trajectory."""
    made = Trajectory(uid, PROBLEM, np.arange(4, dtype=np.int32), np.arange(4) > 1, np.full(4, -0.5, np.float32))
    made.reward("outcome", score)
    made.info["calls"] = calls
    return made


def step(part: Replay, t: int, rows: list[Trajectory], advantages: list[float]) -> Step:
    """One step of keeping, with all rows in one group."""
    s = Step(t, ROLE, groups=[Group(PROBLEM, rows)], batches=[Batch(rows, np.array(advantages, np.float32))])
    assert part(s) == []
    return s


def test_only_successes_with_a_tool_call_are_stored() -> None:
    part = Replay(capacity=10)
    step(part, 0, [row(0, 1.0), row(1, 0.0), row(2, 1.0, calls=0), row(3, 1.0), row(4, 0.5)], [1, -1, 1, 0, 0.25])
    assert [t.uid for t, _ in part.stored] == [0, 4]


def test_a_full_buffer_is_replayed_once_with_advantages_over_the_median_group() -> None:
    part = Replay(capacity=3, warmup=0)
    first = [row(0, 1.0), row(1, 0.6), row(2, 0.0)]  # the group's mean is 1.6 / 3
    assert len(step(part, 0, first, [0.5, 0.1, -0.5]).batches) == 1
    second = [row(3, 0.9), row(4, 0.2)]  # 0.55
    assert len(step(part, 1, second, [0.3, -0.3]).batches) == 1
    assert [t.uid for t, _ in part.stored] == [0, 1, 3]
    s = step(part, 2, [row(5, 0.8), row(6, 0.8)], [0.0, 0.0])
    replay = s.batches[1]
    median = (1.6 / 3 + 0.55) / 2  # of the groups before this step
    assert replay.name == "replay"
    assert [t.uid for t in replay.rows] == [0, 1, 3]
    assert replay.weight == pytest.approx([1.0 - median, 0.6 - median, 0.9 - median], abs=1e-6)
    assert part.stored == []
    assert len(step(part, 3, [row(7, 1.0)], [0.0]).batches) == 1


def test_one_lucky_group_does_not_raise_the_bar() -> None:
    """The middle one of 0.1, 0.2 and 0.9 is 0.2; their mean, 0.4, would leave out the second row."""
    part = Replay(capacity=2, warmup=0)
    for t, score in enumerate((0.2, 0.9, 0.1)):
        step(part, t, [row(t, score)], [0.0])
    step(part, 3, [row(8, 0.6), row(9, 0.3)], [0.1, 0.1])
    part.means = part.means[:3]  # without the rows' own group
    replay = step(part, 4, [row(10, 0.0)], [0.0]).batches[1]
    assert replay.weight == pytest.approx([0.6 - 0.2, 0.3 - 0.2], abs=1e-6)


def test_what_is_no_longer_better_than_usual_is_not_replayed() -> None:
    part = Replay(capacity=2, warmup=0)
    step(part, 0, [row(0, 0.5), row(1, 0.9)], [0.1, 0.2])
    part.means += [0.8] * 3
    s = step(part, 4, [row(9, 0.0)], [0.0])
    assert [t.uid for t in s.batches[1].rows] == [1]


@pytest.mark.parametrize(
    ("t", "gamma"), [(0, None), (1, (1 - math.cos(math.pi / 200)) / 2), (100, 0.5), (200, 1.0), (900, 1.0)]
)
def test_the_loss_of_replayed_rows_warms_up(t: int, gamma: float | None) -> None:
    part = Replay(capacity=1, warmup=200, max_age=10)
    part.stored, part.means = [(row(0, 1.0), t)], [0.0]
    s = step(part, t, [row(1, 0.0)], [-1.0])
    assert [b.coefficient for b in s.batches[1:]] == ([] if gamma is None else pytest.approx([gamma]))
    assert s.metrics["replay/gamma"] == pytest.approx(gamma or 0.0)
    assert ramp(t, 200) == pytest.approx(gamma or 0.0)


def test_old_ones_are_dropped_and_the_oldest_leave_first() -> None:
    part = Replay(capacity=4, max_age=10, warmup=0)
    step(part, 0, [row(0, 1.0)], [1.0])
    step(part, 10, [row(1, 1.0)], [1.0])
    assert [t.uid for t, _ in part.stored] == [0, 1]
    step(part, 11, [row(2, 1.0)], [1.0])
    assert [t.uid for t, _ in part.stored] == [1, 2]
    step(part, 12, [row(i, 1.0) for i in range(3, 9)], [1.0] * 6)
    assert [t.uid for t, _ in part.stored] == [5, 6, 7, 8]


def test_the_median_is_of_the_latest_groups() -> None:
    part = Replay(capacity=5, history=3)
    for t, score in enumerate((0.0, 0.1, 0.2, 0.3)):
        step(part, t, [row(t, score)], [0.0])
    assert part.means == pytest.approx([0.1, 0.2, 0.3])


def test_failures_have_no_part() -> None:
    part = Replay(capacity=5)
    bad = row(1, 1.0)
    bad.error = "verifier: down"
    s = Step(0, ROLE, groups=[Group(PROBLEM, [row(0, 0.5), bad]), Group(PROBLEM, [bad])])
    part(s)
    assert part.means == [0.5]


def test_state_survives_a_file(tmp_path: Path) -> None:
    part, other = Replay(capacity=2, warmup=0), Replay(capacity=2, warmup=0)
    step(part, 0, [row(0, 1.0), row(1, 0.0), row(2, 0.7)], [1.0, -1.0, 0.2])
    pack.save(tmp_path / "state", part.state_dict())
    other.load_state_dict(pack.load(tmp_path / "state"))
    after = [step(p, 1, [row(3, 0.0)], [0.0]).batches[1] for p in (part, other)]
    assert [t.uid for t in after[0].rows] == [t.uid for t in after[1].rows] == [0, 2]
    assert (after[0].weight == after[1].weight).all()
    assert (after[0].rows[0].logprob == after[1].rows[0].logprob).all()


@pytest.mark.parametrize("bad", [{"capacity": 0}, {"max_age": 0}, {"history": 0}, {"warmup": -1}])
def test_values_out_of_range_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(UserError, match=r"keep\."):
        Replay(**bad).check(None)
