"""The Python interface: what it takes, and what it refuses in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.small_model import small_model

import evolvent as ev
from evolvent.core.errors import UserError

STEP: dict[str, Any] = {"model": small_model(), "task": "arith:1x1", "budget": "1 step", "final": False, "logs": ()}
FEW = {"propose": {"problems": 2, "n": 2}, "rollout.max_tokens": 4}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"task": 3}, "task should be a text, such as 'countdown', not 3"),
        ({"recipe": None}, "recipe should be a text, such as 'grpo', not None"),
        ({"budget": 3}, "budget should be a text, such as '300 steps', not 3"),
        ({"settings": ["a=b"]}, "settings should map paths to values"),
        ({"take": "a"}, "take should map paths to values"),
        ({"watch": 3}, "watch should be a function"),
        ({"say": "x"}, "say should be a function"),
        ({"seed": "a"}, "seed should be a whole number, not 'a'"),
        ({"logs": "jsonl"}, r"logs should be a tuple of names, as in logs=\('jsonl',\)"),
    ],
)
def test_arguments_of_another_kind_are_refused(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        ev.run(**{**STEP, "store": tmp_path / "runs", **wrong})
    assert not (tmp_path / "runs").exists()


def test_settings_may_be_nested_and_models_paths(tmp_path: Path) -> None:
    found = ev.run(**{**STEP, "model": Path(small_model())}, store=tmp_path / "runs", settings=FEW)
    assert found.spec.settings == {"propose.problems": 2, "propose.n": 2, "rollout.max_tokens": 4}
    assert found.view.spec["model"] == small_model()
    assert len(found.curve("outcome")) == 1


def test_what_is_taken_may_be_nested(tmp_path: Path) -> None:
    take = {"learn": {"aggregate": "dapo", "minibatches": "dapo"}, "propose": {"problems": "dapo", "n": "dapo"}}
    found = ev.run(**STEP, recipe="dapo+dr-grpo", store=tmp_path / "runs", settings=FEW, take=take)
    assert found.spec.take["learn.aggregate"] == "dapo"
