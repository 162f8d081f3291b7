"""Metrics of a cell by name, on a curve that was written by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evolvent.bench.metrics import metric, parts_needed
from evolvent.core.errors import UserError


def result(*sampled: float) -> dict[str, Any]:
    """A cell whose evaluations, 100 tokens apart, found these accuracies."""
    curve = [{"spent": 100.0 * i, "sampled": s, "probe.flips": 1.0 - s} for i, s in enumerate(sampled)]
    return {
        "curve": curve,
        "train": {"entropy": 0.5, "pipo/progress": 0.1},
        "late": {"entropy": 0.25},
        "spent": {"sampled": 400.0, "steps": 4.0},
        "cell": {"budget": "1k tokens"},
    }


USUAL = result(0.1, 0.4, 0.7, 0.5, 0.3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("test.sampled", 0.5),  # of 0.7, 0.5, 0.3
        ("best.sampled", 0.7),
        ("drop.sampled", 0.2),
        ("gain.sampled", 0.4),
        ("probe.flips", 0.525),  # of what came after the start
        ("train.entropy", 0.5),
        ("train.pipo/progress", 0.1),
        ("late.entropy", 0.25),
        ("reach.sampled@0.4", 100),
        ("reach.sampled@0.65", 200),
        ("reach.sampled@0.9", 1000),  # never: the cap
        ("reach.sampled@0.05", 1),  # from the start, and ratios need a logarithm
        ("spent.steps", 4),
    ],
)
def test_by_name(name: str, value: float) -> None:
    assert metric(name, USUAL) == pytest.approx(value)


def test_an_evaluation_in_which_everything_failed_is_no_worst_one() -> None:
    failed = result(0.1, math.nan, 0.7, 0.5, 0.3)
    assert metric("best.sampled", failed) == 0.7
    assert metric("test.sampled", failed) == pytest.approx(0.5)
    assert metric("reach.sampled@0.4", failed) == 200
    assert math.isnan(metric("test.sampled", result(0.1, 0.2, math.nan)))


def test_the_start_is_no_part_of_a_final_score() -> None:
    assert metric("test.sampled", result(0.1, 0.4, 0.6)) == pytest.approx(0.5)
    assert metric("test.sampled", result(0.1)) == pytest.approx(0.1)  # unless there is nothing else
    assert metric("gain.sampled", result(0.1)) == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("test.smapled", "did you mean sampled"),
        ("tset.sampled", "did you mean test.sampled"),
        ("spent.bananas", "no metric"),
        ("late.entrpy", "did you mean entropy"),
        ("probe.other", "no metric `probe.other`"),
    ],
)
def test_names_that_there_are_not(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        metric(name, USUAL)


def test_what_metrics_ask_of_a_cell() -> None:
    assert parts_needed(["test.sampled", "late.entropy"]) == (1, ())
    assert parts_needed(["test.pass@16", "reach.pass@4@0.5"]) == (16, ())
    assert parts_needed(["test.distinct"]) == (16, ())
    assert parts_needed(["probe.sign_flips", "probe.sign_flips"]) == (1, ("sign_flips",))
