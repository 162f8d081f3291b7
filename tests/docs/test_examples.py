"""The examples run as their table says, on small budgets."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evolvent.models.load import seed_models

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "examples" / "README.md").read_text()
COMMANDS = re.findall(r"`((?:evolvent|python) [^`]+)` \|$", TABLE, re.MULTILINE)
QUICK = ("--no-final", "--no-report", "--threads", "1")


def test_the_table_has_every_example() -> None:
    files = {p.relative_to(ROOT / "examples").as_posix() for p in (ROOT / "examples").rglob("*") if p.is_file()}
    wanted = {f for f in files if not f.endswith((".md", ".pyc"))}
    assert wanted == set(re.findall(r"\]\(([^)]+)\)", TABLE))
    assert len(COMMANDS) == len([line for line in TABLE.splitlines() if line.startswith("| [")])


@pytest.mark.slow
@pytest.mark.skipif("tiny-0" not in seed_models(), reason="the seed models are not there yet")
@pytest.mark.parametrize("command", COMMANDS)
def test_an_example_runs(command: str, tmp_path: Path) -> None:
    words = shlex.split(command)
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in words]
    words = [re.sub(r"(?<=[:])(?=examples/)", f"{ROOT}/", word) for word in words]
    program = [sys.executable] if words[0] == "python" else [sys.executable, "-m", "evolvent.cli.main"]
    more = QUICK if words[:2] == ["evolvent", "run"] else ()
    done = subprocess.run(
        [*program, *words[1:], *more],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()
