"""What evaluators give, read strictly."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evolvent.tasks.evaluation import Evaluation, over_instances, pooled, read_result, sound


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (2, 2.0),
        (0.5, 0.5),
        ({"combined_score": 3.0, "speed": 9.0}, 3.0),
        ({"score": -1, "x": 5}, -1.0),
        ({"a": 1.0, "b": 2.0, "note": "fine"}, 1.5),
        ({"metrics": {"combined_score": 4.0}, "artifacts": {"stderr": "late"}}, 4.0),
    ],
)
def test_values(result: Any, value: float) -> None:
    assert read_result(result).value == value


@pytest.mark.parametrize(
    "result",
    [
        None, True, 10**400, "2.5", [1.0], {}, math.nan, math.inf, {"combined_score": math.nan, "a": 1.0},
        {"combined_score": "high"}, {"a": 1.0, "b": math.inf}, {"combined_score": True}, {"error": "it failed"},
    ],
)  # fmt: skip
def test_what_is_no_finite_number_is_invalid(result: Any) -> None:
    found = read_result(result)
    assert found.value is None
    assert found.status == "invalid"
    assert found.feedback


def test_texts_are_feedback() -> None:
    found = read_result({"metrics": {"score": 1.0, "hint": "row 3"}, "artifacts": {"stderr": "late"}})
    assert set(found.feedback.split("\n")) == {"hint: row 3", "stderr: late"}
    assert found.metrics == {"score": 1.0}


def test_a_sound_verdict_stays_as_it_is() -> None:
    for verdict in (Evaluation(1e308, {"x": -1e308}, "late"), Evaluation(None, {"x": 1.0}, "no", "timeout")):
        assert sound(verdict) is verdict


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (Evaluation(-math.inf, {"x": 1.0}, "row 3"), "value = -inf"),
        (Evaluation(2.0, {"x": 1.0, "y": math.nan}, "row 3"), "y = nan"),
        (over_instances({"one": 1.7e308, "two": 1.7e308}), "value = inf"),
        (read_result({"a": 1.7e308, "b": 1.7e308}), "value = inf"),
    ],
)
def test_a_verdict_that_is_not_finite_is_invalid_and_says_so(verdict: Evaluation, told: str) -> None:
    found = sound(verdict)
    assert (found.value, found.status) == (None, "invalid")
    assert told in found.feedback
    assert verdict.feedback in found.feedback
    assert all(map(math.isfinite, found.metrics.values()))
    assert set(found.metrics) == {name for name, x in verdict.metrics.items() if math.isfinite(x)}


def test_how_a_program_ended_is_kept_where_a_metric_is_not_finite() -> None:
    found = sound(Evaluation(None, {"x": math.inf}, "too late", "timeout"))
    assert (found.value, found.metrics, found.status) == (None, {}, "timeout")


def test_two_huge_verdicts_pooled() -> None:
    found = pooled(over_instances({"one": 1.7e308}), over_instances({"two": 1.7e308}))
    assert (found.value, found.status) == (None, "invalid")
    assert "no finite number" in found.feedback
