"""The commands that say what happened and go back: what they print, as text and JSON, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.finished import copy_of_runs, store_with_runs
from tests.run.lives import view_of

from evolvent.cli.main import main
from evolvent.cli.runs import console, table


def call(capsys: pytest.CaptureFixture[str], *args: object, code: int = 0) -> str:
    """What a command prints; for exit code 2 the one line of its error."""
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in args])
    found = capsys.readouterr()
    assert end.value.code == code, found.err
    if code == 2:
        assert found.err.startswith("evolvent: ")
        assert found.err.count("\n") == 1
        assert found.out == ""
        return found.err
    return found.out


def data(capsys: pytest.CaptureFixture[str], *args: object) -> Any:
    """The JSON of a command, which any JSON reader takes (no NaN)."""

    def no(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    return json.loads(call(capsys, *args, "--json"), parse_constant=no)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return copy_of_runs(tmp_path)


def test_runs(capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--store", store_with_runs())
    text = call(capsys, "runs", *where)
    assert "run" in text
    assert "finished" in text
    rows = data(capsys, "runs", *where)
    assert [r["run"] for r in rows] == ["run", "other"]
    view = view_of(store_with_runs(), "run")
    assert rows[0]["steps"] == 6
    assert rows[0]["gate_accuracy"] == view.curve("gate/accuracy")[-1][1]
    before, after = (100 * view.evaluations[n]["evaluation"]["sampled"]["mean"] for n in ("start", "evolved"))
    assert f"{before:.1f} -> {after:.1f}" in text


def test_runs_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no store in" in call(capsys, "runs", "--store", tmp_path / "none", code=2)
    assert not (tmp_path / "none").exists()
    from evolvent.lineage.store import Store

    Store(tmp_path / "empty")
    assert "no runs yet; begin with: evolvent run" in call(capsys, "runs", "--store", tmp_path / "empty")
    assert data(capsys, "runs", "--store", tmp_path / "empty") == []


def test_lineage(capsys: pytest.CaptureFixture[str]) -> None:
    view = view_of(store_with_runs(), "other")
    text = call(capsys, "lineage", "other", "--store", store_with_runs())
    lines = [line for line in text.splitlines() if "version " in line and "step" in line]
    assert len(lines) == len(view.versions)
    assert sum(line.lstrip("├└─│ ").startswith("* ") for line in lines) == 1
    (head,) = [line for line in lines if "* version" in line]
    assert f"version {view.head}," in head
    assert any("refused" in line and "weights not kept" in line for line in lines)
    rows = data(capsys, "lineage", "last", "--store", store_with_runs())["versions"]
    assert [r["version"] for r in rows] == [v.number for v in view.versions]
    assert all(r["stored"] == (r["verdict"] != "refused") for r in rows)
    refused = [r for r in rows if r["verdict"] == "refused"]
    later = [r for r in rows if r["step"] > refused[0]["step"]]
    assert all(refused[0]["version"] not in r["parents"] for r in later)  # nothing comes from what was refused


def test_rollback_and_undo(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = view_of(store, "run").head
    said = call(capsys, "rollback", "run", 0, "--store", store)
    assert f"it was version {head}" in said
    assert f"Undo: evolvent rollback run {head}" in said
    assert "export, try, serve and `evolvent resume run` start there" in said
    (row,) = (r for r in data(capsys, "runs", "--store", store) if r["run"] == "run")
    assert (row["head"], row["gate_accuracy"]) == (0, None)  # the start was not measured by the gate
    assert view_of(store, "run").head == 0
    text = call(capsys, "lineage", "run", "--store", store)
    assert "* version 0," in text
    assert f"rolled back from version {head} to version 0" in text
    assert "is the head of run already" in call(capsys, "rollback", "run", 0, "--store", store, code=2)
    assert data(capsys, "rollback", "run", head, "--store", store)["before"] == 0
    assert view_of(store, "run").head == head


def test_rollbacks_that_are_refused(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = next(v.number for v in view_of(store, "other").versions if v.verdict == "refused")
    where = ("--store", store)
    assert "was refused by the gate" in call(capsys, "rollback", "other", refused, *where, code=2)
    assert "has no version 99999; it has 0, " in call(capsys, "rollback", "other", 99999, *where, code=2)
    assert "did you mean other" in call(capsys, "rollback", "othr", 0, *where, code=2)
    call(capsys, "rollback", "run", "x", *where, code=2)
    assert view_of(store, "other").rollbacks == []


def test_diff(capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--store", store_with_runs())
    text = call(capsys, "diff", "run", "other", *where)
    for word in ("arith:1x1", "calc:1x1", "gate.tolerance", "greedy", "tokens", "weights:"):
        assert word in text or word == "tokens", word
    assert "weights: the same" in call(capsys, "diff", "run:0", "run:0", *where)
    assert data(capsys, "diff", "run:0", "run", *where)["spent"]["steps"] == [0, 6]
    assert "write RUN or RUN:VERSION" in call(capsys, "diff", "run:x", "run", *where, code=2)


def test_export_and_use_what_was_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--store", store_with_runs())
    said = call(capsys, "export", "run", tmp_path / "model", *where)
    assert f"Wrote the model of run, version {view_of(store_with_runs(), 'run').head}" in said
    assert "nothing is overwritten" in call(capsys, "export", "run", tmp_path / "model", *where, code=2)
    assert "name another place" in call(capsys, "export", "run", "/proc/nowhere", *where, code=2)
    call(capsys, "export", "run", tmp_path / "start", "--version", 0, *where)
    told = data(capsys, "try", tmp_path / "model", "--task", "arith:1x1", "-n", 5, *where)
    theirs = data(capsys, "try", "run", "-n", 5, *where)
    (head,) = [label for label in theirs[0]["answers"] if label != "start"]
    assert [r["answers"]["model"] for r in told] == [r["answers"][head] for r in theirs]


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a/b.html"
    said = call(capsys, "report", "run", "--out", out, "--store", store_with_runs())
    assert said.strip() == str(out)
    assert out.read_text().startswith("<!doctype html>")
    assert list(out.parent.iterdir()) == [out]


def test_a_report_where_a_folder_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there").mkdir()
    said = call(capsys, "report", "run", "--out", tmp_path / "there", "--store", store_with_runs(), code=2)
    assert "there is a folder; name a file, such as" in said
    assert [p.name for p in tmp_path.iterdir()] == ["there"]


def test_gc(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--store", store)
    planned = data(capsys, "gc", "--keep-last", 0, "--dry-run", *where)
    assert planned["freed"] > 0
    assert "would free" in call(capsys, "gc", "--keep-last", 0, "--dry-run", *where)
    said = call(capsys, "gc", "--keep-last", 0, *where)
    assert "removed the weights of run, versions" in said
    assert data(capsys, "gc", "--keep-last", 0, *where)["freed"] == 0
    assert "weights removed" in call(capsys, "lineage", "run", *where)


@pytest.mark.parametrize("command", ["lineage", "report", "resume"])
def test_unknown_runs(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, command, "rum", "--store", store_with_runs(), code=2)
    assert "unknown run `rum`; did you mean run?" in said


def test_comparing_a_run_with_none(capsys: pytest.CaptureFixture[str]) -> None:
    where = "--store", store_with_runs()
    assert "unknown run `othr`; did you mean other?" in call(capsys, "compare", "run", "othr", *where, code=2)


def test_comparing_a_run_with_itself(capsys: pytest.CaptureFixture[str]) -> None:
    where = "--store", store_with_runs()
    assert "at least two different runs" in call(capsys, "compare", "run", "run", *where, code=2)
    assert "at least two different runs" in call(capsys, "compare", "run", *where, code=2)


def test_brackets_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table("[red]name[/red]")
    rows.add_row("a[/]")
    console().print(rows)
    console().print("grpo[bold]")
    said = capsys.readouterr().out
    assert all(text in said for text in ("[red]name[/red]", "a[/]", "grpo[bold]"))
