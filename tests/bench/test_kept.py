"""Comparisons that are interrupted go on where they were, by the same command and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evolvent.bench import kept
from evolvent.bench.cell import Cell
from evolvent.bench.kept import ground, names_in, run_kept

ONE = Cell("a", "no-change", "countdown", "tiny-0", 0, "1 steps")
CELLS = [ONE, replace(ONE, seed=1), replace(ONE, arm="b", recipe="grpo")]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells that were run; the third run ever is interrupted."""
    seen: list[Cell] = []

    def run_cells(cells: Sequence[Cell], jobs: int, say: Any) -> Iterator[tuple[Cell, dict[str, Any]]]:
        for cell in cells:
            seen.append(cell)
            if len(seen) == 3:
                raise KeyboardInterrupt
            yield cell, {"seed": cell.seed, "value": 0.1 + cell.seed}

    monkeypatch.setattr(kept, "run_cells", run_cells)
    return seen


def test_what_was_finished_is_not_run_again(ran: list[Cell], tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        list(run_kept(CELLS, 1, said.append, tmp_path / "kept"))
    assert said == ["interrupted; 2 of 3 cells are kept, and the same command goes on from there"]
    found = list(run_kept(CELLS, 1, said.append, tmp_path / "kept"))
    assert ran[3:] == CELLS[2:]
    assert [cell for cell, _ in found] == CELLS
    assert found[1][1] == {"seed": 1, "value": 1.1}
    assert not (tmp_path / "kept").exists()  # it is finished: the next time is a new one


def test_another_comparison_begins_anew(ran: list[Cell], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        list(run_kept(CELLS, 1, print, tmp_path))
    other = [replace(cell, problems=7) for cell in CELLS]
    list(run_kept(other, 1, print, tmp_path))
    assert ran[3:] == other


def test_without_a_folder_nothing_is_kept(ran: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    list(run_kept(CELLS[:2], 1, print, None))
    assert list(tmp_path.iterdir()) == []


def test_a_cell_rests_on_the_files_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("import helper\n")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a")
    (tmp_path / "prompts").mkdir()
    settings = {"rollout.prompts": f"{tmp_path}/prompts", "propose.n": 4}
    cell = names_in(replace(ONE, task=f"texts:{tmp_path}/task.py:{tmp_path}/texts", settings=settings))
    before = ground(cell)
    assert ground(cell) == before
    (tmp_path / "task.py").write_text("import helper\n")  # the same again, later
    (tmp_path / "other.py").write_text("nobody asks for it\n")
    assert ground(cell) == before
    for name in ("texts/a.txt", "helper.py", "task.py", "prompts/diff.md"):
        (tmp_path / name).write_text("longer than before\n")
        assert ground(cell) != before
        before = ground(cell)
    assert ground(names_in(ONE)) == ground(names_in(replace(ONE, seed=3)))


@pytest.mark.slow
def test_an_interrupt_ends_it_soon_and_it_is_carried_on(tmp_path: Path) -> None:
    how = ["--task=countdown", "--seeds=2", "--problems=60", "--budget=3 steps", "--jobs=1", "--skip-audit"]
    command = [sys.executable, "-m", "evolvent", "compare", "grpo", "no-change", *how]
    first = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert first.stderr is not None
    line = next(line for line in first.stderr if "1/4 cells" in line)
    begun = time.monotonic()
    os.killpg(first.pid, signal.SIGINT)
    rest = first.stderr.read()
    assert first.wait(60) == 130, line + rest
    assert time.monotonic() - begun < 30
    assert "1 of 4 cells are kept" in " ".join(rest.split())
    assert "Traceback" not in rest
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=500)
    assert "1 of 4 cells are there from before" in again.stderr
    assert "3/3 cells" in again.stderr
