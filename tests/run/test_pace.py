"""How often a state is saved, by a clock of the test's own."""

from __future__ import annotations

from itertools import pairwise

import pytest

from evolvent.run import pace
from evolvent.run.pace import Pace


def saved(size: int, step: float, cost: float, steps: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After which steps of so many seconds a state is saved that takes `cost` seconds to write."""
    now, found = [0.0], []
    monkeypatch.setattr(pace.time, "perf_counter", lambda: now[0])
    saving = Pace(size)
    for t in range(steps):
        now[0] += step
        if saving.due():
            with saving:
                now[0] += cost
            found.append(t)
    return found


def test_without_a_model_in_the_process_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert saved(0, 0.01, 1.0, 5, monkeypatch) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("step", "cost"), [(0.3, 0.02), (1.0, 0.045), (0.2, 0.0005), (30.0, 2.5)])
def test_checkpoints_of_a_model_take_their_share_at_most(
    step: float, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 3000
    found = saved(1, step, cost, steps, monkeypatch)
    assert found[0] == 0  # what a checkpoint costs is measured at once
    assert cost * (len(found) - 1) <= pace.SHARE * step * steps
    assert max(b - a for a, b in pairwise(found)) * step <= cost / pace.SHARE + step


def test_no_checkpoint_is_older_than_some_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = saved(1, 10.0, 20.0, 200, monkeypatch)
    assert max(b - a for a, b in pairwise(found)) * 10.0 <= pace.LONGEST + 10.0
