"""Values near the largest float."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.magnitude import mean, moderate

ORDINARY = st.lists(st.floats(-1e299, 1e299), min_size=1, max_size=8)


@given(ORDINARY)
def test_ordinary_values_are_left_alone(values: list[float]) -> None:
    assert moderate(np.array(values)).tolist() == values
    assert mean(values) == statistics.fmean(values)


@given(st.lists(st.floats(-1.79e308, 1.79e308), min_size=1, max_size=8))
def test_of_any_values_there_are_differences_and_sums(values: list[float]) -> None:
    made = moderate(np.array(values))
    assert np.isfinite(made[:, None] - made).all()
    assert np.isfinite(made.sum())
    assert np.isfinite(mean(values))


def test_what_is_missing_stays_missing() -> None:
    made = moderate(np.array([1e308, -np.inf, 1.5e308]))
    assert made[1] == -np.inf
    assert made[2] / made[0] == pytest.approx(1.5)


def test_a_mean_by_hand() -> None:
    assert mean([1.6e308, 1.2e308]) == pytest.approx(1.4e308)
