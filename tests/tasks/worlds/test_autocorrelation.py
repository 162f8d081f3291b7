"""The three autocorrelation worlds: cases by hand, symmetries, and the definitions evaluated slowly and exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evolvent.tasks.worlds import autocorrelation_1, autocorrelation_2, autocorrelation_3

WORLDS = (autocorrelation_1, autocorrelation_2, autocorrelation_3)
positive = st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(any)
signed = st.lists(st.integers(-9, 9), min_size=2, max_size=6).filter(sum)


def value(world: Any, h: list[Any]) -> float:
    found = world.judge(h, len(h)).value
    assert found is not None
    return float(found)


def convolution(h: list[int], t: Fraction) -> Fraction:
    """Integral of f(x) f(t - x), f with the heights h on [-1/4, 1/4]: the integrand is constant between the cuts."""
    n, edge = len(h), Fraction(1, 4)

    def f(x: Fraction) -> int:
        return h[int((x + edge) * 2 * n)] if -edge < x < edge else 0

    edges = [Fraction(i, 2 * n) - edge for i in range(n + 1)]
    cuts = sorted({*edges, *(t - x for x in edges)})
    return sum(((b - a) * f((a + b) / 2) * f(t - (a + b) / 2) for a, b in pairwise(cuts)), Fraction(0))


def knots(n: int) -> list[Fraction]:
    """Where f*f bends, and half-way between."""
    return [Fraction(i, 4 * n) - Fraction(1, 2) for i in range(4 * n + 1)]


def slow_first(h: list[int]) -> Fraction:
    return max(abs(convolution(h, t)) for t in knots(len(h))) / Fraction(sum(h), 2 * len(h)) ** 2


def slow_second(h: list[int]) -> Fraction:
    """The norms by Simpson's rule, which is exact for the square of a linear function."""
    g, width = [convolution(h, t) for t in knots(len(h))], Fraction(1, 2 * len(h))
    thirds = list(zip(g[:-2:2], g[1:-1:2], g[2::2], strict=True))
    square = sum((a**2 + 4 * m**2 + b**2) * width / 6 for a, m, b in thirds)
    return square / (sum((a + 4 * m + b) * width / 6 for a, m, b in thirds) * max(g))


@pytest.mark.parametrize(
    ("h", "constant"),
    [
        ([1] * 7, 2),  # h*h is largest in the middle, n; 2n n / n^2 = 2 for each n
        ([0.3] * 600, 2),
        ([1, 0], 4),  # one step: 2n
        ([1, 2], 16 / 9),  # 1, 4, 4; 2 * 2 * 4 / 3^2
        ([1, 0, 1], 3),  # 1, 0, 2, 0, 1; 2 * 3 * 2 / 2^2
    ],
)
def test_first_by_hand(h: list[float], constant: float) -> None:
    found = autocorrelation_1.judge(h, len(h))
    assert found.value == -found.metrics["constant"]
    assert found.value == pytest.approx(-constant, abs=1e-12)


@pytest.mark.parametrize(
    ("h", "ratio"),
    [
        ([1] * 5, 2 / 3),  # a triangle of base 2 and height 1: 2/3, 1 and 1
        ([0, 1, 0], 2 / 3),  # the same, narrower
        ([1, 2], 43 / 54),  # 0, 1, 4, 4, 0: 1/3 + 7 + 16 + 16/3 = 86/3, over 9 and 4
    ],
)
def test_second_by_hand(h: list[float], ratio: float) -> None:
    assert autocorrelation_2.judge(h, len(h)).value == pytest.approx(ratio, abs=1e-15)


