"""Streams depend on their path and on nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.random import identifier, identifiers, stream
from evolvent.engine.noise import uniform

paths = st.lists(st.one_of(st.integers(), st.text(max_size=5), st.none()), max_size=4)


@given(st.integers(0, 2**32), paths, paths)
def test_equal_paths_give_equal_streams_and_others_do_not(seed: int, a: list[object], b: list[object]) -> None:
    assert (stream(seed, *a).integers(0, 2**62, 3) == stream(seed, *a).integers(0, 2**62, 3)).all()
    assert (identifier(seed, *a) == identifier(seed, *b)) == (a == b)


@given(st.integers(0, 2**32), paths, st.integers(0, 12))
def test_identifiers_are_those_of_the_single_paths(seed: int, path: list[object], count: int) -> None:
    assert identifiers(count, seed, *path) == [identifier(seed, *path, i) for i in range(count)]


def test_types_and_borders_of_a_path_count() -> None:
    assert len({identifier(0, *p) for p in [("a", 1), ("a1",), ("a", "1"), ("a", 1, None), (1, "a")]}) == 5


def test_noise_is_uniform_and_independent_over_uids_and_positions() -> None:
    uids = np.array([identifier(0, i) for i in range(400)], np.int64)
    grid = np.array([uniform(uids, np.full(400, p)) for p in range(100)])
    assert grid.min() >= 0
    assert grid.max() < 1
    counts = np.histogram(grid, 50, (0, 1))[0]
    expected = grid.size / 50
    assert ((counts - expected) ** 2 / expected).sum() < 90  # chi-square, 49 degrees: 99.97 % lie below
    assert abs(np.corrcoef(grid[0], grid[1])[0, 1]) < 0.2
    assert abs(np.corrcoef(grid[:, 0], grid[:, 1])[0, 1]) < 0.4
