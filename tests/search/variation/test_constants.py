"""Numbers of a program as variables: which, written back, and optimised."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.normal import normal_form
from evolvent.search.variation.constants import Constant, constants, optimise, with_constants

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


START = "def f(x, c=1.0):\n    return 1.0 * x * x + -1.0 * x + c\n"
POINTS = np.linspace(-1.0, 1.0, 9)


class Judge:
    """Minus the squared error against 2.5 x² - 3.2 x + 0.7; None where f(1) > `limit`."""

    def __init__(self, limit: float = 1e9) -> None:
        self.limit, self.seen, self.invalid = limit, [], 0  # type: ignore[var-annotated]

    def __call__(self, texts: list[str]) -> list[float | None]:
        scores: list[float | None] = []
        for text in texts:
            space: dict[str, object] = {}
            exec(text, space)
            got = space["f"](POINTS)  # type: ignore[operator]
            bad = got[-1] > self.limit
            self.invalid += bad
            scores.append(None if bad else -float(((got - (2.5 * POINTS**2 - 3.2 * POINTS + 0.7)) ** 2).sum()))
        self.seen += texts
        return scores


@pytest.mark.parametrize("use_cma", [False, True])
def test_the_optimum_is_found(use_cma: bool) -> None:
    if use_cma:
        pytest.importorskip("cma")
    judge = Judge(limit=1.5)
    state = np.random.get_state()[1].copy()  # type: ignore[index]
    best, score = optimise(START, judge, 250, np.random.default_rng(0), use_cma=use_cma)
    assert score > -1e-3
    assert [c.value for c in constants(best)] == pytest.approx([0.7, 2.5, -3.2], abs=0.05)
    assert judge.seen[0] == START
    assert judge.invalid > 0
    assert len(set(judge.seen)) == len(judge.seen) <= 250
    assert (np.random.get_state()[1] == state).all()  # type: ignore[index]
    assert optimise(START, Judge(limit=1.5), 250, np.random.default_rng(0), use_cma=use_cma) == (best, score)


@pytest.mark.parametrize("use_cma", [False, True])
def test_errors_are_not_rewards(use_cma: bool) -> None:
    if use_cma:
        pytest.importorskip("cma")
    wrong = [None, float("nan"), float("inf")]
    found = optimise(
        START, lambda texts: [wrong[len(t) % 3] for t in texts], 60, np.random.default_rng(0), use_cma=use_cma
    )
    assert found == (START, -np.inf)


def test_nothing_to_optimise() -> None:
    assert optimise("a = b\n", lambda texts: [1.0 for _ in texts], 50, np.random.default_rng(0)) == ("a = b\n", 1.0)


def test_whole_numbers_are_searched_too() -> None:
    def score(texts: list[str]) -> list[float | None]:
        return [-abs(constants(text)[0].value - 17.0) for text in texts]

    best, value = optimise("a = 3\n", score, 100, np.random.default_rng(0), use_cma=False)
    assert (best, value) == ("a = 17\n", 0.0)
