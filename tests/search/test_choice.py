"""Bandits against their formulas, computed here in plain Python."""

from __future__ import annotations

import copy
import math
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.lineage import pack
from evolvent.search.candidate import Candidate
from evolvent.search.choice import AsymmetricUCB, Choice, Thompson, Uniform, gain, outcomes
from evolvent.tasks.evaluation import Evaluation

ARMS = ("a", "b", "c")
KINDS: tuple[Any, ...] = (Uniform, Thompson, AsymmetricUCB, partial(AsymmetricUCB, frugality=0.9, cost_bonus=1.0))
updates = st.lists(st.tuples(st.sampled_from(ARMS), st.floats(-1, 3), st.none() | st.floats(0.01, 5)), max_size=25)


def test_gain() -> None:
    assert gain(3.0, 1.0, 2.0) == 1.0
    assert gain(3.0, 2.5, 2.0) == 0.5
    assert gain(3.0, 2.5) == 0.5
    assert gain(1.0, 2.0) == 0.0
    assert gain(None, 2.0) == 0.0


def fractions(choice: Choice, draws: int = 4000) -> dict[str, float]:
    rng = np.random.default_rng(0)
    found = Counter(copy.deepcopy(choice).choose(rng) for _ in range(draws))
    return {arm: found[arm] / draws for arm in ARMS}


def test_uniform() -> None:
    choice = Uniform(ARMS)
    choice.update("a", 5.0)
    assert fractions(choice) == pytest.approx(dict.fromkeys(ARMS, 1 / 3), abs=0.03)


def test_thompson_counts_and_forgets() -> None:
    choice = Thompson(ARMS, decay=0.5)
    for arm, reward in (("a", 1.0), ("a", 0.0), ("b", 2.0)):
        choice.update(arm, reward)
    assert choice.trials.tolist() == [[0.125, 0.25], [0.5, 0], [0, 0]]


def test_thompson_draws_from_betas() -> None:
    choice = Thompson(ARMS[:2], decay=1.0)
    for _ in range(2):
        choice.update("a", 1.0)
    # P(x > y) for x ~ Beta(3, 1), y ~ Beta(1, 1): the mean of x
    assert fractions(choice)["a"] == pytest.approx(3 / 4, abs=0.03)


class Plain:
    """The formulas of AsymmetricUCB, without logarithms."""

    def __init__(self, decay: float, c: float, k: float, bonus: float) -> None:
        self.decay, self.c, self.k, self.bonus = decay, c, k, bonus
        self.n, self.s, self.w = (dict.fromkeys(ARMS, 0.0) for _ in range(3))
        self.costs: dict[str, list[float]] = {arm: [] for arm in ARMS}
        self.scale = 0.0

    def update(self, arm: str, reward: float, cost: float | None) -> None:
        added = math.exp(max(reward, 0)) - 1
        self.n[arm] += 1
        self.s[arm] += added
        self.w[arm] += 1
        for a in ARMS:
            self.s[a] = self.faded(self.s[a])
            self.w[a] *= self.decay
        self.scale = max(self.faded(max(self.scale, added)), *(self.mean(a) for a in ARMS))
        if cost is not None:
            self.costs[arm].append(cost)

    def faded(self, x: float) -> float:
        return self.decay * x / (1 + (1 - self.decay) * x)

    def mean(self, arm: str) -> float:
        return self.s[arm] / self.w[arm] if self.w[arm] else 0.0

    def scores(self) -> list[float]:
        log = 2 * math.log(max(sum(self.n.values()), 2))
        plain = [(self.mean(a) / self.scale if self.scale else 0) + self.c * math.sqrt(log / self.n[a]) for a in ARMS]
        paid = [cost for costs in self.costs.values() for cost in costs]
        if not paid:
            return plain
        bounds = []
        for a in ARMS:
            number = max(len(self.costs[a]), 1)
            width = self.bonus * (max(paid) - min(paid)) * math.sqrt(log / number)
            bounds.append(max(sum(self.costs[a]) / number - width, 1e-7))
        reference = sorted(bounds)[1]  # whatever it is
        ratios = [reference / b for b in bounds]
        return [(1 - self.k) * p + self.k * r / max(ratios) for p, r in zip(plain, ratios, strict=True)]


