"""What runs beside agents: queries may read and end, whatever they say; scripts may fail."""

from __future__ import annotations

import base64
import sqlite3
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from evolvent.tasks.worlds.sql import harness


@pytest.fixture
def data() -> str:
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE t (a INTEGER, b TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(i, f"x{i}") for i in range(50)])
        db.commit()
        return base64.b64encode(db.serialize()).decode()


def one(data: str, text: str, **limits: int) -> Any:
    return harness.answers([data], [[text]], **limits)[0][0]


def test_rows(data: str) -> None:
    assert one(data, "SELECT a, b FROM t WHERE a < 2") == {"rows": [[0, "x0"], [1, "x1"]]}
    assert one(data, "SELECT x'0aff', NULL, 1.5") == {"rows": [["0aff", None, 1.5]]}
    many = harness.answers([data, data], [["SELECT 1", "SELECT 2"], ["SELECT COUNT(*) FROM t"]])
    assert many == [[{"rows": [[1]]}, {"rows": [[2]]}], [{"rows": [[50]]}]]


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENDLESS, "interrupted"),
        ("SELECT a FROM", "incomplete input"),
        ("SELECT c FROM t", "no such column"),
        ("DELETE FROM t", "not authorized"),
        ("ATTACH 'other.db' AS o", "not authorized"),
        ("PRAGMA query_only = OFF", "not authorized"),
        ("CREATE TABLE u (a)", "not authorized"),
        ("SELECT load_extension('x')", "not authorized"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("", "0 rows"),
    ],
)
def test_what_is_refused(data: str, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = one(data, text)
    assert said in found.get("error", f"{len(found.get('rows', [1]))} rows")
    assert not list(tmp_path.iterdir())
    assert one(data, "SELECT COUNT(*) FROM t") == {"rows": [[50]]}


def test_too_many_rows_are_an_error(data: str) -> None:
    assert one(data, "SELECT a FROM t", rows=49) == {"error": "more than 49 rows"}
    assert len(one(data, "SELECT a FROM t", rows=50)["rows"]) == 50
    assert "interrupted" in one(data, "SELECT COUNT(*) FROM t, t u, t v", steps=1000)["error"]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("program")
    monkeypatch.setitem(sys.modules, "program", module)
    return module


def test_reports(data: str, program: types.ModuleType) -> None:
    program.analyse = lambda db: "x" * db.execute("SELECT COUNT(*) FROM t").fetchone()[0]  # type: ignore[attr-defined]
    assert harness.reports([data], 100) == [{"report": "x" * 50, "cut": False}]
    assert harness.reports([data], 10) == [{"report": "x" * 10, "cut": True}]
    program.analyse = lambda db: db.execute("SELECT c FROM t")  # type: ignore[attr-defined]
    [failed] = harness.reports([data], 10)
    assert failed["report"] == ""
    assert "no such column" in failed["error"]
    program.analyse = lambda db: 7  # type: ignore[attr-defined]
    assert "gave int" in harness.reports([data], 10)[0]["error"]
