"""Recursive tournament voting: who meets whom, what many votes do to a noisy judge."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from evolvent.search.attempts.summary import Summary
from evolvent.search.attempts.tournament import Tournament, majority, read_vote


@pytest.mark.parametrize(("count", "keep", "group", "sizes"), [
    (8, 4, 2, [2, 2, 2, 2]), (8, 1, 2, [2, 2, 2, 2]), (5, 1, 2, [2, 2]), (3, 2, 2, [2]),
    (16, 1, 16, [16]), (6, 3, 4, [4]),
    (7, 1, 3, [3, 3]), (4, 4, 2, []),
])  # fmt: skip
def test_not_more_go_out_than_may(count: int, keep: int, group: int, sizes: list[int]) -> None:
    groups, rest = Tournament(group).draw(range(count), keep)
    assert [len(g) for g in groups] == sizes
    assert sorted([i for g in groups for i in g] + rest) == list(range(count))
    assert len(groups) + len(rest) >= keep


def votes_for_the_better(accuracy: float, votes: int, group: int = 2, draws: int = 4000) -> float:
    rng, it = np.random.default_rng(0), Tournament(group, votes, accuracy)
    pool = [Summary("", passed=int(i == 0), shown=2) for i in range(group)]
    places = list(range(group))
    return sum(majority(places, it.noisy(pool, places, rng), rng) == 0 for _ in range(draws)) / draws


def test_votes_make_a_noisy_judge_right_more_often() -> None:
    def wins(p: float, n: int) -> float:  # of a majority of n votes, half of the draws
        terms = [
            comb(n, k) * p**k * (1 - p) ** (n - k) * (1.0 if 2 * k > n else 0.5) for k in range(n + 1) if 2 * k >= n
        ]
        return sum(terms)

    assert votes_for_the_better(0.65, 1) == pytest.approx(0.65, abs=0.025)
    assert votes_for_the_better(0.65, 8) == pytest.approx(wins(0.65, 8), abs=0.025)
    assert wins(0.65, 8) > 0.79
    assert votes_for_the_better(1.0, 1) == 1.0
    assert votes_for_the_better(0.65, 1, group=16) == pytest.approx(0.65 / (0.65 + 15 * 0.35), abs=0.02)


def test_equals_are_drawn() -> None:
    rng = np.random.default_rng(0)
    assert {majority([3, 5], [], rng) for _ in range(40)} == {3, 5}
    assert {majority([3, 5, 7], [3, 5], rng) for _ in range(40)} == {3, 5}
    assert majority([3, 5], [5, 3, 5], rng) == 5


def test_votes_are_read() -> None:
    assert read_vote("Attempt 1 is short.\nBest: 2", 2) == 2
    assert read_vote("best attempt is **1**\nBest: 1", 2) == 1
    assert [read_vote(text, 2) for text in ("Best: 3", "Best: 0", "none", "2")] == [0, 0, 0, 0]
