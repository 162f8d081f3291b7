"""What a search says in the end, as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.test_runs import call, data
from tests.search.test_stages import STAGED

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
