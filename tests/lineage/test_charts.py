"""Charts: points stand where they belong, ticks are round, what is untrusted is text."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evolvent.lineage import charts
from evolvent.lineage.charts import (
    HEIGHT,
    WIDTH,
    Axis,
    Bin,
    Row,
    Series,
    average,
    between,
    line_chart,
    nice,
    number,
    staircase,
    thin,
)  # fmt: skip

FINITE = st.floats(-1e9, 1e9)


@given(st.lists(FINITE, min_size=1, max_size=20), st.booleans())
def test_an_axis_holds_all_values_at_few_round_ticks(values: list[float], whole: bool) -> None:
    axis = Axis.over(values, 5, whole=whole)
    span = axis.high - axis.low
    assert axis.low <= min(values) + 1e-9 * span
    assert axis.high >= max(values) - 1e-9 * span
    assert 2 <= len(axis.ticks) <= 9
    if whole:
        assert all(abs(t - round(t)) < 1e-6 * max(1.0, abs(t)) for t in axis.ticks)


@given(st.lists(st.floats(-1.7e308, 1.7e308), min_size=1, max_size=5), st.sampled_from([None, 0.0]))
@example([1e17], None)
@example([-1.7e308, 1.7e308], None)
@example([3.0, 3.0 + 1e-13], 0.0)
def test_values_of_any_size_have_an_axis(values: list[float], floor: float | None) -> None:
    axis = Axis.over(values, floor=floor)
    assert all(math.isfinite(tick) for tick in axis.ticks)
    assert 2 <= len(axis.ticks) <= 9
    assert axis.low < axis.high
    assert all(math.isfinite(axis.place(v, 0.0, 100.0)) for v in values)
    assert all(len(number(tick)) < 20 for tick in axis.ticks)


@given(st.floats(1e-9, 1e9))
def test_steps_are_round(step: float) -> None:
    found = nice(step)
    digits = found / 10 ** math.floor(math.log10(found) + 1e-9)
    assert any(math.isclose(digits, d) for d in (1, 2, 2.5, 5, 10))
    assert step * (1 - 1e-9) <= found <= 2.51 * step


def points_of(svg: str, kind: str) -> list[list[tuple[float, float]]]:
    found = re.findall(rf'<polyline class="{kind} [a-z]+" points="([^"]*)"', svg)
    return [[tuple(map(float, p.split(","))) for p in one.split()] for one in found]  # type: ignore[misc]


def test_points_stand_where_they_belong() -> None:
    svg = str(
        line_chart([Series("a", "after", [(0, 0.0), (5, 50.0), (10, 100.0)])], "step", "x", floor=0.0, x_floor=0.0)
    )
    ((first, middle, last),) = points_of(svg, "line")
    assert first == (charts.LEFT, HEIGHT - charts.BOTTOM)
    assert last == (WIDTH - charts.RIGHT, charts.TOP)
    assert middle[0] == pytest.approx((first[0] + last[0]) / 2)
    assert middle[1] == pytest.approx((first[1] + last[1]) / 2)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.floats(-1e6, 1e6) | st.just(math.nan)), min_size=1, max_size=50))
def test_any_series_gives_well_formed_svg_inside_its_frame(points: list[tuple[int, float]]) -> None:
    series = Series("<&>", "after", sorted((float(x), y) for x, y in points), smooth=True)
    svg = str(line_chart([series], 'st"ep', "<label>", marks=[(3.0, "<b>")]))
    ElementTree.fromstring(svg)
    assert "nan" not in svg
    for line in points_of(svg, "line") + points_of(svg, "raw"):
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line)


def test_other_charts_are_well_formed() -> None:
    rows = [
        Row("greedy <i>", [("before", 0.2, 0.1, 0.3), ("after", 0.6, 0.5, 0.7)]),
        Row("x", [("before", 0, 0, 0.01)]),
    ]
    ElementTree.fromstring(str(charts.interval_chart(rows, 'a "label"')))
    bins = [Bin(1, 2, 0.4, 0.5), Bin(3, 4, 0.6, math.nan, 0)]
    svg = str(charts.length_chart(bins, [], "x"))
    ElementTree.fromstring(svg)
    assert "nan," not in svg
    assert charts.length_chart([], [], "x") == ""
    ElementTree.fromstring(str(charts.share_bar([("a", 0.0), ("b", 0.0)], "x")))
    assert line_chart([Series("empty", "after", [])], "x", "y") == ""


def test_thinning_and_averaging_keep_the_mean() -> None:
    points = [(float(i), float(i % 7)) for i in range(1000)]
    few = thin(points, 100)
    assert len(few) == 100
    assert sum(y for _, y in few) / 100 == pytest.approx(sum(y for _, y in points) / 1000)
    flat = average([(float(i), 3.0) for i in range(10)], 4)
    assert [y for _, y in flat] == [3.0] * 10
    assert average([(0, 0.0), (1, 3.0), (2, 6.0)], 3) == [(0, 1.5), (1, 3.0), (2, 4.5)]
    assert between([(1, 0.0), (2, 0.0), (3, 0.0)], [2.0]) == [[(1, 0.0), (2, 0.0)], [(3, 0.0)]]


def test_a_staircase_stays_where_it_is_until_the_next_value() -> None:
    assert staircase([(1, 2.0), (3, 2.0), (5, 4.0), (9, 4.0)]) == [(1, 2.0), (5, 2.0), (5, 4.0), (9, 4.0)]
    assert staircase([(1, 2.0), (3, 5.0)]) == [(1, 2.0), (3, 2.0), (3, 5.0)]
    assert staircase([(1, 2.0)]) == [(1, 2.0)]
    assert staircase([]) == []
    long = [(float(i), float(i // 2)) for i in range(2000)]
    svg = str(line_chart([Series("best", "after", long, stairs=True)], "spent", "x"))
    assert len(points_of(svg, "line")[0]) == 2000  # exact, however long: two corners for each of 999 steps, two ends


@pytest.mark.parametrize(("whole", "high"), [(True, 1.0), (False, 0.25)])
def test_an_axis_of_less_than_one(whole: bool, high: float) -> None:
    """Of dollars, say; a count goes up to one at least."""
    svg = str(line_chart([Series("a", "after", [(0, 0.0), (0.25, 1.0)])], "x", "x", x_floor=0.0, x_whole=whole))
    ((_, last),) = points_of(svg, "line")
    assert (last[0] - charts.LEFT) / (WIDTH - charts.RIGHT - charts.LEFT) == pytest.approx(0.25 / high, abs=0.001)
