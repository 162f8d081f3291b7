"""Staged evaluation: who goes on, what it costs, and worlds of several instances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import Archive
from evolvent.search.stages import above, everybody
from evolvent.tasks.evaluation import Evaluation, over_instances, pooled
from evolvent.tasks.program import ProgramTask, World

STAGED = """
import importlib.util


def point(program_path):
    spec = importlib.util.spec_from_file_location("candidate", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.point()


def evaluate(program_path):
    x, y = point(program_path)
    return {"combined_score": 1 / (1 + (x - 3.0) ** 2 + (y + 1.0) ** 2)}


def evaluate_stage1(program_path):
    x, y = point(program_path)
    return {"combined_score": 1 / (1 + (x - 3.0) ** 2), "first": 1.0}


def evaluate_stage2(program_path):
    return {**evaluate(program_path), "second": 1.0}
"""


def test_thresholds() -> None:
    archive = Archive()
    rule = [
        above(Evaluation(value), stage, archive) for value, stage in ((0.5, 1), (0.49, 1), (0.8, 2), (0.8, 3), (0.9, 9))
    ]
    assert rule == [True, False, True, False, True]
    assert not above(Evaluation(None), 1, archive)
    assert everybody(Evaluation(None), 1, archive)


def test_verdicts_are_pooled() -> None:
    first, second = over_instances({"a": 1.0, "b": 0.0}), over_instances({"c": 0.5, "a": 0.0}, {"size": 3.0})
    both = pooled(first, second)
    assert both.value == pytest.approx((0.0 + 0.0 + 0.5) / 3)  # a's later value counts
    assert both.metrics["size"] == 3.0
    assert (
        pooled(Evaluation(1.0, {"combined_score": 1.0}), Evaluation(4.0, {"combined_score": 4.0, "x": 2.0})).value
        == 4.0
    )
    assert pooled(Evaluation(1.0, {"a": 1.0}), Evaluation(4.0, {"b": 4.0})).value == 2.5
    assert pooled(first, Evaluation(None, {}, "hung", "timeout")) == Evaluation(None, first.metrics, "hung", "timeout")
    assert pooled(None, second) is second


def staged(folder: Path, task: str, *settings: tuple[str, str]) -> Any:
    (folder / "evaluator.py").write_text(STAGED)
    return begin(RunSpec("random-search", task, "none", "6 steps", 1, dict(settings)), folder / "runs", logs=("jsonl",))


def test_only_who_is_promising_goes_on(tmp_path: Path, task: str) -> None:
    thresholds = ("judge.promote", "above"), ("judge.promote.thresholds", "0.2")
    result = staged(tmp_path, task, *thresholds)
    found = [c["evaluation"] for c in result.view.candidates.values() if c["evaluation"]["value"] is not None]
    stopped = [e for e in found if "second" not in e["metrics"]]
    assert stopped
    assert len(stopped) < len(found)
    assert all(e["value"] < 0.2 and not e["complete"] for e in stopped)
    assert all(e["complete"] and e["metrics"]["first"] == 1.0 for e in found if e not in stopped)
    assert result.ledger.of("verifier_calls") == len(result.view.candidates)
    best = max(e["value"] for e in found if e["complete"])
    assert result.view.curve("best")[-1][1] == best
    assert all(1 <= value <= 2 for _, value in result.view.curve("stages"))


def test_without_a_rule_everything_is_evaluated_at_once(tmp_path: Path, task: str) -> None:
    result = staged(tmp_path, task)
    found = [c["evaluation"] for c in result.view.candidates.values() if c["evaluation"]["value"] is not None]
    assert all(e["complete"] and not {"first", "second"} & set(e["metrics"]) for e in found)


def test_a_rule_that_nobody_knows(tmp_path: Path, task: str) -> None:
    with pytest.raises(UserError, match="above"):
        staged(tmp_path, task, ("judge.promote", "abvoe"))


def test_instances_of_a_world(sandboxed: str) -> None:
    from evolvent.guard.sandbox import Call

    world = World(
        "program:lines",
        "Return x for each name.",
        "def run(names):\n    return [len(name) for name in names]\n",
        call=lambda text, names: Call({"program.py": text}, "program", "run", (list(names),)),
        judge=lambda value, names: over_instances(dict(zip(names, map(float, value), strict=True))),
        instances={"train": ("a", "bb"), "gate": ("ccc",), "test": ("dddd",)},
    )
    task = ProgramTask(world)
    with task.sandbox:
        whole, part = task.evaluate([world.seed] * 2)[0], task.evaluate([world.seed], [("ccc",)])[0]
    assert task.instances("test") == ("dddd",)
    assert (whole.value, whole.metrics) == (1.5, {"instance/a": 1.0, "instance/bb": 2.0})
    assert part.value == 3.0
