"""The map of an archive, against places that are computed by hand."""

from __future__ import annotations

import re
from pathlib import Path

from evolvent.lineage.archive_map import archive_map, cells_of
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.candidate import PROGRAM, Candidate, candidate_of
from evolvent.tasks.evaluation import Evaluation


def candidate(uid: int, text: str, value: float | None) -> Candidate:
    return Candidate(uid, {PROGRAM: text}, Evaluation(value))


def test_cells_have_their_best() -> None:
    short, long = "a = 1\n", "a = 1\n" + "b = 2\n" * 20
    cells = cells_of(
        [candidate(0, short, 1.0), candidate(1, short, 3.0), candidate(2, short, 3.0), candidate(3, long, 2.0)]
    )
    assert [(c.column, c.best.uid, c.count) for c in cells] == [(0, 1, 3), (9, 3, 1)]


def test_the_report_of_a_search_has_a_map(tmp_path: Path) -> None:
    spec = RunSpec("random-search", "program:landscape", "none", "60 evaluations", seed=1)
    result = begin(spec, tmp_path / "run", logs=("jsonl",))
    drawn = str(archive_map(result.view))
    valid = [c for c in map(candidate_of, result.view.candidates.values()) if c.valid]
    tips = re.findall(r"candidate (\d+), the best of (\d+) here", drawn)
    assert sum(int(count) for _, count in tips) == len(valid)
    assert str(max(valid, key=lambda c: (c.value, -c.uid)).uid) in {uid for uid, _ in tips}
    assert drawn.count('fill-opacity="1.00"') == 1
    assert "length of the program" in drawn
    assert "<a " not in drawn
    best = max(valid, key=lambda c: (c.value, -c.uid)).uid
    assert re.findall(r'<a href="#way-(\d+)">', str(archive_map(result.view, {best}))) == [str(best)]


def test_a_run_without_candidates_has_none(tmp_path: Path) -> None:
    spec = RunSpec("random-search", "program:landscape", "none", "1 evaluations", seed=1)
    assert archive_map(begin(spec, tmp_path / "run", logs=("jsonl",)).view) == ""
