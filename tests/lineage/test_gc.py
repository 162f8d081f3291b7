"""Freeing space removes what nothing needs, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.cli.finished import copy_of_runs
from tests.run.lives import live, view_of
from tests.run.test_resume import again

from evolvent.core.errors import UserError
from evolvent.lineage.gc import sweep
from evolvent.lineage.rollback import go_back
from evolvent.lineage.store import Store
from evolvent.lineage.versions import load_version

OLD = (0, 0)  # access and change time: long ago


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(copy_of_runs(tmp_path))


def stored(store: Store, run: str) -> dict[int, bool]:
    """Version -> whether its weights are there."""
    return {v.number: store.objects.has(v.hash) for v in view_of(store.root, run).versions if v.hash}


def test_starts_heads_and_measured_versions_stay(store: Store) -> None:
    before = {run: stored(store, run) for run in ("run", "other")}
    assert all(all(found.values()) for found in before.values())
    view = view_of(store.root, "run")
    middle = [v.number for v in view.versions if v.number not in (0, view.head)]
    assert middle
    planned = sweep(store, 0, dry_run=True)
    assert planned.versions["run"] == middle
    assert all(stored(store, "run").values())  # nothing happened yet
    done = sweep(store, 0)
    assert (done.versions, done.freed, done.kept) == (planned.versions, planned.freed, planned.kept)
    assert stored(store, "run") == {n: n not in middle for n in before["run"]}
    assert sweep(store, 0).freed == 0
    with pytest.raises(UserError, match="were removed from the store"):
        go_back(store, "run", middle[0])
    with pytest.raises(UserError, match=r"were removed from the store .*; choose one of 0, "):
        load_version(store, "run", middle[0])
    load_version(store, "run")
    load_version(store, "run", 0)


def test_the_last_versions_stay_as_asked(store: Store) -> None:
    count = len(stored(store, "run"))
    assert sweep(store, count).freed == 0
    assert sweep(store, 1).versions.get("run") is not None


def test_a_swept_run_can_be_carried_on(store: Store) -> None:
    sweep(store, 0)
    assert live([*again(store.root), "--budget", "7 steps"]).code == 0


def test_what_dead_processes_left_goes_and_what_live_ones_write_stays(store: Store) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    folder = store.root / "objects/ab"
    folder.mkdir(exist_ok=True)
    (folder / f"cd.{dead.pid}.part").write_bytes(b"x" * 10)
    (folder / f"ef.{os.getpid()}.part").write_bytes(b"x")
    (store.root / "run/checkpoint.part").write_bytes(b"x" * 100)
    orphan, young = folder / "c0ffee", folder / "c0ffef"
    orphan.write_bytes(b"x" * 1000)
    young.write_bytes(b"x")
    os.utime(orphan, OLD)
    (store.root / "never").mkdir()
    os.utime(store.root / "never", OLD)
    (store.root / "notes").mkdir()
    (store.root / "notes/mine.txt").write_text("mine")
    done = sweep(store, 99)
    assert (done.unnamed, done.temporary, done.freed) == (1, 3, 1110)
    assert not orphan.exists()
    assert young.exists()
    assert not (store.root / "never").exists()
    assert (store.root / "notes/mine.txt").exists()
    assert (folder / f"ef.{os.getpid()}.part").exists()
    assert (store.root / "run/checkpoint.safetensors").exists()
