"""Tasks by name."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from evolvent.core.errors import UserError
from evolvent.core.random import stream
from evolvent.tasks.base import Attempt, Score, Task, score_all
from evolvent.tasks.registry import BUILT_IN, load_task, module_of, task_table


@pytest.mark.parametrize("name", [*BUILT_IN, "rg/gcd", "rg/products:1,2", "countdown:3x12,4x12"])
def test_every_name_gives_a_task_that_draws_and_judges(name: str) -> None:
    task = load_task(name, "plain" if name == "rg/gcd" else "compact")
    assert isinstance(task, Task)
    problem = task.draw("train", stream(0, name), task.categories[0])
    assert problem.task == task.name
    assert task.score(problem, "no answer").outcome == 0
    assert hasattr(importlib.import_module(module_of(name)), type(task).__name__)


@pytest.mark.parametrize("levels", [entry.levels for entry in BUILT_IN.values()])
def test_the_levels_in_the_table_exist(levels: str) -> None:
    name = next(n for n, entry in BUILT_IN.items() if entry.levels == levels)
    for level in levels.split(", "):
        load_task(f"{name}:{level}")


def test_a_sum_of_tasks() -> None:
    task = load_task("arith:2x1 + countdown:2x20")
    assert task.categories == ("arith:2x1/2x1", "countdown:2x20/2x20")
    problems = [task.draw("train", stream(0), category) for category in task.categories]
    golds = [task.gold(p) for p in problems]
    scores = score_all(task, [Attempt(p, g[-1].text) for p, g in zip(problems, golds, strict=True) if g])
    assert [s.outcome for s in scores if isinstance(s, Score)] == [1, 1]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("countdwn", "did you mean countdown"),
        ("nothing_like_it", "a task of your own is a .py file, or rows in .jsonl"),
        (".", r"\. cannot be a task; give a .py file with problems and a reward, or rows in"),
        ("countdown:9x9x9", "has no level"),
        ("rg/gdc", "did you mean gcd"),
        ("arith+", "names no task"),
        ("", "names no task"),
        ("arith:2x1+arith:2x1", "names one of them twice"),
        ("no_such_file.py", "there is no file no_such_file.py"),
        ("no_such_file.jsonl", "there is no file no_such_file.jsonl"),
        ("no_such_file.csv:reward.py", "there is no file no_such_file.csv"),
    ],
)
def test_names_that_are_refused(spec: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_task(spec)


def test_a_file_whose_name_has_a_plus(tmp_path: Path) -> None:
    path = tmp_path / "a+b.csv"
    path.write_text("prompt,answer\n" + "".join(f"{i},x{i}\n" for i in range(12)))
    assert load_task(str(path)).name == "a+b"


def test_the_table_names_everything_and_imports_nothing() -> None:
    assert {row["task"] for row in task_table()} >= {*BUILT_IN, "rg/NAME", "FILE.py"}
    code = (
        "import sys\nfrom evolvent.tasks.registry import task_table\ntask_table()\n"
        "assert not {'torch', 'reasoning_gym', 'gymnasium', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
