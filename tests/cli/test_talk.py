"""Talking to a model: before and after, typed or from problems, with tools; and what cannot be asked."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from tests.cli.finished import store_with_runs
from tests.cli.test_runs import call, data
from tests.loopback import serving
from tests.run.lives import view_of
from tests.small_model import small_model

from evolvent.core.ledger import Ledger
from evolvent.engine.huggingface import local_engine
from evolvent.models.load import load_policy
from evolvent.serve.app import create_app
from evolvent.tasks.base import distinct, split_of
from evolvent.tasks.registry import load_task


@pytest.fixture
def where() -> tuple[str, Path]:
    return "--store", store_with_runs()


def test_problems_before_and_after(where: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    rows = data(capsys, "try", "run", "-n", 6, *where)
    task = load_task("arith:1x1")
    problems = distinct(task, "gate", 6)
    assert [r["prompt"] for r in rows] == [p.prompt[0].content for p in problems]
    assert all(split_of(p.key) == "gate" for p in problems)
    labels = ["start", f"version {view_of(where[1], 'run').head}"]
    for row, problem in zip(rows, problems, strict=True):
        assert list(row["answers"]) == labels
        for (answer,) in row["answers"].values():
            said = "".join(text for _, text in answer["turns"])
            assert answer["outcome"] == task.score(problem, said).outcome
    text = call(capsys, "try", "run", "-n", 6, *where)
    right = sum(a["outcome"] >= 1 for r in rows for a in r["answers"]["start"] + r["answers"][labels[1]])
    assert text.count("right") == right
    assert labels[1] in text


def test_a_version_can_be_chosen(where: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    one = next(v.number for v in view_of(where[1], "run").standing if v.number)
    rows = data(capsys, "try", "run", "-n", 1, "--version", one, *where)
    assert list(rows[0]["answers"]) == ["start", f"version {one}"]
    assert list(data(capsys, "try", "run", "-n", 1, "--version", 0, *where)[0]["answers"]) == ["start"]


def test_tools_reply(
    where: tuple[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also to prompts that somebody types: the calculator needs no problem."""
    for args in (("-n", 8), ()):
        monkeypatch.setattr("sys.stdin", io.StringIO("3+4?\n\n2*5?\n6-1?\n"))
        rows = data(capsys, "try", "other", *args, *where)
        assert len(rows) == (8 if args else 3)
        kinds = {kind for r in rows for a in r["answers"]["start"] for kind, _ in a["turns"]}
        assert kinds == {"policy", "tool"}
        assert ("outcome" in rows[0]["answers"]["start"][0]) == bool(args)


def test_another_task_judges_and_has_its_own_tools(where: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    task = load_task("calc:1x1")
    rows = data(capsys, "try", "run", "-t", "calc:1x1", "-n", 4, *where)
    for row, problem in zip(rows, distinct(task, "gate", 4), strict=True):
        assert row["prompt"] == problem.prompt[0].content
        assert all("outcome" in answer for answers in row["answers"].values() for answer in answers)
    rows = data(capsys, "try", "other", "-t", "arith:1x1", "-n", 4, *where)
    assert all({kind for kind, _ in a["turns"]} == {"policy"} for r in rows for a in r["answers"]["start"])


def test_lines_from_standard_input(
    where: tuple[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("1+2=\n5+5="))
    text = call(capsys, "try", "run", *where)
    assert "1+2=" in text
    assert "5+5=" in text
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert call(capsys, "try", "run", *where) == ""


def test_sampling_depends_on_the_seed_only(where: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    args = ("try", "run", "-n", 4, "--temperature", 1.5, "--samples", 3, *where)
    one, two, three = data(capsys, *args), data(capsys, *args), data(capsys, *args, "--seed", 1)
    assert one == two
    assert one != three
    assert len(one[0]["answers"]["start"]) == 3


def test_a_model_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a store, and without a task."""
    monkeypatch.setattr("sys.stdin", io.StringIO("1+2=\n"))
    rows = data(capsys, "try", small_model(), "--store", tmp_path / "none")
    assert list(rows[0]["answers"]) == ["model"]
    assert rows[0]["answers"]["model"][0]["tokens"] > 0
    assert load_policy(small_model()).size > 0
    assert not (tmp_path / "none").exists()


def test_what_cannot_be_asked(
    where: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "has no run `rum`; did you mean run?; and as a model: " in call(capsys, "try", "rum", *where, code=2)
    assert "needs a task" in call(capsys, "try", small_model(), "-n", 1, *where, code=2)
    assert "--version is for runs" in call(capsys, "try", small_model(), "--version", 1, *where, code=2)
    assert "has no version 777" in call(capsys, "try", "run", "--version", 777, *where, code=2)
    call(capsys, "try", "run", "-n", 0, *where, code=2)
    for typed, what in (("1+2=é\n", "printable ASCII"), ("1" * 500 + "\n", "context")):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert what in call(capsys, "try", "run", *where, code=2)


def test_a_model_behind_an_endpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It can be asked, by itself or as the model of a run; such a run has nothing to export."""
    policy = load_policy(small_model())
    app = create_app(policy, local_engine(policy, Ledger()), "small")
    where = "--store", tmp_path / "runs"
    how = "--quiet", "--no-final", "--no-report", "--skip-audit", "--set", "propose.problems=1"
    with serving(app) as url:
        args = "run", "best-of-n", "-t", "arith:1x1", "-m", f"{url}#small", "--name", "far", "-b", "16 calls", *how
        told = call(capsys, *args, *where)
        assert "of the answers that the verifier chose" in told
        assert "evolvent export" not in told
        for subject, label in ((url, "model"), ("far", "start")):
            (row,) = data(capsys, "try", subject, "-t", "arith:1x1", "-n", 1, *where)
            assert list(row["answers"]) == [label]
            assert row["answers"][label][0]["tokens"] > 0
        assert "nothing to export" in call(capsys, "export", "far", tmp_path / "out", *where, code=2)
