from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evolvent.tasks.evaluation_result import EvaluationResult
from evolvent.tasks.program import load
from evolvent.tasks.returned import LONGEST, data


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (3, 3),
        (np.float32(0.5), 0.5),
        (torch.tensor(2.5), 2.5),
        (True, True),
        (None, None),
        ("high", "high"),
        ({"score": np.int64(3), "passed": np.bool_(True)}, {"score": 3, "passed": True}),
        ({"a": Decimal("0.5"), "b": Fraction(1, 4), "c": np.array([2.0])}, {"a": 0.5, "b": 0.25, "c": 2.0}),
        ({1: 2.0, "seen": {1, 2}, "rows": [1, 2], "raw": b"1", "huge": 10**400, "z": 1j}, {"1": 2.0}),
        ({"score": {1}, "combined_score": None}, {"score": "{1}", "combined_score": None}),
        ({"score": 10**400}, {"score": repr(10**400)[:80]}),
        ({"score": 1.0, "log": "half \ud83d of it"}, {"score": 1.0, "log": "half ? of it"}),
        (
            {"metrics": {"score": 1.0, "rows": []}, "artifacts": {"stderr": "late", "plot": b"1"}},
            {"metrics": {"score": 1.0}, "artifacts": {"stderr": "late"}},
        ),
        (
            EvaluationResult({"score": 1.0}, {"log": "late", "plot": b"1"}),
            {"metrics": {"score": 1.0}, "artifacts": {"log": "late"}},
        ),
    ],
)
def test_numbers_and_texts_are_kept(given: Any, kept: Any) -> None:
    found = data(given)
    assert found == kept
    assert type(found) is type(kept)
    assert json.loads(json.dumps(found)) == kept


def test_of_a_long_text_both_ends_are_kept() -> None:
    found = data({"log": "a" * LONGEST + "b" * LONGEST})["log"]
    assert found.startswith("a" * 100)
    assert found.endswith("b" * 100)
    assert f"[{LONGEST:,} characters are left out]" in found
    assert data({"log": "a" * LONGEST})["log"] == "a" * LONGEST


@pytest.fixture
def verdict(tmp_path: Path) -> Callable[[str], Any]:
    """What is said of a program by an evaluator that returns an expression."""

    def of(returns: str) -> Any:
        (tmp_path / "first.py").write_text("X = 1\n")
        (tmp_path / "judge.py").write_text(f"import numpy as np\ndef evaluate(path):\n    return {returns}\n")
        task = load(f"{tmp_path / 'judge.py'}:{tmp_path / 'first.py'}")
        [found] = task.evaluate([task.seed_program])
        task.sandbox.close()
        return found

    return of


@pytest.mark.parametrize(
    "beside",
    [
        "'seen': {1, 2}",
        "'raw': b'1'",
        "7: {}",
        "'log': 'x' * 5_000_000",
        "'log': 'half a character: \\ud83d'",
        "'artifacts': {'plot': b'1', 'rows': {1: 2}}",
        "'rows': np.arange(3)",
    ],
)
def test_a_candidate_whose_score_is_fine_is_valid_whatever_lies_beside_it(
    verdict: Callable[[str], Any], beside: str
) -> None:
    found = verdict(f"{{'combined_score': np.float32(0.5), {beside}}}")
    assert (found.value, found.status) == (0.5, "ok")
    assert len(found.feedback) < 2 * LONGEST


@pytest.mark.parametrize("score", ["{1, 2}", "b'1'", "np.arange(3)", "None", "'high'", "object()"])
def test_a_score_that_is_no_number_is_named(verdict: Callable[[str], Any], score: str) -> None:
    found = verdict(f"{{'combined_score': {score}, 'other': 1.0}}")
    assert (found.value, found.status) == (None, "invalid")
    assert "the evaluator gave combined_score = " in found.feedback
