"""Which problems a step works on."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.toys import random_policy, role_of

from evolvent.core.errors import UserError
from evolvent.core.records import Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.propose.problems import Problems, in_order, uniform
from evolvent.tasks.base import split_of


def step(t: int = 0, seed: int = 0) -> Step:
    """Step t of a role on the toy task of two categories."""
    role: Role = role_of(random_policy(layers=1, width=16), seed=seed)
    return Step(t, role)


def asked(s: Step, part: Problems) -> list[Request]:
    """The requests of the only round."""
    rounds = list(part(s))
    assert len(rounds) == 1
    return rounds[0]


def test_one_round_of_train_problems() -> None:
    requests = asked(step(), Problems(problems=20, n=3))
    assert [r.n for r in requests] == [3] * 20
    assert {split_of(r.problem.key) for r in requests} == {"train"}
    assert len({r.problem.key for r in requests}) > 15


def test_a_step_draws_the_same_problems_again_and_another_step_or_seed_others() -> None:
    def keys(s: Step) -> list[str]:
        return [r.problem.key for r in asked(s, Problems(problems=8))]

    assert keys(step()) == keys(step())
    assert keys(step()) != keys(step(t=1))
    assert keys(step()) != keys(step(seed=1))
    later = step()
    later.round = 1
    assert keys(step()) != keys(later)


def test_categories_are_drawn_alike() -> None:
    counts = Counter(uniform(2000, step()))
    assert set(counts) == {"easy", "hard"}
    assert abs(counts["easy"] - 1000) < 120


@pytest.mark.parametrize(("t", "category"), [(0, "easy"), (4, "easy"), (5, "hard"), (9, "hard"), (500, "hard")])
def test_easy_ones_first(t: int, category: str) -> None:
    assert in_order(3, step(t), steps=10) == [category] * 3


@pytest.mark.parametrize("part", [Problems(problems=0), Problems(n=0)])
def test_counts_are_positive(part: Problems) -> None:
    with pytest.raises(UserError, match="at least 1 problem and 1 rollout"):
        part.check(None)
