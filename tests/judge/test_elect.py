"""Weighted votes: winners, ties, missing answers; ranks of scores."""

from __future__ import annotations

import numpy as np
import pytest

from evolvent.judge.elect import elected, ranks


@pytest.mark.parametrize(
    ("answers", "weights", "wanted"),
    [
        (["a", "a", "b"], [1, 1, 1], "a"),
        (["a", "a", "b"], [0.2, 0.3, 0.6], "b"),
        (["b", "a"], [1, 1], "b"),  # who came first
        ([None, None, "a"], [1, 1, 0.1], "a"),  # no answer is no vote
        (["x"], [0.0], "x"),
        ([None], [1], None),
        ([], [], None),
    ],
)
def test_the_heaviest_votes_win(answers: list[str | None], weights: list[float], wanted: str | None) -> None:
    assert elected(answers, np.array(weights, float)) == wanted


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [
        ([0.1, 0.9, 0.5], [0.0, 1.0, 0.5]),
        ([-3.0, 70.0, 1e9, 2.0, 0.0], [0.0, 0.75, 1.0, 0.5, 0.25]),
        ([0.3, 0.1, 0.3, 0.3, 0.9], [0.5, 0.0, 0.5, 0.5, 1.0]),  # ranks 1, 2 and 3 of 4 are shared
        ([0.5, 0.5], [0.5, 0.5]),
        ([0.7], [0.0]),
        ([], []),
    ],
)
def test_ranks_by_hand(scores: list[float], wanted: list[float]) -> None:
    assert ranks(np.array(scores)) == pytest.approx(wanted)


def test_votes_weigh_by_rank() -> None:
    answers = ["a", "a", "a", "b", "b", None]
    # ranks 0, 1, 2, 4, 3, 5 of 5: a has 3/5, b has 7/5, None does not vote
    assert elected(answers, ranks(np.array([0.1, 0.2, 0.3, 0.8, 0.7, 0.9]))) == "b"
    assert elected(answers, ranks(np.array([0.9, 0.8, 0.7, 0.1, 0.2, 0.3]))) == "a"


def test_equal_scores_are_a_plain_majority() -> None:
    assert elected(["b", "a", "a"], ranks(np.full(3, 0.5))) == "a"
