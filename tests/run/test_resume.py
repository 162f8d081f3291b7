"""A run that is killed at random points and resumed ends with the same bits as one that was left alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy
from tests.run.lives import KILLED, live, record, same, view_of
from tests.small_model import small_model

from evolvent.lineage import pack
from evolvent.run import pace

SETTINGS = {"learn.lr": 1e-3, "propose.problems": 8, "propose.n": 4, "gate.every": 3, "gate.problems": 32}
GATED = {"gate": "ScoreGate", **SETTINGS, "gate.every": 2, "gate.tolerance": 0.0, "gate.errors": 0.0, "learn.lr": 3e-3}


def command(store: Path, task: str = "arith:1x1", steps: int = 8, settings: Mapping[str, Any] = SETTINGS) -> list[str]:
    """A small run; `--threads 1` so that sums do not depend on the machine."""
    words = [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]
    fixed = ["--name", "run", "--store", str(store), "--threads", "1", "--skip-audit", "--no-report"]
    return ["run", "grpo", "-t", task, "-m", small_model(), "-b", f"{steps} steps", *fixed, *words]


def again(store: Path) -> list[str]:
    return ["resume", "run", "--store", str(store), "--no-report"]


def to_the_end(store: Path, first: list[str], delays: list[float]) -> int:
    """Run, kill after each delay in turn, and resume until the run is done; how often it was killed."""
    killed, delays = 0, list(delays)
    for _ in range(200):
        begun = (store / "store.db").is_file() and "run" in _names(store)
        if begun and view_of(store, "run").status == "finished":
            return killed
        code = live(again(store) if begun else first, delays.pop(0) if delays else None).code
        assert code in (0, KILLED), f"exit code {code}"
        killed += code == KILLED
    raise AssertionError("the run does not come to an end")


def _names(store: Path) -> list[str]:
    from evolvent.lineage.runs import run_names
    from evolvent.lineage.store import Store

    with closing(Store(store)) as opened:
        return run_names(opened)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A run that was left alone, and how long it took."""
    store = tmp_path_factory.mktemp("whole") / "runs"
    life = live(command(store))
    assert life.code == 0
    return store, life.seconds


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_random_points_it_ends_with_the_same_bits(
    tmp_path: Path, whole: tuple[Path, float], seed: int
) -> None:
    alone, seconds = whole
    rng, killed = random.Random(seed), 0
    for share in (1.0, 0.5, 0.25, 0.1):  # `seconds` says little where the machine was busy then and is not now
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        delays = [rng.uniform(0.0, share * seconds) for _ in range(4)]
        killed = to_the_end(tmp_path / "runs", command(tmp_path / "runs"), delays)
        if killed:
            break
    assert killed > 0
    assert same(record(alone, "run"), record(tmp_path / "runs", "run")) == []
    lines = [json.loads(line) for line in (tmp_path / "runs/run/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(8))


def die_in_checkpoint(number: int, share: float) -> None:
    """Make this process die while it writes its `number`-th checkpoint, when `share` of the bytes are written."""
    written = 0

    def torn(arrays, path, metadata=None):  # type: ignore[no-untyped-def]
        nonlocal written
        written += 1
        if written < number:
            return safetensors.numpy.save_file(arrays, path, metadata=metadata)
        data = safetensors.numpy.save(arrays, metadata=metadata)
        Path(path).write_bytes(data[: int(share * len(data))])
        return os.kill(os.getpid(), signal.SIGKILL)

    pack.save_file = torn
    pace.SHARE = 1.0  # a checkpoint every step


@pytest.mark.parametrize(
    ("number", "share"),
    [(1, 0.5), (3, 0.0), *(pytest.param(*late, marks=pytest.mark.slow) for late in ((4, 0.5), (5, 1.0)))],
)
def test_killed_while_it_writes_the_checkpoint(
    tmp_path: Path, whole: tuple[Path, float], number: int, share: float
) -> None:
    store = tmp_path / "runs"
    assert live(command(store), before=lambda: die_in_checkpoint(number, share)).code == KILLED
    assert (store / "run/checkpoint.part").is_file()  # torn, and harmless
    assert view_of(store, "run").status == "interrupted"
    assert live(again(store)).code == 0
    assert same(record(whole[0], "run"), record(store, "run")) == []
    assert not (store / "run/checkpoint.part").exists()


@pytest.mark.slow
def test_several_turns_and_a_gate_that_refuses(tmp_path: Path) -> None:
    life = live(command(tmp_path / "a", "calc:1x1", 8, GATED))
    assert life.code == 0
    alone = record(tmp_path / "a", "run")
    assert "refused" in [v[-1] for v in alone["versions"]]
    delays = [random.Random(5).uniform(0.2, 0.8) * life.seconds for _ in range(3)]
    assert to_the_end(tmp_path / "b", command(tmp_path / "b", "calc:1x1", 8, GATED), delays) > 0
    assert same(alone, record(tmp_path / "b", "run")) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killed_many_times_as_a_program_of_its_own(tmp_path: Path, seed: int) -> None:
    """As a user would: `evolvent run` in a new interpreter, killed up to ten times at any point."""
    rng = random.Random(seed)
    task, steps, settings = [("arith:1x1", 12, SETTINGS), ("calc:1x1", 8, GATED)][seed]
    program = [sys.executable, "-m", "evolvent.cli.main"]
    begun = time.monotonic()
    subprocess.run([*program, *command(tmp_path / "a", task, steps, settings)], check=True, capture_output=True)
    seconds = time.monotonic() - begun
    for life in range(40):
        started = (tmp_path / "b/store.db").is_file() and "run" in _names(tmp_path / "b")
        if started and view_of(tmp_path / "b", "run").status == "finished":
            break
        args = again(tmp_path / "b") if started else command(tmp_path / "b", task, steps, settings)
        process = subprocess.Popen([*program, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            # longer and longer, so that it ends on a machine that has become busy since
            _, errors = process.communicate(timeout=rng.uniform(0.3, 1.0) * seconds * (1 + life / 4))
            assert process.returncode == 0, errors.decode()
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
    assert view_of(tmp_path / "b", "run").status == "finished"
    assert same(record(tmp_path / "a", "run"), record(tmp_path / "b", "run")) == []
