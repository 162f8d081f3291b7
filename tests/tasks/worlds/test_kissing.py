"""The kissing world: arrangements that are known, angles in floats, and what is refused."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.tasks.worlds.kissing import SEED, judge

HEXAGON = [[1, 1, 0], [0, 1, 1], [1, 0, -1], [-1, -1, 0], [0, -1, -1], [-1, 0, 1]]


def roots(n: int) -> list[list[int]]:
    """Of the lattice D_n: 2 n (n - 1) vectors."""
    found = []
    for i, j in combinations(range(n), 2):
        for a, b in product((1, -1), repeat=2):
            found.append([a if k == i else b if k == j else 0 for k in range(n)])
    return found


def lattice_e8() -> list[list[int]]:
    """The 240 roots of E8, doubled."""
    halves = [list(x) for x in product((1, -1), repeat=8) if x.count(-1) % 2 == 0]
    return [[2 * x for x in row] for row in roots(8)] + halves


@pytest.mark.parametrize(
    ("rows", "n", "count"),
    [(HEXAGON, 3, 6), (roots(3), 3, 12), (roots(4), 4, 24), (lattice_e8(), 8, 240), ([[5, 0]], 2, 1)],
)
def test_known_arrangements(rows: list[list[int]], n: int, count: int) -> None:
    assert judge(rows, n).value == count
    points = np.array(rows, float)
    units = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosines = units @ units.T - 2 * np.eye(len(rows))
    assert cosines.max() <= 0.5 + 1e-12  # 60 degrees apart


@given(st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=2, max_size=6))
def test_what_is_accepted_is_sixty_degrees_apart(rows: list[tuple[int, int, int]]) -> None:
    found = judge([list(row) for row in rows], 3)
    points = np.array(rows, float)
    norms = np.linalg.norm(points, axis=1)
    apart = min(float(np.linalg.norm(a - b)) for a, b in combinations(points, 2))
    assert (found.value is not None) == (norms.min() > 0 and apart > norms.max() - 1e-9)
    if found.value is not None:
        units = points / norms[:, None]
        assert (units @ units.T - 2 * np.eye(len(rows))).max() <= 0.5 + 1e-12


def test_the_library_fills_up_and_breaks_nothing() -> None:
    names: dict[str, Any] = {}
    exec(SEED, names)
    assert judge(names["run"](11, 0), 11).value == 22
    filled = names["fill"](names["shell"](5, 1, 2), names["shell"](5, 4))
    found = judge(filled.tolist(), 5).value
    assert found is not None
    assert found > 10


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "1 to 1500 rows"),
        (None, "1 to 1500 rows"),
        ([[1, 0]], "rows of 3 whole numbers"),
        ([[1.0, 0, 0]], "whole one"),
        ([[True, 0, 0]], "whole one"),
        ([[2**28 + 1, 0, 0]], "at most"),
        ([[0, 0, 0]], "vector 0 is zero"),
        ([[1, 0, 0], [1, 0, 0]], "vectors 0 and 1 are too close"),
        ([[2, 0, 0], [0, 1, 0], [1, 1, 0]], "too close"),
        ([[2**28, 0, 0], [2**28 - 1, 2**27, 0]], "too close"),
    ],
)
def test_what_is_refused(rows: Any, told: str) -> None:
    found = judge(rows, 3)
    assert (found.value, found.status) == (None, "invalid")
    assert told in found.feedback
