"""Scores as probabilities: Bayes' rule on counts, by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from evolvent.learn.calibration import Calibration


def test_bayes_rule_on_smoothed_counts() -> None:
    part = Calibration(128)
    part.counts[0, :3], part.counts[1, :3] = (6, 1, 0), (1, 4, 8)
    wanted = []
    for wrong, right in ((6, 1), (1, 4), (0, 8), (0, 0)):
        likely = Fraction(right + 1, 13 + 128) * Fraction(13 + 1, 20 + 2)
        unlikely = Fraction(wrong + 1, 7 + 128) * Fraction(7 + 1, 20 + 2)
        wanted.append(float(likely / (likely + unlikely)))
    assert part(np.array([0.0, 1 / 128, 2 / 128, 1.0])) == pytest.approx(wanted)


def test_nothing_is_known_at_first() -> None:
    assert Calibration(128)(np.array([0.0, 0.3, 1.0])) == pytest.approx([0.5, 0.5, 0.5])


def test_answers_are_counted_in_the_bin_of_their_score() -> None:
    part = Calibration(4)
    part.add(np.array([0.0, 0.24, 0.25, 1.0, 1.0, 0.1]), np.array([False, True, True, True, False, False]))
    assert part.counts.tolist() == [[2, 0, 0, 1], [1, 1, 0, 1]]


def test_scores_that_are_off_are_put_right() -> None:
    """Of answers scored x, x squared are right."""
    rng, part = np.random.default_rng(0), Calibration(10)
    for _ in range(20):
        scores = rng.random(1000)
        part.add(scores, rng.random(1000) < scores**2)
    middle = (np.arange(10) + 0.5) / 10
    assert part(middle) == pytest.approx(middle**2, abs=0.03)
