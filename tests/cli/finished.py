"""Stores with small finished runs, made once a test process; tests that change one copy it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tests.run.lives import live
from tests.run.test_resume import GATED, command


@cache
def store_with_runs() -> Path:
    """`run` adds two digits; `other` calls the calculator, under a gate that refuses."""
    folder = Path(tempfile.mkdtemp(prefix="evolvent-finished-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    store = folder / "runs"
    assert live(command(store, steps=6)).code == 0
    other = [
        word if word != "run" or place == 0 else "other"
        for place, word in enumerate(command(store, "calc:1x1", 8, GATED))
    ]
    assert live(other).code == 0
    return store


def copy_of_runs(to: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(store_with_runs(), to / "runs"))
