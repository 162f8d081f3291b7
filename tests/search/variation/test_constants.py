"""Numbers of a program as variables: which, written back, and moved."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.normal import normal_form
from evolvent.search.variation.constants import Constant, constants, moved, with_constants

SOURCE = """A = 1.0
# EVOLVE-BLOCK-START
@cached(128)
def f(x, k=0.5):
    é = -2 ** 3 * x[1]; a = x[:4]
    for i in range(5):
        x = np.sum(x, axis=0) - -1.5e-3
    return f"{x + 1}", 6 + True
# EVOLVE-BLOCK-END
B = 2.0
"""


def test_which_numbers_are_exposed() -> None:
    assert constants(SOURCE) == [
        Constant(4, 11, 0.5, False),
        Constant(5, 9, 2.0, True),  # of -(2 ** 3)
        Constant(5, 14, 3.0, True),
        Constant(7, 32, -0.0015, False),
        Constant(8, 23, 6.0, True),
    ]
    shapes = [c.value for c in constants(SOURCE, shapes=True)]
    assert shapes == [0.5, 2.0, 3.0, 1.0, 4.0, 5.0, 0.0, -0.0015, 6.0]


def test_written_back() -> None:
    text = with_constants(SOURCE, [-0.25, -2.4, 3.0, 7.0, 8.6])
    assert text == SOURCE.replace("k=0.5", "k=(-0.25)").replace("-2 **", "-(-2) **").replace("-1.5e-3", "7.0").replace(
        "6 +", "9 +"
    )
    assert [c.value for c in constants(text)] == [-0.25, -2.0, 3.0, 7.0, 9.0]
    with pytest.raises(ValueError, match="not finite"):
        with_constants("a = 1.0", [float("nan")])
    with pytest.raises(ValueError, match="shorter"):
        with_constants("a = 1.0", [])


@given(st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=5))
def test_any_values_come_back(values: list[float]) -> None:
    text = with_constants(SOURCE, values)
    ast.parse(text)
    wanted = [round(v) if c.integer else float(f"{v:.8g}") for v, c in zip(values, constants(SOURCE), strict=True)]
    assert [c.value for c in constants(text)] == wanted
    assert normal_form(with_constants(text, [c.value for c in constants(SOURCE)])) == normal_form(SOURCE)


@given(st.lists(st.floats(-400, 400), min_size=5, max_size=5))
def test_where_numbers_are_moved_to(point: list[float]) -> None:
    start = constants(SOURCE)
    values = moved(start, np.array(point))
    assert values[0] == pytest.approx(0.5 * np.exp(np.clip(point[0], -50, 50)))  # positive and not whole: a factor
    assert values[1] == pytest.approx(2.0 + 4.0 * point[1])  # whole: by fours at least
    assert values[3] == pytest.approx(-0.0015 + 1.0 * point[3])
    assert values[4] == pytest.approx(6.0 + 6.0 * point[4])
    assert moved(start, np.zeros(5)) == [c.value for c in start]
    ast.parse(with_constants(SOURCE, moved(start, 1e305 * np.array(point))))
