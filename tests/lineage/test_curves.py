"""Curves of a search: the best value so far over what was spent of the budget's unit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.lineage.test_charts import points_of
from tests.lineage.test_descent import made, view

from evolvent.lineage.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from evolvent.lineage.curves import curves, spend_unit
from evolvent.lineage.runs import Rollback, RunView
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec

SPENT = ((1, 10.0, 0.0), (9, 20.0, 0.25), (17, 45.0, 0.25), (20, 50.0, 0.5))  # evaluations, tokens, dollars


def search(budget: str, best: tuple[float, ...] = (1.0, 1.0, 3.0, 3.0)) -> RunView:
    found = view(made(0, 1.0, [], "seed", "a"))
    found.spec["budget"] = budget
    for t, ((calls, tokens, usd), value) in enumerate(zip(SPENT, best, strict=True)):
        spent = {"method": {"verifier_calls": float(calls), "sampled": tokens, "money": usd, "trained": 0.0}}
        found.steps[t] = {"t": t, "roles": {"": {"best": value, "valid": 1.0}}, "spent": spent}
    return found


def best_chart(one: RunView) -> str:
    return next(str(c["svg"]) for c in curves(one) if c["title"] == "Best value so far")


def x_of(svg: str, most: float) -> list[float]:
    """Where the corners stand, in the unit of the axis."""
    [line] = points_of(svg, "line")
    return [(x - LEFT) / (WIDTH - RIGHT - LEFT) * most for x, _ in line]


@pytest.mark.parametrize(
    ("budget", "unit", "axis", "corners"),
    [
        ("20 evaluations", "verifier_calls", "evaluations spent", (1, 17, 17, 20)),
        ("4 steps", "verifier_calls", "evaluations spent", (1, 17, 17, 20)),
        ("50 tokens", "sampled", "tokens sampled", (10, 45, 45, 50)),
        ("0.5 dollars", "money", "US dollars spent", (0, 0.25, 0.25, 0.5)),
        ("9 trained tokens", "verifier_calls", "evaluations spent", (1, 17, 17, 20)),  # none were spent
    ],
)
def test_the_best_so_far_stands_over_the_unit_of_the_budget(
    budget: str, unit: str, axis: str, corners: tuple[float, ...]
) -> None:
    one = search(budget)
    assert spend_unit(one) == unit
    svg = best_chart(one)
    assert f">{axis}</text>" in svg
    assert x_of(svg, corners[-1]) == pytest.approx(corners, abs=0.2 * corners[-1] / 100)
    [line] = points_of(svg, "line")
    assert [y for _, y in line] == [HEIGHT - BOTTOM, HEIGHT - BOTTOM, TOP, TOP]  # from 1 to 3, at once
    assert 'aria-label="Best value so far: from 1 to 3"' in svg


def test_ticks_of_dollars_are_parts_of_one() -> None:
    ticks = re.findall(r'text-anchor="middle">([^<]*)</text>', best_chart(search("0.5 dollars")))
    assert ticks[:3] == ["0", "0.1", "0.2"]


def test_where_a_search_went_back() -> None:
    """After two steps, which had spent 9 evaluations of 20."""
    one = search("20 evaluations")
    one.rollbacks, one.resumed = [Rollback(7, 1, 0, 0.0)], [(8, 2)]
    [x] = re.findall(r'<line class="mark" x1="([\d.]+)"', best_chart(one))
    assert float(x) == pytest.approx(LEFT + (WIDTH - RIGHT - LEFT) * 9 / 20, abs=0.06)


def test_other_curves_stay_over_the_steps() -> None:
    svg = next(str(c["svg"]) for c in curves(search("20 evaluations")) if c["title"] == "Valid candidates")
    assert ">step</text>" in svg


def test_steps_without_a_ledger_are_left_out() -> None:
    one = search("20 evaluations")
    for step in one.steps.values():
        del step["spent"]
    assert best_chart(one) == ""


def test_a_real_search(tmp_path: Path) -> None:
    """Every improvement stands where the ledger was when it was found: each candidate costs one evaluation."""
    spec = RunSpec("hill-climbing", "program:landscape", "none", "80 evaluations", seed=2)
    one: Any = begin(spec, tmp_path / "run", logs=("jsonl",)).view
    best, expected = float("-inf"), []
    for t in sorted(one.steps):
        values = [c["evaluation"]["value"] for c in one.candidates.values() if c["step"] == t]
        value = max([best, *(v for v in values if v is not None)])
        if expected and value > best:
            expected += [sum(c["step"] <= t for c in one.candidates.values())] * 2
        expected = expected or [1]
        best = value
    total = one.spent["method"]["verifier_calls"]
    expected += [total] if expected[-1] < total else []
    assert x_of(best_chart(one), total) == pytest.approx(expected, abs=0.3)
