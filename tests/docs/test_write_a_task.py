"""The page `docs/write-a-task.md` is true: every file in it runs, and the report in it is what one gets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from evolvent.tasks.audit import UNDESERVED, audit
from evolvent.tasks.base import Attempt, Score
from evolvent.tasks.registry import load_task
from evolvent.tasks.rewrite import rewrite

PAGE = (Path(__file__).parents[2] / "docs" / "write-a-task.md").read_text()
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_page_has_its_files() -> None:
    assert {"reverse.py", "batch.py", "credit.py", "guess.py", "longer.py", "loose.py"} == set(FILES)


@pytest.mark.parametrize("name", ["reverse.py", "batch.py", "credit.py", "guess.py", "longer.py"])
def test_every_example_passes_the_audit(folder: Path, name: str) -> None:
    report = audit(load_task(str(folder / name)))
    assert report.failed == []
    assert next(c for c in report.checks if c.name == "gold").severity == "ok"


def test_a_row_is_rewritten_as_the_page_says(folder: Path) -> None:
    task, rng = load_task(str(folder / "longer.py")), np.random.default_rng(0)
    parent = task.draw("train", rng)
    deeper, alike = (rewrite(parent, task, rng, depth=depth) for depth in (1.0, 0.0))
    assert deeper is not None
    assert len(deeper.data["answer"]) == 4
    assert deeper.data["prompt"] == f"rev {deeper.data['answer'][::-1]}="
    assert alike is None or len(alike.data["answer"]) == 3


def test_part_credit_is_recorded_beside_the_outcome(folder: Path) -> None:
    task = load_task(str(folder / "credit.py"))
    problem = next(p for p in task.listed("train") if p.data["answer"] == "cba")
    score = task.score(problem, "cbx")
    assert (score.outcome, score.shaping) == (0.0, {"letters": pytest.approx(2 / 3)})


def test_the_report_in_the_page(folder: Path) -> None:
    report = audit(load_task(str(folder / "loose.py")))
    shown = re.search(r"```text\n(audit of loose.*?)```", PAGE, re.DOTALL)
    assert shown
    timeless = [re.sub(r"\d+\.\d+ s\b|problem \w{4}", "", text) for text in (shown[1], report.table() + "\n")]
    assert timeless[0] == timeless[1]
    assert report.failed


def test_the_table_of_checks_names_them_all(folder: Path) -> None:
    report = audit(load_task(str(folder / "reverse.py")), problems=8)
    table = PAGE[PAGE.index("| check |") : PAGE.index("Without right answers")]
    assert all(check.name in table for check in report.checks)
    assert len(UNDESERVED) == 6


def test_rows_in_a_file_as_the_page_says(folder: Path) -> None:
    rows = [{"prompt": f"{i}+{i}=", "answer": str(2 * i)} for i in range(20)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "judge.py").write_text("def reward(completion): return 1\ndef strict(completion): return 0\n")
    for spec, wanted in (
        ("rows.jsonl", 1),
        (f"rows.jsonl:{folder}/judge.py", 1),
        (f"rows.jsonl:{folder}/judge.py:strict", 0),
    ):
        task = load_task(f"{folder}/{spec}")
        problem = task.listed("train")[0]
        assert task.score(problem, f"so\n<answer>{problem.data['answer']}</answer>").outcome == wanted


def test_the_limits_of_several_turns(folder: Path) -> None:
    task = load_task(str(folder / "guess.py"))
    assert (task.max_turns, task.max_tokens, task.turn_end) == (7, 21, ".")
    problem = task.listed("train")[0]
    (score,) = task.score_many([Attempt(problem, "")])
    assert isinstance(score, Score)
    assert score.outcome == 0
