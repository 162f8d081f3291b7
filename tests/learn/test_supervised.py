"""Which trajectories are imitated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from evolvent.core.records import Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.learn.supervised import Imitate, best, correct

PROBLEM = Problem("key", (), {})


def group(outcomes: list[float], **shaping: float) -> Group:
    """Judged answers; shaping is added to all."""
    rows = []
    for i, outcome in enumerate(outcomes):
        rows.append(Trajectory(i, PROBLEM, np.zeros(3, np.int32), np.ones(3, bool), np.zeros(3, np.float32)))
        rows[-1].reward("outcome", outcome)
        for name, value in shaping.items():
            rows[-1].reward(name, value * i)
    return Group(PROBLEM, rows)


def uids(rows: list[Trajectory]) -> list[int]:
    """Who was chosen."""
    return [t.uid for t in rows]


def test_all_correct_answers() -> None:
    assert uids(correct(group([0.0, 1.0, 0.5, 1.0]))) == [1, 3]
    assert correct(group([0.0, 0.0])) == []


def test_the_best_answer_unless_it_is_worth_nothing() -> None:
    assert uids(best(group([0.0, 1.0, 1.0]))) == [1]
    assert uids(best(group([0.2, 0.1]))) == [0]
    assert uids(best(group([1.0, 1.0], length=0.1))) == [1]
    assert best(group([0.0, 0.0], length=0.1)) == []
    assert best(Group(PROBLEM, [])) == []


def step(*groups: Group) -> Any:
    """A step with these groups."""
    return Step(0, SimpleNamespace(), groups=list(groups))  # type: ignore[arg-type]


def test_a_demonstration_brings_the_weights_of_its_tokens() -> None:
    demonstrated = group([1.0])
    demonstrated.trajectories[0].info["weights"] = np.array([0, 1, 5], np.float32)
    s = step(demonstrated, group([1.0, 0.0]))
    (batch,) = Imitate()(s)
    assert uids(batch.rows) == [0, 0]
    assert [w.tolist() for w in batch.weight] == [[0, 1, 5], [1, 1, 1]]
    assert s.metrics["chosen"] == 2


def test_nothing_to_imitate() -> None:
    assert Imitate()(step(group([0.0]))) == []
