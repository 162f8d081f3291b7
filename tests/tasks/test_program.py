"""Program tasks: what is refused, and the worlds' verifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.program import ProgramTask, World
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds import autocorrelation_3, heilbronn, matrix_multiplication
from evolvent.tasks.worlds.circle_packing import judge, world

FINE = "def evaluate(program_path):\n    return 1.0\n"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("program:", "unknown world"),
        ("program:circle-paking", "did you mean circle-packing"),
        ("program:circle-packing:many", "number of discs goes from 2 to 64"),
        ("program:circle-packing:1000", "number of discs goes from 2 to 64"),
        ("program:no.py:none.py", "there is no file no.py"),
    ],
)
def test_what_is_not_there(spec: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as refused:
        load_task(spec)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("evaluator", "program", "told"),
    [
        ("def evaluate(:", "x = 1", "evaluator.py line 1 is not Python"),
        (FINE, "x = 1\0", "program.py is not Python: .*null byte"),
        (FINE, "x = 1\ndef f(:", r"program.py line 2 is not Python: invalid syntax \(`def f\(:`\)"),
        (FINE, "x = 1\0", "program.py .*null bytes"),
        (FINE, "x = 1\n# EVOLVE-BLOCK-START\ny = 2", "program.py line 2 starts an EVOLVE block that nothing ends"),
        (FINE, "x = 1\n# EVOLVE-BLOCK-END", "program.py line 2 ends an EVOLVE block, but none is open"),
        ("def score(path): return 1", "x = 1", "has no function evaluate"),
    ],
)
def test_files_that_are_of_no_use(tmp_path: Path, evaluator: str, program: str, told: str) -> None:
    for name, text in (("evaluator.py", evaluator), ("program.py", program)):
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=told) as refused:
        load_task(f"program:{tmp_path}/evaluator.py:{tmp_path}/program.py")
    assert "\n" not in str(refused.value)


def test_an_evaluation_without_time_says_how_it_gets_more(tmp_path: Path, sandboxed: str) -> None:
    (tmp_path / "slow.py").write_text(f"import time\nTIMEOUT = 0.5\n{FINE.replace('return', 'time.sleep(9); return')}")
    (tmp_path / "program.py").write_text("x = 1\n")
    task = load_task(f"program:{tmp_path}/slow.py:{tmp_path}/program.py")
    (verdict,) = task.evaluate([task.seed_program])
    assert verdict.status == "timeout"
    assert "it had 0.5 s, and a line TIMEOUT = 1 in slow.py gives it more" in verdict.feedback


def grid(n: int, side: int) -> list[list[float]]:
    return [[(i % side + 0.5) / side, (i // side + 0.5) / side, 0.5 / side] for i in range(n)]


def test_a_grid_of_discs() -> None:
    found = judge(grid(4, 2), 4)
    assert found.value == 1.0
    assert found.metrics == {"smallest": 0.25, "largest": 0.25}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows[:3], "4 rows"),
        (lambda rows: [row[:2] for row in rows], "4 rows of three"),
        (lambda rows: [[float("nan"), 0.5, 0.1], *rows[1:]], "finite number"),
        (lambda rows: [["0.5", 0.5, 0.1], *rows[1:]], "finite number"),
        (lambda rows: [[0.25, 0.25, -0.1], *rows[1:]], "radius -0.1"),
        (lambda rows: [[0.25, 0.25, np.nextafter(0.25, 1)], *rows[1:]], "leaves the square"),
        (lambda rows: [[0.25 + 1e-9, 0.25, 0.25], *rows[1:]], "overlap"),
        (lambda rows: {"a": 1}, "4 rows"),
        (lambda rows: None, "4 rows"),
    ],
)
def test_the_verifier_has_no_tolerance(change: Any, told: str) -> None:
    found = judge(change(grid(4, 2)), 4)
    assert found.value is None
    assert told in found.feedback


def test_programs_of_a_world(tmp_path: Path, sandboxed: str) -> None:
    task = ProgramTask(world("26"), workers=2)
    polished = task.seed_program.replace(
        "radii = radii_of(points)\n    return", "points, radii = polish(points, 60)\n    return"
    )
    broken, cheating = "def run(n, seed:\n", "def run(n, seed):\n    return [[0.5, 0.5, 0.5]] * n\n"
    with task.sandbox:
        seed, better, unreadable, wrong = task.evaluate([task.seed_program, polished, broken, cheating])
    assert seed.value == pytest.approx(26 / 12, abs=1e-9)
    assert better.value is not None
    assert 2.3 < better.value < 2.6359830850
    assert (unreadable.value, unreadable.status) == (None, "unreadable")
    assert wrong.value is None
    assert "overlap" in wrong.feedback


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("made", "program", "told"),
    [
        (heilbronn.world("3"), "def run(n, seed):\n    return [[1.7e308, 1.7e308], [0, 0], [1, 0]]\n", "OverflowError"),
        (
            matrix_multiplication.world("1x1x1"),
            "def run(n, m, p, seed):\n    return [[[10**308], [1], [1]]]\n",
            "whole or half ones up to 1000",
        ),
        (autocorrelation_3.world("3"), "def run(n, seed):\n    return [1, -1, 1e-170]\n", "value = -inf"),
    ],
    ids=["heilbronn", "matrix-multiplication", "autocorrelation-3"],
)
def test_numbers_beyond_all_bounds_are_the_candidates_fault(
    made: World, program: str, told: str, sandboxed: str
) -> None:
    task = ProgramTask(made)
    with task.sandbox:
        wrong, fine = task.evaluate([program, made.seed])
    assert (wrong.value, wrong.status) == (None, "invalid")
    assert told in wrong.feedback
    assert "\n" not in wrong.feedback
    assert fine.value is not None


@pytest.mark.parametrize("name", ["evaluator.py", "program.py"])
def test_files_that_are_no_text(tmp_path: Path, name: str) -> None:
    for other in ("evaluator.py", "program.py"):
        (tmp_path / other).write_text(FINE)
    (tmp_path / name).write_bytes(b"# Gr\xfc\xdfe\n" + FINE.encode())
    with pytest.raises(UserError, match=f"{name} is not UTF-8 .*; save it as UTF-8") as refused:
        load_task(f"program:{tmp_path}/evaluator.py:{tmp_path}/program.py")
    assert "\n" not in str(refused.value)


def test_a_mark_at_the_beginning_of_a_text_is_no_part_of_it(tmp_path: Path) -> None:
    for name in ("evaluator.py", "program.py"):
        (tmp_path / name).write_text(FINE, "utf-8-sig")
    task = load_task(f"program:{tmp_path}/evaluator.py:{tmp_path}/program.py")
    assert isinstance(task, ProgramTask)
    assert task.seed_program == FINE


LOAD = """import importlib.util
import os
import subprocess
import sys
import tempfile


