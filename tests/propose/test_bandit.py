"""The bandit: its values and probabilities by hand, what counts as an advantage, mixtures, and its state."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.propose.bandit import Bandit, advantage_sizes, arm
from evolvent.tasks.registry import load_task


def group(category: str, uids: list[int], task: str = "toy") -> Group:
    """Trajectories of one problem."""
    problem = Problem(f"{category}{uids}", (), {}, category, task)
    mask = np.array([False, True, True, False])
    zeros = np.zeros(4, np.float32)
    return Group(problem, [Trajectory(u, problem, zeros.astype(np.int32), mask, zeros) for u in uids])


def step(groups: list[Group], batches: list[Batch], categories: tuple[str, ...] = ("a", "b", "c")) -> Step:
    """A step after learning."""
    role: Any = SimpleNamespace(name="", seed=0, task=SimpleNamespace(categories=categories))
    return Step(0, role, groups=groups, batches=batches)


def fresh(groups: list[Group], weights: list[float], name: str = "fresh") -> Batch:
    """All rows of the groups with these weights."""
    return Batch([t for g in groups for t in g.trajectories], np.array(weights, np.float32), name)


def test_values_and_chances_by_hand() -> None:
    part = Bandit(alpha=0.25, tau=0.5)
    assert part.chances(("a", "b", "c")) == pytest.approx([1 / 3] * 3)
    a, b = group("a", [1, 2]), group("b", [3, 4])
    part.observe(step([a, b], [fresh([a, b], [1.0, -3.0, 0.0, 0.0])]))
    assert part.values == {"a": 0.25 * 2.0, "b": 0.0}
    again = group("a", [5, 6])
    part.observe(step([again], [fresh([again], [-0.4, 0.4])]))
    value = 0.25 * 0.4 + 0.75 * 0.5
    assert part.values == pytest.approx({"a": value, "b": 0.0})  # b was not in the step: it stays, and c has none
    e = math.exp(value / 0.5)
    assert part.chances(("a", "b", "c")) == pytest.approx([e / (e + 2), 1 / (e + 2), 1 / (e + 2)])


def test_draws_follow_the_chances_and_repeat() -> None:
    part = Bandit(tau=0.3)
    part.values = {"a": 0.9, "b": 0.3}
    s = step([], [])
    drawn = part(20000, s)
    share = [drawn.count(c) / 20000 for c in ("a", "b", "c")]
    assert share == pytest.approx(part.chances(("a", "b", "c")), abs=0.015)
    assert drawn == part(20000, s)


def test_large_values_do_not_overflow() -> None:
    part = Bandit(tau=1e-3)
    part.values = {"a": 50.0, "b": 49.0}
    assert part.chances(("a", "b", "c")) == pytest.approx([1.0, 0.0, 0.0])


def test_silent_rows_and_left_out_groups_count_as_zero_but_other_rows_left_out_do_not() -> None:
    a, b, c = group("a", [1, 2, 3]), group("b", [4, 5]), group("c", [6, 7])
    c.trajectories[1].error = "verifier: down"
    pivot_gone = Batch(a.trajectories[:2], np.array([2.0, 0.0], np.float32))  # row 3 was left out of the group
    old = group("b", [8, 9])
    replay = fresh([old], [9.0, 9.0], "replay")
    s = step([a, b, c], [pivot_gone, replay])
    assert advantage_sizes(s) == {"a": [2.0, 0.0], "b": [0.0, 0.0], "c": [0.0]}


def test_weights_of_tokens_count_by_their_mean() -> None:
    a = group("a", [1])
    batch = Batch(a.trajectories, [np.array([9.0, -1.0, 2.0, 9.0], np.float32)])
    assert advantage_sizes(step([a], [batch])) == {"a": [1.5]}  # mask: the two in the middle


def test_arms_of_a_mixture_are_task_and_category() -> None:
    task = load_task("arith:2x1,2x2+countdown:3x12")
    rng = np.random.default_rng(0)
    for category in task.categories:
        assert arm(task.draw("train", rng, category), task.categories) == category
    single = load_task("arith:2x1,2x2")
    assert arm(single.draw("train", rng, "2x2"), single.categories) == "2x2"


def test_state_comes_back() -> None:
    part, other = Bandit(), Bandit()
    part.values = {"a": 0.5, "b": 0.25}
    other.load_state_dict(part.state_dict())
    assert other.values == part.values
    assert other(50, step([], [])) == part(50, step([], []))


@pytest.mark.parametrize(("alpha", "tau"), [(0.0, 1.0), (1.1, 1.0), (0.5, 0.0)])
def test_rates_out_of_range_are_refused(alpha: float, tau: float) -> None:
    with pytest.raises(UserError, match=r"propose\.choose\.alpha"):
        Bandit(alpha, tau).check(None)
