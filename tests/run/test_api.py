"""The Python interface: what it takes, and what it refuses in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.small_model import small_model

import evolvent as ev
from evolvent.core.errors import UserError
from evolvent.lineage.store import Store
from evolvent.lineage.versions import load_assembled
from evolvent.run.session import resume

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
        ({"store": None}, "store should be a folder, as in store='runs', not None"),
        ({"name": 5}, "name should be a text, or None"),
        ({"target": "x"}, "target should be a number, as in target=0.5, not 'x'"),
        ({"final": "x"}, "final should be True or False, not 'x'"),
        ({"taget": 0.5}, "unknown argument `taget`; did you mean target"),
        ({"settings": {"propose": 3}}, "`propose` is 3, and a slot takes a part"),
        ({"settings": {"learn": 0.5}}, "`learn` is 0.5, and a slot takes a part"),
        ({"settings": {"credit": [1, 2]}}, r"`credit` is \[1, 2\], and a slot takes a part"),
        ({"settings": {"judge": None}}, "`judge` is none, and no step can do without it"),
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


OWN = """
def problems(): return [{"prompt": f"{i}+1=", "answer": str(i + 1)} for i in range(40)]
def reward(completion, answer): return float(completion == answer)
"""


def test_a_run_that_is_carried_on_elsewhere_says_where_its_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "here" / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path / "here")
    found = ev.run(**{**STEP, "task": "own.py"}, store=tmp_path / "runs", settings=FEW)
    store = Store(tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "there")
    for again in (
        lambda: resume(store, found.name, budget="2 steps", logs=()),
        lambda: load_assembled(store, found.name),
    ):
        with pytest.raises(UserError, match=f"no file own.py.*was begun in {tmp_path}/here, and names its files from"):
            again()
    monkeypatch.chdir(tmp_path / "here")
    assert len(resume(store, found.name, budget="2 steps", logs=()).view.steps) == 2


def test_what_is_taken_may_be_nested(tmp_path: Path) -> None:
    take = {"learn": {"aggregate": "dapo", "minibatches": "dapo"}, "propose": {"problems": "dapo", "n": "dapo"}}
    found = ev.run(**STEP, recipe="dapo+dr-grpo", store=tmp_path / "runs", settings=FEW, take=take)
    assert found.spec.take["learn.aggregate"] == "dapo"
