"""Domination: who is left, by its definition, and that many points take no longer than their front."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.objectives import dominates, undominated

VALUES = st.integers(0, 3).map(float) | st.just(-np.inf)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=12))
def test_undominated_is_whom_nobody_dominates(rows: list[tuple[float, ...]]) -> None:
    wanted = [
        not any(all(a >= b for a, b in zip(other, row, strict=True)) and other != row for other in rows) for row in rows
    ]
    points = np.array(rows)
    assert undominated(points).tolist() == wanted
    assert (~dominates(points).any(0)).tolist() == wanted


def test_many_points_that_are_right_or_wrong_are_no_trouble() -> None:
    points = np.random.default_rng(0).integers(0, 2, (10_000, 10)).astype(float)
    begun = time.process_time()
    free = undominated(points)
    assert time.process_time() - begun < 2  # comparing all pairs takes ten seconds
    assert free.tolist() == (points == 1).all(1).tolist()
