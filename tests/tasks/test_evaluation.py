"""What evaluators give, read strictly."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evolvent.tasks.evaluation import read_result


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
