"""Metrics of searches, against values by hand."""

from __future__ import annotations

from typing import Any

import pytest

from evolvent.bench.metrics import metric
from evolvent.bench.search_metrics import area, check_name
from evolvent.core.errors import UserError


def result(**changes: Any) -> dict[str, Any]:
    """-3 at the first of ten evaluations, 0 at the fourth, 2 at the ninth; anew it is 1.5."""
    found: dict[str, Any] = {
        "cell": {"arm": "ours", "seed": 3, "budget": "10 evaluations"},
        "records": [[1.0, 1.0, -3.0], [4.0, 4.0, 0.0], [9.0, 9.0, 2.0]],
        "curve": [{"best": -3.0, "valid": 1.0, "distinct": 1.0}, {"valid": 0.7, "distinct": 0.9}],
        "rescored": {"value": 1.5, "found": 2.0, "same": False},
        "train": {"parent_rank": 0.4},
        "late": {"parent_rank": 0.1},
        "spent": {"verifier_calls": 17.0},
    }
    return found | changes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("final.best", 2.0),
        ("final.rescored", 1.5),
        ("final.optimism", 0.5),
        ("area.best", (3 * -3.0 + 5 * 0.0 + 1 * 2.0) / 9),  # three, five and one evaluations wide, of nine
        ("reach.best@-3", 1.0),
        ("reach.best@-0.5", 4.0),
        ("reach.best@2", 9.0),
        ("reach.best@2.01", 10.0),  # never: the cap
        ("success.best@2", 1.0),
        ("success.best@2.01", 0.0),
        ("share.valid", 0.7),
        ("share.distinct", 0.9),
        ("train.parent_rank", 0.4),
        ("late.parent_rank", 0.1),
        ("spent.verifier_calls", 17.0),
    ],
)
def test_values(name: str, value: float) -> None:
    assert metric(name, result()) == pytest.approx(value)


def test_an_area_is_the_mean_over_a_fine_grid() -> None:
    records, cap = [[0.5, 1, 1.0], [2.25, 2, 1.5], [7.0, 9, 4.0]], 20.0
    steps = 200_000
    grid = [0.5 + (cap - 0.5) * (i + 0.5) / steps for i in range(steps)]
    best = [max(v for s, _, v in records if s <= x) for x in grid]
    assert area(records, cap) == pytest.approx(sum(best) / steps, abs=1e-4)
    assert area([[20.0, 1, 3.0]], 20.0) == 3.0  # the seed program took it all


@pytest.mark.parametrize(
    "name",
    [
        "test.sampled",
        "final.bset",
        "reach.best@",
        "reach.best@high",
        "success.best@",
        "reach.valid@1",
        "spent.apples",
        "best",
    ],
)
def test_names_that_are_none_are_refused_before_anything_runs(name: str) -> None:
    with pytest.raises(UserError, match="of a search"):
        check_name(name)


def test_a_step_metric_that_nobody_logged() -> None:
    with pytest.raises(UserError, match=r"no metric `late.rank`.*parent_rank"):
        metric("late.rank", result())


def test_who_hands_in_what_is_not_valid_any_more_has_the_seed_program() -> None:
    gone = result(rescored={"value": None, "found": None, "top": [{"uid": 7, "value": 2.0, "values": [None, None]}]})
    assert metric("final.best", gone) == 2.0
    assert metric("final.rescored", gone) == -3.0
    assert metric("final.optimism", gone) == 5.0


def test_a_winner_may_be_worth_nothing_in_the_search() -> None:
    top = [{"uid": 7, "value": 2.0, "values": [-1.0, -1.0]}]
    zero = result(rescored={"value": -0.5, "found": 0.0, "top": top})
    assert metric("final.optimism", zero) == 0.5


def test_a_winner_that_was_never_valid_anew_still_is_the_one_that_was_found() -> None:
    top = [{"uid": 9, "value": 0.9, "values": [None]}]
    gone = result(rescored={"value": None, "found": 0.5, "top": top})
    assert metric("final.optimism", gone) == 0.5 - metric("final.rescored", gone)
