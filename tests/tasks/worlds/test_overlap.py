"""The minimum overlap world: cases by hand, its symmetries, and the definition evaluated slowly and exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.tasks.worlds.overlap import SEED, judge


@st.composite
def balanced(draw: st.DrawFn) -> list[float]:
    """Sixteenths in [0, 1] with the mean 1/2."""
    half = draw(st.lists(st.integers(0, 16), min_size=1, max_size=3))
    return [x / 16 for x in draw(st.permutations([*half, *(16 - x for x in half)]))]


def slow(h: list[float]) -> Fraction:
    """Max over k of the integral of h(x) (1 - h(x + k)), for k at the bends and half-way between."""
    n = len(h)

    def at(heights: list[Fraction], x: Fraction) -> Fraction:
        return heights[int(x * n / 2)] if 0 < x < 2 else Fraction(0)

    def overlap(k: Fraction) -> Fraction:
        edges = [Fraction(2 * i, n) for i in range(n + 1)]
        cuts = sorted({*edges, *(x - k for x in edges)})
        middle = [(b - a, (a + b) / 2) for a, b in pairwise(cuts)]
        return sum((width * at(ours, x) * at(theirs, x + k) for width, x in middle), Fraction(0))

    ours = [Fraction(x) for x in h]
    theirs = [1 - x for x in ours]
    return max(overlap(Fraction(i, n)) for i in range(-2 * n, 2 * n + 1))


@pytest.mark.parametrize(
    ("h", "overlap"),
    [
        ([0.5, 0.5], 1 / 2),  # at k = 0 all of [0, 2] overlaps: 2 * 1/2 * 1/2
        ([1, 0], 1),  # moved by 1, [0, 1] is on its complement
        ([0, 1, 1, 0], 1 / 2),  # moved by 1/2 or 1, half of [1/2, 3/2] is
        ([0.25, 0.75], 9 / 16),  # 3/16 + 3/16 at k = 0; 1/4 * 1/4 at k = 1; 3/4 * 3/4 at k = -1
    ],
)
def test_by_hand(h: list[float], overlap: float) -> None:
    found = judge(h, len(h))
    assert found.value == -found.metrics["overlap"] == -overlap


@given(balanced())
def test_it_is_what_the_definition_says(h: list[float]) -> None:
    found = judge(h, len(h)).value
    assert found == pytest.approx(-float(slow(h)), rel=1e-14)
    assert found is not None
    assert -1 <= found <= -0.25
    for same in (h[::-1], [1 - x for x in h], [x for x in h for _ in range(3)]):
        assert judge(same, len(same)).value == pytest.approx(found, rel=1e-14)


@given(st.lists(st.floats(), min_size=2, max_size=60))
def test_level_makes_any_heights_fit(h: list[float]) -> None:
    names: dict[str, Any] = {}
    exec(SEED, names)
    with np.errstate(all="ignore"):
        fit = names["level"](h).tolist()
    assert sum(map(Fraction, fit)) == Fraction(len(h), 2)
    assert judge(fit, len(h)).value is not None
    assert names["level"](fit).tolist() == fit


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([0.5], "must return 2 numbers"),
        ([], "must return 2 numbers"),
        ("ab", "must return 2 numbers"),
        ([0.5, "0.5"], "height 1 is no finite number"),
        ([float("nan"), 0.5], "height 0 is no finite number"),
        ([10**400, 0.5], "height 0 is no finite number"),
        ([-0.5, 1.5], "height 0 is -0.5, below 0"),
        ([0.0, np.nextafter(1, 2).item()], "height 1 is 1.0000000000000002, above 1"),
        ([0.5, 0.25], "-0.25 off"),
        ([0.5, np.nextafter(0.5, 1).item()], "sum to 1 exactly, as `level` makes them; they are +1.11e-16 off"),
        ([1.0, 5e-324], "+4.94e-324 off"),  # in float64 the sum is 1
    ],
)
def test_what_is_invalid(given: Any, told: str) -> None:
    found = judge(given, 2)
    assert (found.value, found.status) == (None, "invalid")
    assert told in found.feedback
