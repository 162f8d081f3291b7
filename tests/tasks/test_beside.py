"""Evaluators written for OpenEvolve, with what lies beside them, in the real sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolvent.core.errors import UserError
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.tasks.beside import MOST, beside
from evolvent.tasks.evaluation_result import EvaluationResult
from evolvent.tasks.program import ProgramTask, load

EVALUATOR = '''"""Evaluator for a curve that should pass through given points, with a cascade."""

import importlib.util
import json
import time
import traceback
from pathlib import Path

import numpy as np
from openevolve.evaluation_result import EvaluationResult

from scoring import combined, errors_of
from tools.timing import took

POINTS = json.loads(Path(__file__).with_name("points.json").read_text())


def load_program(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    if not hasattr(program, "curve"):
        raise AttributeError("Missing curve function")
    return program


def _run(program_path, points):
    start = time.time()
    try:
        errors = errors_of(load_program(program_path).curve, points)
    except Exception as e:
        return EvaluationResult(
            metrics={"combined_score": 0.0, "error": float(1)},
            artifacts={"stderr": str(e), "traceback": traceback.format_exc(), "raw": b"\\x00", "stage": "run"},
        )
    score = np.float64(combined(errors))
    return EvaluationResult(
        metrics={"combined_score": score, "worst": max(errors), "eval_time": took(start)},
        artifacts={"summary": f"{len(points)} points", "plot": b"\\x89PNG"},
    )


def evaluate_stage1(program_path):
    return _run(program_path, POINTS[:2])


def evaluate_stage2(program_path):
    return _run(program_path, POINTS)


def evaluate(program_path):
    """All points."""
    return evaluate_stage2(program_path)
'''
SCORING = """
import csv

from weights import WEIGHT

with open("extra.csv") as file:
    ROWS = list(csv.reader(file))


def errors_of(curve, points):
    return [abs(curve(x) - y) for x, y in points]


def combined(errors):
    return WEIGHT / (1.0 + sum(errors)) + 0.0 * len(ROWS)
"""
PROGRAM = """
# EVOLVE-BLOCK-START
def curve(x):
    return 1.0 * x + 0.5
# EVOLVE-BLOCK-END
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "eval.v2.py": EVALUATOR,
        "scoring.py": SCORING,
        "weights.py": "WEIGHT = 1.0\n",
        "tools/__init__.py": "",
        "tools/timing.py": "import time\n\n\ndef took(start):\n    return time.time() - start\n",
        "points.json": "[[0, 0], [1, 1], [2, 2]]",
        "extra.csv": "1,2\n",
        "initial_program.py": PROGRAM,
        "secret.txt": "nobody names this",
        "runs/best.py": "x = 1",
        ".venv/lib/big.py": "x = 1",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def the_task(folder: Path, name: str = "eval.v2.py") -> ProgramTask:
    return load(f"{folder / name}:{folder / 'initial_program.py'}")


def test_an_evaluator_of_openevolve_works_unchanged(folder: Path, sandboxed: str) -> None:
    task = the_task(folder)
    broken = PROGRAM.replace("def curve", "def other")
    with task.sandbox:
        found, wrong, first = task.evaluate([PROGRAM, broken, PROGRAM], [(), (), ("stage1",)])
    assert (found.status, found.value) == ("ok", pytest.approx(1 / 2.5))
    assert found.metrics["worst"] == 0.5
    assert found.feedback == "summary: 3 points"
    assert wrong.value == 0.0
    assert "stderr: Missing curve function" in wrong.feedback
    assert "raw" not in wrong.feedback
    assert first.value == pytest.approx(1 / 2.0)


def test_its_cascade_stops_early(folder: Path, tmp_path: Path, sandboxed: str) -> None:
    settings = {"judge.promote": "above", "judge.promote.thresholds": "0.9"}
    task = f"program:{folder / 'eval.v2.py'}:{folder / 'initial_program.py'}"
    spec = RunSpec("hill-climbing", task, "none", "3 steps", settings=settings)
    found = begin(spec, tmp_path / "store", logs=("jsonl",)).view.candidates.values()
    assert any(not c["evaluation"]["complete"] for c in found)
    assert all(c["evaluation"]["status"] != "raised" or "curve" in c["evaluation"]["feedback"] for c in found)


def test_what_is_named_goes_along_and_nothing_else(folder: Path) -> None:
    found = beside(folder, [EVALUATOR, PROGRAM], folder / "initial_program.py")
    assert set(found) == {
        "scoring.py", "weights.py", "tools/__init__.py", "tools/timing.py", "points.json", "extra.csv",
        "openevolve/__init__.py", "openevolve/evaluation_result.py",
    }  # fmt: skip


def test_the_program_goes_along_once(folder: Path) -> None:
    code = "import initial_program, json\nNAMES = 'initial_program.py', '../x.json', '/etc/a.txt', '\\0.txt'\n"
    (folder / "json.py").write_text("")
    assert beside(folder, [code], folder / "initial_program.py") == {}


def test_openevolve_of_ones_own_is_not_replaced(folder: Path) -> None:
    (folder / "openevolve").mkdir()
    (folder / "openevolve" / "__init__.py").write_text("")
    assert "openevolve/evaluation_result.py" not in beside(folder, [EVALUATOR], folder / "initial_program.py")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("points.json", b"[" + b"0, " * (MOST // 3), "larger than 1 MiB with .*points.json; make them smaller"),
        ("points.json", b"\xff", "points.json is not UTF-8"),
        ("weights.py", b"WEIGHT = (", "weights.py is not Python"),
    ],
)
def test_files_that_cannot_go_along(folder: Path, name: str, content: bytes, told: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=told) as refused:
        the_task(folder)
    assert "\n" not in str(refused.value)


def test_an_evaluator_called_program(folder: Path, sandboxed: str) -> None:
    (folder / "eval.v2.py").rename(folder / "program.py")
    task = the_task(folder, "program.py")
    with task.sandbox:
        [found] = task.evaluate([PROGRAM])
    assert found.value == pytest.approx(1 / 2.5)


def test_the_stand_in() -> None:
    made = EvaluationResult({"a": 1.0}, {"log": "ü", "raw": b"1"})
    assert made.to_dict() == EvaluationResult.from_dict({"a": 1.0}).metrics
    assert made.has_artifacts()
    assert made.get_artifact_keys() == ["log", "raw"]
    assert (made.get_artifact_size("log"), made.get_artifact_size("none"), made.get_total_artifact_size()) == (2, 0, 3)
