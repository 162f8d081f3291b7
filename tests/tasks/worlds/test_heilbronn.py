"""The Heilbronn world: cases by hand, its symmetries, and areas computed in another way."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.tasks.worlds.heilbronn import SEED, judge

CORNERS = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]


@st.composite
def points(draw: st.DrawFn) -> list[list[float]]:
    """In the triangle, in steps of 1/64."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 64), st.integers(0, 64)), min_size=3, max_size=7))
    return [[x / 64, y / 64] if x + y <= 64 else [1 - x / 64, 1 - y / 64] for x, y in pairs]


@pytest.mark.parametrize(
    ("rows", "smallest"),
    [
        (CORNERS, 1),
        ([*CORNERS, [0.25, 0.25]], 1 / 4),  # with two corners it spans x, y or 1 - x - y: 1/4, 1/4, 1/2
        ([*CORNERS, [0.5, 0.5]], 0),  # on a side
        ([*CORNERS, [0, 0]], 0),
        ([[0, 0], [0.5, 0], [0, 0.5]], 1 / 4),
        ([[0.5, 0], [0.5, 0.5], [0, 0.5]], 1 / 4),
    ],
)
def test_by_hand(rows: list[list[float]], smallest: float) -> None:
    assert judge(rows, len(rows)).value == smallest


@given(points(), st.randoms())
def test_symmetries(rows: list[list[float]], random: Any) -> None:
    """The triangle's, exactly: x, y and 1 - x - y change places, and so do points."""
    n, found = len(rows), judge(rows, len(rows)).value
    assert judge([[y, x] for x, y in rows], n).value == found
    assert judge([[y, 1 - x - y] for x, y in rows], n).value == found
    assert judge(random.sample(rows, n), n).value == found
    areas = [abs(np.linalg.det([[x, y, 1 - x - y] for x, y in three])) for three in combinations(rows, 3)]
    assert found == pytest.approx(min(areas), abs=1e-14)


@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=3, max_size=12))
def test_inside_moves_points_in(rows: list[tuple[float, float]]) -> None:
    names: dict[str, Any] = {}
    exec(SEED, names)
    assert judge(names["inside"](np.array(rows)).tolist(), len(rows)).value is not None


def test_polish_makes_random_points_better() -> None:
    names: dict[str, Any] = {}
    exec(SEED, names)
    for seed in range(5):
        start = names["inside"](np.random.default_rng(seed).dirichlet(np.ones(3), 11)[:, :2])
        before, after = judge(start.tolist(), 11).value, judge(names["polish"](start, 60).tolist(), 11).value
        assert before is not None
        assert after is not None
        assert after > max(0.005, before)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows[:2], "3 rows of two numbers"),
        (lambda rows: [[*row, 0.0] for row in rows], "3 rows of two numbers"),
        (lambda rows: [], "3 rows of two numbers"),
        (lambda rows: None, "3 rows of two numbers"),
        (lambda rows: "abc", "3 rows of two numbers"),
        (lambda rows: ["ab", *rows[1:]], "3 rows of two numbers"),
        (lambda rows: [["0", 0.0], *rows[1:]], "finite number"),
        (lambda rows: [[float("nan"), 0.0], *rows[1:]], "finite number"),
        (lambda rows: [[10**400, 0], *rows[1:]], "finite number"),
        (lambda rows: [[-5e-324, 0.0], *rows[1:]], "point 0 lies outside of the triangle by 4.94e-324"),
        (lambda rows: [*rows[:2], [0.0, 1.0000000000000002]], "point 2 lies outside"),
        (lambda rows: [*rows[:2], [0.75, 0.25000000000000006]], "point 2 lies outside"),  # the float sum is 1
    ],
)
def test_the_verifier_has_no_tolerance(change: Any, told: str) -> None:
    found = judge(change(CORNERS), 3)
    assert (found.value, found.status) == (None, "invalid")
    assert told in found.feedback