@given(updates, st.sampled_from([0.5, 0.95, 1.0]), st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([0.0, 0.5, 1.0]))
def test_asymmetric_ucb(rows: list[tuple[str, float, float | None]], decay: float, c: float, k: float) -> None:
    rows = [*((arm, 0.5, None) for arm in ARMS), *rows]
    choice, plain = AsymmetricUCB(ARMS, c=c, decay=decay, frugality=k), Plain(decay, c, k, 0.1)
    for row in rows:
        choice.update(*row)
        plain.update(*row)
    assert choice.scores() == pytest.approx(plain.scores(), rel=1e-6, abs=1e-9)


def test_the_best_arm_leaves_a_share_to_the_others() -> None:
    choice = AsymmetricUCB(ARMS, epsilon=0.2)
    for arm, reward in (("a", 0.0), ("b", 1.0), ("c", 0.5)):
        choice.update(arm, reward)
    assert choice.chances() == pytest.approx([0.1, 0.8, 0.1])
    assert fractions(choice) == pytest.approx({"a": 0.1, "b": 0.8, "c": 0.1}, abs=0.03)


def test_arms_that_were_not_tried_come_first() -> None:
    choice, rng = AsymmetricUCB(ARMS), np.random.default_rng(0)
    assert choice.chances() == pytest.approx([1 / 3] * 3)
    choice.update("b", 9.0)
    assert choice.chances() == pytest.approx([1 / 2, 0, 1 / 2])
    assert {choice.choose(rng), choice.choose(rng)} == {"a", "c"}  # under way counts as tried
    assert choice.chances() == pytest.approx([0.1, 0.8, 0.1])
    for arm in ("a", "c"):
        choice.update(arm, 0.0)
    assert choice.tried.tolist() == [1, 1, 1]


def test_without_rewards_all_are_alike() -> None:
    choice = AsymmetricUCB(ARMS)
    for arm in ARMS:
        choice.update(arm, -1.0)
    assert choice.chances() == pytest.approx([1 / 3] * 3)


def test_large_rewards_do_not_overflow() -> None:
    choice = AsymmetricUCB(ARMS)
    for arm, reward in (("a", 1e6), ("b", 1e6 + 1), ("c", 3.0)):
        choice.update(arm, reward)
    assert np.isfinite(choice.scores()).all()
    assert choice.scores().argmax() == 1


def test_cheap_arms_are_preferred_where_costs_count() -> None:
    choice = AsymmetricUCB(ARMS, frugality=0.9)
    for arm, cost in (("a", 1.0), ("b", 0.1), ("c", 1.0)):
        choice.update(arm, 1.0, cost)
    assert choice.chances().argmax() == 1


@pytest.mark.parametrize("kind", KINDS)
@given(before=updates, after=updates, seed=st.integers(0, 9))
def test_a_choice_that_was_saved_goes_on_as_if_it_had_not_been(
    tmp_path_factory: pytest.TempPathFactory, kind: Any, before: list[Any], after: list[Any], seed: int
) -> None:
    first = kind(ARMS)
    rng = np.random.default_rng(seed)
    for row in before:
        assert first.choose(rng) in ARMS
        first.update(*row)
    second = kind(ARMS)
    path: Path = tmp_path_factory.mktemp("saved") / "state"
    pack.save(path, first.state_dict())
    second.load_state_dict(pack.load(path))
    one, two = np.random.default_rng(seed), np.random.default_rng(seed)
    for row in after:
        assert first.choose(one) == second.choose(two)
        if isinstance(first, AsymmetricUCB):
            assert first.chances().tolist() == second.chances().tolist()
        first.update(*row)
        second.update(*row)


def test_outcomes_are_gains_over_parent_and_seed_program() -> None:
    def made(uid: int, value: float | None, *parents: int) -> Candidate:
        return Candidate(uid, {"program": ""}, Evaluation(value), parents)

    history = [made(0, 1.0), made(1, None, 0), made(2, 3.0, 0), made(3, 2.0, 2), made(4, 3.5, 3), made(5, -1.0, 0)]
    assert [(c.uid, reward) for c, reward in outcomes(history, 1)] == [(1, 0), (2, 2.0), (3, 0), (4, 1.5), (5, 0)]
    assert [c.uid for c, _ in outcomes(history, 4)] == [4, 5]


def test_the_gain_over_a_huge_negative_value_is_finite() -> None:
    assert math.isfinite(gain(1.7e308, -1.7e308))
    bandit = AsymmetricUCB(ARMS)
    for arm in (*ARMS, *ARMS):
        bandit.update(arm, gain(1.7e308, -1.7e308))
    assert np.isclose(bandit.chances().sum(), 1.0)
