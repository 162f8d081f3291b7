"""What a search says at its beginning and in the end, as it is typed."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.test_runs import call, data
from tests.search.test_stages import STAGED

from evolvent.cli.main import cli
from evolvent.lineage.report import write_report
from evolvent.lineage.runs import read_run
from evolvent.lineage.store import Store

PROGRAM = "# EVOLVE-BLOCK-START\ndef point():\n    return 0.0, 0.0\n# EVOLVE-BLOCK-END\n"


@pytest.mark.parametrize("final", [True, False])
def test_a_search_in_which_nobody_gets_through_all_stages_has_a_program_and_says_why(
    final: bool, tmp_path: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "evaluator.py").write_text(STAGED)
    (tmp_path / "program.py").write_text(PROGRAM)
    where = "--store", tmp_path / "runs"
    task = "--task", tmp_path / "evaluator.py", "--seed-program", tmp_path / "program.py"
    asked = "--model", "none", "--budget", "3 steps", "--set", "judge.promote.thresholds=2.0", "--name", "run"
    said = call(capsys, "run", "alphaevolve", *task, *asked, *where, *([] if final else ["--no-final"]))
    assert "--set judge.promote=everybody" in said
    assert ("Evaluated anew" in said) == final
    best = tmp_path / "runs/run/best.py"
    assert best.exists() == final
    call(capsys, "export", "run", tmp_path / "out.py", *where)
    assert "def point()" in (tmp_path / "out.py").read_text()
    if final:
        assert best.read_text() == (tmp_path / "out.py").read_text()
        (row,) = data(capsys, "runs", *where)
        assert row["status"] == "finished"


VALUE = """
import importlib.util


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("candidate", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    %s
"""
MARKED = "# EVOLVE-BLOCK-START\n%s\n# EVOLVE-BLOCK-END\n"
NUMBER = MARKED % "def point():\n    x = 1.0\n    for i in range(4):\n        x = x + 2.0 * i\n    return x"
PLAIN = "return float(module.point())"
CAUGHT = """try:
        return float(module.point())
    except Exception as reason:
        return {"combined_score": 0.0, "loss": "error: 0.5", "stderr": f"{reason!r} http://me:hidden@here"}"""


def search(folder: Path, evaluator: str, program: str, *more: str, budget: str = "1 evaluation") -> str:
    """All that a search says, on one line."""
    (folder / "evaluator.py").write_text(VALUE % evaluator)
    (folder / "program.py").write_text(program)
    task = ["--task", str(folder / "evaluator.py"), "--seed-program", str(folder / "program.py")]
    args = ["run", "hill-climbing", *task, "--budget", budget, "--store", str(folder / "runs"), "--no-report", *more]
    result = CliRunner().invoke(cli, args)
    assert result.exception is None, result.output
    return " ".join(result.output.split())


def test_an_error_in_what_is_said_of_the_seed_program_is_told_once(tmp_path: Path, sandboxed: str) -> None:
    said = search(tmp_path, CAUGHT, NUMBER.replace("2.0 * i", "missing"), budget="30 evaluations")
    assert said.count("the seed program has the value 0, and its evaluation says `stderr: NameError(") == 1
    assert "hidden" not in said
    assert "the seed program has" not in search(tmp_path, CAUGHT, NUMBER)
    assert "the seed program has" not in search(tmp_path, 'return {"combined_score": 1.0, "error": "none"}', NUMBER)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("X = 1\n\n" + MARKED % "", "the EVOLVE block after line 3 of the seed program is empty"),
        ("X = 1\n" + MARKED % "  # here" + "Y = 1\n" + MARKED % "", "every EVOLVE block of the seed program is empty"),
        ("X = 1\n" + MARKED % "" + MARKED % "Y = 2  # here", None),
        ("X = 1\n", None),
    ],
)
def test_an_empty_block_is_told_before_the_search(
    program: str, said: str | None, tmp_path: Path, sandboxed: str
) -> None:
    told = search(tmp_path, "return module.X", program)
    assert said in told if said else "EVOLVE" not in told


def test_how_most_candidates_failed_is_said_in_the_end(tmp_path: Path, sandboxed: str) -> None:
    raises = f"if module.point() != 13:\n        raise ValueError\n    {PLAIN}"
    said = search(tmp_path, raises, NUMBER, budget="60 evaluations")
    (rows,) = [v for k, v in failed(tmp_path).items() if k == "raised"]
    total = sum(failed(tmp_path).values())
    assert f"{total} of 65 candidates failed, most often with the status `raised` ({rows})." in said
    assert "candidates failed" not in search(tmp_path, "return 1.0", NUMBER, budget="20 evaluations")


def failed(folder: Path) -> Counter[str]:
    """Candidates of the first search without a value, by status."""
    view = read_run(Store(folder / "runs"), "hill-climbing-program-1")
    found = [c["evaluation"] for c in view.candidates.values()]
    assert len(found) == 65
    return Counter(one["status"] for one in found if one["value"] is None)


def test_what_a_search_spends_is_called_evaluations(tmp_path: Path, sandboxed: str) -> None:
    said = search(tmp_path, PLAIN, NUMBER, budget="9 evaluations")
    assert "(100% of 9 evaluations)" in said
    assert "best 13 after 1 evaluation elapsed" in said
    assert re.search(r"Spent: 2 steps, .* 9 evaluations, \d:\d\d; on the best anew: \d+ evaluations", said)
    assert "verifier calls" not in said
    report = write_report(Store(tmp_path / "runs"), "hill-climbing-program-1").read_text()
    assert ">evaluations</th>" in report
    assert "verifier calls" not in report


def test_where_a_world_has_instances_an_evaluation_is_one_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.py").write_text(
        "seed_candidate = {'prompt': 'Add.'}\ntrainset = [1, 2, 3, 4]\ndef evaluate(texts, example): return 1.0\n"
    )
    how = "--model", "simulated:skill=0.5", "--budget", "4 evaluations", "--no-report", "--store", tmp_path / "runs"
    said = call(capsys, "run", "random-search", "--task", f"texts:{tmp_path}/texts.py", *how)
    assert "4 evaluations, each of one program on one instance" in said
