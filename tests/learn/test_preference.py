"""Pairs of a group, and the losses of a pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.learn.learning_views import make_view, random_view, tensor

from evolvent.core.records import Group, Problem, Trajectory
from evolvent.learn.preference import (
    Preference,
    best_and_worst,
    hinge,
    ipo,
    pair_batch,
    right_and_wrong,
    sigmoid,
    split,
)

PROBLEM = Problem("key", (), {})
margins = st.lists(st.floats(-20, 20), min_size=1, max_size=6).map(tensor)


def group(scores: list[float]) -> Group:
    """Judged answers, the outcome being the score."""
    rows = []
    for i, score in enumerate(scores):
        rows.append(Trajectory(i, PROBLEM, np.zeros(3, np.int32), np.ones(3, bool), np.zeros(3, np.float32)))
        rows[-1].reward("outcome", score)
    return Group(PROBLEM, rows)


def uids(pairs: list[tuple[Trajectory, Trajectory]]) -> list[tuple[int, int]]:
    """Who is preferred to whom."""
    return [(a.uid, b.uid) for a, b in pairs]


@pytest.mark.parametrize(
    ("scores", "extremes", "matched"),
    [
        ([0.0, 1.0, 0.0, 1.0], [(1, 0)], [(1, 0), (3, 2)]),
        ([1.0, 1.0, 0.0], [(0, 2)], [(0, 2)]),
        ([0.3, 0.9, 0.1], [(1, 2)], []),
        ([1.0, 1.0], [], []),
        ([], [], []),
    ],
)
def test_pairs_of_a_group(scores: list[float], extremes: Any, matched: Any) -> None:
    assert uids(best_and_worst(group(scores))) == extremes
    assert uids(right_and_wrong(group(scores))) == matched


def test_answers_with_errors_are_in_no_pair() -> None:
    made = group([1.0, 0.0, 0.0])
    made.trajectories[1].error = "verifier: down"
    assert uids(best_and_worst(made)) == uids(right_and_wrong(made)) == [(0, 2)]


def test_a_batch_of_pairs() -> None:
    batch = pair_batch(right_and_wrong(group([0.0, 1.0, 0.0, 1.0])))
    assert [t.uid for t in batch.rows] == [1, 0, 3, 2]
    assert list(batch.weight) == [1, -1, 1, -1]
    assert batch.columns["pair"].tolist() == [0, 0, 1, 1]


@given(margin=margins, beta=st.floats(0.01, 2))
def test_losses_in_closed_form(margin: torch.Tensor, beta: float) -> None:
    for m, a, b, c in zip(margin.tolist(), sigmoid(margin, beta), hinge(margin, beta), ipo(margin, beta), strict=True):
        assert a.item() == pytest.approx(math.log1p(math.exp(-beta * m)), rel=1e-6)
        assert b.item() == pytest.approx(max(0.0, 1 - beta * m))
        assert c.item() == pytest.approx((m - 0.5 / beta) ** 2)


def test_at_the_start_every_pair_costs_log_two() -> None:
    assert sigmoid(torch.zeros(3), 0.1).tolist() == pytest.approx([math.log(2)] * 3)


@given(seed=st.integers(0, 10**6))
def test_the_gradient_raises_the_chosen_and_lowers_the_rejected(seed: int) -> None:
    """Each token by beta sigmoid(-beta m) / pairs (DPO, section 4), whatever the order of rows."""
    view, leaf = random_view(seed, rows=6)
    order = np.random.default_rng(seed).permutation(6)
    sign, pair = np.tile([1.0, -1.0], 3)[order], np.repeat(np.arange(3), 2)[order]
    view.advantage = tensor(sign)[:, None].expand_as(leaf).masked_fill(~view.mask, 0.0)
    view.columns = {"pair": torch.from_numpy(pair)}
    chosen, rejected = split(view)
    learner = Preference(beta=0.3)
    learner.counts = {}
    learner.loss(view).backward()
    margin = (chosen - rejected).detach()
    expected = -0.3 * torch.sigmoid(-0.3 * margin)[pair] * tensor(sign) / 3
    np.testing.assert_allclose(leaf.grad, expected[:, None] * view.mask, atol=1e-9)
    assert learner.counts["ranked"] == int((margin > 0).sum())


def test_a_chosen_answer_is_paired_with_its_own_rejected_one() -> None:
    logprob = tensor([[-1.0], [-2.0], [-3.0], [-5.0]])
    view = make_view(
        logprob, logprob, tensor([[-1.0], [1.0], [1.0], [-1.0]]), torch.ones(4, 1).bool(), reference=logprob * 0
    )
    view.columns = {"pair": torch.tensor([1, 0, 1, 0])}
    chosen, rejected = split(view)
    assert chosen.tolist() == [-2.0, -3.0]
    assert rejected.tolist() == [-5.0, -1.0]
