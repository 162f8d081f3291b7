"""Who takes part in the next contest, and what evolution reads of the last one."""

from __future__ import annotations

import numpy as np
import pytest

from evolvent.search.contests.entrants import challengers, incumbents, unconfirmed
from evolvent.search.contests.failures import Failure, read_failures, tally
from evolvent.search.contests.iterations import agreement

CONTESTS = [{0: 0.3}, {0: 0.2, 1: 0.4}, {1: 0.6, 0: 0.5, 2: 0.6}, {1: 0.3, 3: 0.2, 0: 0.1}]
RATINGS = {0: 1440.0, 1: 1570.0, 2: 1520.0, 3: 1470.0}


def test_winners_are_unconfirmed_until_they_play_again() -> None:
    assert unconfirmed(CONTESTS, [0, 1, 2, 3], RATINGS) == [1, 2]  # the latest first; 0 has played since it won
    assert unconfirmed(CONTESTS, [0, 2, 3], RATINGS) == [2]
    assert unconfirmed(CONTESTS[:1], [0], {0: 1500.0}) == [0]
    assert unconfirmed(CONTESTS[:3], [0, 1, 2], RATINGS) == [1, 2]


def test_incumbents_are_winners_then_some_of_the_best() -> None:
    rng = np.random.default_rng(0)
    assert incumbents(CONTESTS, [0, 1, 2, 3], RATINGS, 2, rng) == [1, 2]
    drawn = {tuple(incumbents(CONTESTS, [0, 1, 2, 3], RATINGS, 3, rng)) for _ in range(40)}
    assert drawn == {(1, 2, 3), (1, 2, 0)}
    lost = [{0: 0.1, 4: 0.5}, {4: 0.1, 1: 0.2}, {1: 0.1, 2: 0.5}, {2: 0.1, 3: 0.2}, {3: 0.0, 5: 0.1}]
    ratings = {0: 1.0, 1: 5.0, 2: 4.0, 3: 3.0, 4: 2.0, 5: 0.0}
    pool = {incumbents(lost, [0, 1, 2, 3, 4], ratings, 1, rng)[0] for _ in range(40)}
    assert pool == {1, 2}  # the best two, for one place
    assert incumbents(CONTESTS, [0], RATINGS, 2, rng) == [0]


def test_challengers_are_rarely_seen_and_highly_rated() -> None:
    contests = [*CONTESTS, {4: 0.5, 5: 0.5, 6: 0.4}, {4: 0.2, 1: 0.3}, {5: 0.1, 1: 0.2}, {1: 0.5}]
    ratings = {**RATINGS, 4: 1510.0, 5: 1505.0, 6: 1490.0}
    rng = np.random.default_rng(1)
    known = [0, 1, 2, 3, 4, 5, 6]
    assert unconfirmed(contests, known, ratings) == [1, 2]
    drawn = {tuple(challengers(contests, known, ratings, 3, 1500.0, rng)) for _ in range(40)}
    assert drawn == {(4, 5, 1), (5, 4, 1)}
    assert challengers(contests, known, ratings, 2, 1508.0, rng) == [4, 1]
    assert set(challengers(contests, known, ratings, 9, 0.0, rng)[:2]) == {3, 6}  # one contest each


def test_agreement_of_ratings_with_a_contest() -> None:
    assert agreement({0: 0.1, 1: 0.4, 2: 0.3, 9: 0.9}, RATINGS) == 1  # 9 was not rated before
    assert agreement({0: 0.5, 1: 0.4, 2: 0.3}, RATINGS) == pytest.approx(1 / 3)
    assert agreement({0: 0.5, 1: 0.5}, RATINGS) is None
    assert agreement({0: 0.5, 1: 0.4}, {0: 1500.0, 1: 1500.0}) == 0.5


def test_failures_are_read_by_what_is_seen_of_them() -> None:
    feedback = "\n".join(
        [
            "a/1\tHow many x have a sowing date in 2020?\tSELECT 1\t1 rows, which are not the right ones",
            "a/2\tGive the name of all x whose y has the z 'v'.\tSELECT 2\tambiguous column name: name",
            "a/3\tWhat is the average w of the x?\t\tthe report has no column for the w in x",
            "a/4\tHow many x have the z 'v'?\tSELECT 3\t1 rows, which are not the right ones",
            "something else",
        ]
    )
    found = read_failures(feedback)
    assert [f.name for f in found] == ["a/1", "a/2", "a/3", "a/4"]
    assert [f.kinds for f in found] == [["date"], ["ambiguous"], ["column"], ["text"]]
    assert Failure("n", "Give the name of the x with the lowest w.", "", "wrong").kinds == ["number", "missing"]
    assert Failure("n", "What?", "", "").kinds == ["other"]
    assert tally([*found, Failure("n", "What is the average w of the x?", "", "wrong")]) == {
        "date": 1, "ambiguous": 1, "column": 1, "text": 1, "number": 0.5, "missing": 0.5,
    }  # fmt: skip