@pytest.mark.parametrize(
    ("h", "constant"),
    [
        ([1] * 4, 2),  # as for the first
        ([2, -1], 16),  # 4, -4, 1; 2 * 2 * 4 / 1
        ([3, -2, 0], 72),  # 9, -12, 4: the modulus counts; 2 * 3 * 12 / 1, where the maximum alone would give 54
        ([-3, 2, 0], 72),
    ],
)
def test_third_by_hand(h: list[float], constant: float) -> None:
    found = autocorrelation_3.judge(h, len(h))
    assert found.value == -found.metrics["constant"]
    assert found.value == pytest.approx(-constant, rel=1e-14)


@given(positive)
def test_they_are_what_the_definitions_say(h: list[int]) -> None:
    assert value(autocorrelation_1, h) == pytest.approx(-float(slow_first(h)), rel=1e-13)
    assert value(autocorrelation_2, h) == pytest.approx(float(slow_second(h)), rel=1e-13)


@given(signed)
def test_the_third_is_what_the_definition_says(h: list[int]) -> None:
    assert value(autocorrelation_3, h) == pytest.approx(-float(slow_first(h)), rel=1e-13)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=40), st.floats(1e-100, 1e100))
def test_scale_direction_and_resolution_do_not_matter(h: list[float], scale: float) -> None:
    assume(max(h) > 1e-100)
    for world in WORLDS:
        once = value(world, h)
        assert value(world, h[::-1]) == pytest.approx(once, rel=1e-12)
        assert value(world, [x * scale for x in h]) == pytest.approx(once, rel=1e-12)
        assert value(world, [x * 2.0**20 for x in h]) == once
        assert value(world, [x for x in h for _ in range(3)]) == pytest.approx(once, rel=1e-12)
    assert value(autocorrelation_3, [-x for x in h]) == value(autocorrelation_3, h) == value(autocorrelation_1, h)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda h: max(h) > 1e-9))
def test_no_heights_pass_the_trivial_bounds(h: list[float]) -> None:
    """The mean of the 2n - 1 values of h*h is (sum h)^2 / (2n - 1), the largest at most max h sum h."""
    n = len(h)
    assert -2 * n - 1e-9 <= value(autocorrelation_1, h) <= -2 * n / (2 * n - 1) + 1e-9
    assert 0 < value(autocorrelation_2, h) <= 1


@pytest.mark.parametrize("size", [1e-161, 1e-300, 5e-324, 1e161, 1e308])
@pytest.mark.parametrize("world", WORLDS)
def test_heights_too_small_or_large_to_be_squared(world: Any, size: float) -> None:
    assert value(world, [size] * 3) == pytest.approx(value(world, [1.0] * 3), rel=1e-12)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([1.0, 1.0], "must return 3 numbers"),
        ([1.0] * 4, "must return 3 numbers"),
        ([], "must return 3 numbers"),
        (None, "must return 3 numbers"),
        ("abc", "must return 3 numbers"),
        ({"0": 1, "1": 1, "2": 1}, "must return 3 numbers"),
        ([[1.0], [1.0], [1.0]], "height 0 is no finite number"),
        ([1.0, float("nan"), 1.0], "height 1 is no finite number"),
        ([1.0, 1.0, float("inf")], "height 2 is no finite number"),
        ([1.0, "1", 1.0], "height 1 is no finite number"),
        ([1.0, True, 1.0], "height 1 is no finite number"),
        ([1.0, 10**400, 1.0], "height 1 is no finite number"),
        ([1.0, None, 1.0], "height 1 is no finite number"),
        ([0.0, 0.0, 0.0], "the heights sum to 0"),
    ],
)
def test_what_is_invalid(world: Any, given: Any, told: str) -> None:
    found = world.judge(given, 3)
    assert (found.value, found.status) == (None, "invalid")
    assert told in found.feedback


def test_signs() -> None:
    """Only the third has room for them, and for no sum of 0."""
    for world in WORLDS[:2]:
        found = world.judge([1.0, -5e-324, 1.0], 3)
        assert (found.value, found.feedback) == (None, "height 1 is -5e-324, below 0")
    assert autocorrelation_3.judge([1.0, -1.0, 0.0], 3).feedback == "the heights sum to 0"