def x_of(path):
    spec = importlib.util.spec_from_file_location("p", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.x
"""
ELSEWHERE = """

def evaluate(program_path):
    os.chdir(tempfile.mkdtemp())
    return x_of(program_path)
"""
ANOTHER = """

def evaluate(program_path):
    code = "import runpy, sys; print(runpy.run_path(sys.argv[1])['x'])"
    run = [sys.executable, "-c", code, program_path]
    return float(subprocess.run(run, capture_output=True, cwd=tempfile.mkdtemp(), check=True).stdout)
"""
IMPORTED = "from helper import x_of as evaluate\n"


@pytest.mark.parametrize("evaluator", [LOAD + ELSEWHERE, LOAD + ANOTHER, IMPORTED, LOAD + "\n\nevaluate = x_of\n"])
def test_evaluators_get_a_whole_path_and_may_be_imported(tmp_path: Path, evaluator: str, sandboxed: str) -> None:
    for name, text in (("evaluator.py", evaluator), ("helper.py", LOAD), ("program.py", "x = 2.5\n")):
        (tmp_path / name).write_text(text)
    task = load_task(f"program:{tmp_path}/evaluator.py:{tmp_path}/program.py")
    with task.sandbox:
        (found,) = task.evaluate(["x = 3.5\n"])
    assert (found.value, found.feedback) == (3.5, "")
