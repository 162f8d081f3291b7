"""Ratings, against values by hand; who leads; how ratings come from the history alone."""

from __future__ import annotations

import numpy as np
import pytest

from evolvent.search.candidate import Candidate
from evolvent.search.contests.ratings import (
    best_contest,
    best_single,
    contests_of,
    elo,
    elo_leader,
    elo_parent,
    expected,
    leader,
    mean_accuracy,
    naive,
)
from evolvent.search.parents import Pool
from evolvent.tasks.evaluation import Evaluation


def candidate(uid: int, value: float | None = 0.5, **contests: float) -> Candidate:
    metrics = {f"contest/{name.removeprefix('c')}": accuracy for name, accuracy in contests.items()}
    return Candidate(uid, {"program": ""}, Evaluation(value, metrics))


def test_expected_points() -> None:
    assert expected(1500, 1500) == 0.5
    assert expected(1900, 1500) == pytest.approx(10 / 11)
    assert expected(1500, 1900) + expected(1900, 1500) == pytest.approx(1)


def test_elo_by_hand() -> None:
    assert elo([{0: 0.3}]) == {0: 1500}  # nobody to play with
    assert elo([{0: 0.3, 1: 0.5}]) == {0: 1484, 1: 1516}
    assert elo([{0: 0.4, 1: 0.4}]) == {0: 1500, 1: 1500}
    assert elo([{0: 0.2, 1: 0.4, 2: 0.6}]) == {0: 1468, 1: 1500, 2: 1532}
    found = elo([{0: 0.2, 1: 0.4}, {1: 0.1, 0: 0.9}])
    surprise = 1 / (1 + 10 ** ((1516 - 1484) / 400))  # 0.454
    assert found[0] == pytest.approx(1484 + 32 * (1 - surprise))
    assert found[0] + found[1] == pytest.approx(3000)
    draw = elo([{0: 0.2, 1: 0.4}, {0: 0.5, 1: 0.5}])
    assert draw[0] == pytest.approx(1484 + 32 * (0.5 - surprise))
    assert elo([{0: 0.2, 1: 0.4}], start=0, k=10) == {0: -5, 1: 5}


def test_elo_compares_within_contests_and_greedy_across_them() -> None:
    easy_and_hard = [{0: 0.9, 1: 0.95, 2: 0.8}, {1: 0.2, 3: 0.4}, {1: 0.3, 3: 0.5}, {3: 0.4, 0: 0.2}]
    ratings = elo(easy_and_hard)
    assert max(ratings, key=lambda u: ratings[u]) == 3
    assert best_contest(easy_and_hard) == {0: 0.9, 1: 0.95, 2: 0.8, 3: 0.5}
    assert mean_accuracy(easy_and_hard)[1] == pytest.approx((0.95 + 0.2 + 0.3) / 3)
    reverse = [dict(reversed(c.items())) for c in easy_and_hard]
    assert elo(reverse) == pytest.approx(ratings)  # the order of pairs does not matter


def test_ratings_follow_from_the_history() -> None:
    history = [
        candidate(0, c1=0.9, c2=0.3),
        candidate(1, c2=0.5, c10=0.4),
        candidate(2, None, c2=0.9),
        candidate(3),
        candidate(4, c10=0.2),
    ]
    assert contests_of(history) == [{0: 0.9}, {0: 0.3, 1: 0.5, 2: 0.9}, {1: 0.4, 4: 0.2}]
    best = elo_leader(history)
    assert best is history[1]  # 2 has won, and is not valid
    assert best_single(history) is history[0]
    assert naive(history) is history[0]
    assert leader([candidate(0), candidate(1)], {}) is not None
    assert leader([candidate(0, None)], {0: 1500.0}) is None
    valid = [c for c in history if c.valid]
    pool = Pool(valid, np.zeros(len(valid)), history[0], history[-1], history)
    rng = np.random.default_rng(0)
    assert elo_parent(pool, rng) is history[1]
    assert {elo_parent(pool, rng, best=2).uid for _ in range(30)} == {1, 4}  # 0 has lost twice
    unrated = Pool([candidate(7)], np.zeros(1), history[0], history[-1], [candidate(7)])
    assert elo_parent(unrated, rng).uid == 7
