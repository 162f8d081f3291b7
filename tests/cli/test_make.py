"""Scaffolds that work as they stand, whatever they are called; files of options."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.cli.test_runs import call, data
from tests.small_model import small_model

from evolvent.bench.statistics import Interval
from evolvent.cli.options import emit
from evolvent.cli.show import reference
from evolvent.core.recipe import REGISTRY


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["mine.py", "2 words-more.py", "lambda.py", "dapo.py", "put.py", "\u00e9t\u00e9.py"])
def test_a_recipe_to_start_from(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "new", "recipe", name)
    first = next(line for line in Path(name).read_text().splitlines() if "evolvent show" in line)
    shown = data(capsys, *shlex.split(first)[1:])
    assert [r["name"] for r in shown["recipes"]][-2:] == ["grpo", shown["composition"]]
    assert shlex.split(first)[-1].startswith(reference(shown["recipes"][-1]).partition(":")[0])
    assert reference({"name": "grpo", "file": "recipes/policy_gradient/grpo.py"}) == "grpo"
    assert "exists already" in call(capsys, "new", "recipe", name, code=2)
    REGISTRY.pop(shown["composition"])


def test_what_cannot_be_written_leaves_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.part").mkdir()  # in the way, as a full disk would be
    for kind in ("task", "recipe"):
        assert "mine" in call(capsys, "new", kind, "mine.py", code=2)
        assert not Path("mine.py").exists()
    Path("mine.part").rmdir()
    call(capsys, "new", "task", "mine.py")
    assert Path("mine.py").is_file()


def test_a_task_to_start_from(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It passes its audit, and the model that ships with the package is neither hopeless nor perfect at it."""
    call(capsys, "new", "task", "my words.py")
    first = next(line for line in Path("my words.py").read_text().splitlines() if "evolvent audit" in line)
    assert "nothing failed" in call(capsys, *shlex.split(first)[1:])
    how = "--budget", "1 steps", "--no-final", "--no-report", "--skip-audit", "--name", "one"
    call(capsys, "run", "no-change", "--task", "my words.py", *how)
    (line,) = map(json.loads, Path("runs/one/metrics.jsonl").read_text().splitlines())
    assert 0.3 < line["outcome"] < 0.95


def test_a_file_of_options_may_say_no(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "run.toml").write_text("no-final = true\ndry-run = true\n")
    args = "run", "grpo", "--task", "arith:1x1", "--model", small_model(), "--budget", "3 steps", "--config", "run.toml"
    assert "start and end" not in call(capsys, *args)
    (here / "run.toml").write_text("no-final = false\ndry-run = true\n")
    assert "start and end" in call(capsys, *args)
    (here / "run.toml").write_text('no-final = "yes"\n')
    assert "`no-final` should be true or false" in call(capsys, *args, code=2)


def test_intervals_are_objects_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"sampled": Interval(0.5, float("-inf"), 0.75)})
    assert json.loads(capsys.readouterr().out) == {"sampled": {"mean": 0.5, "low": None, "high": 0.75}}


def test_no_model_is_written_over(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("there").mkdir()
    Path("there/model.safetensors").write_bytes(b"weights")
    assert "nothing is overwritten" in call(capsys, "pretrain", "there", "--steps", 1, code=2)
    assert Path("there/model.safetensors").read_bytes() == b"weights"
