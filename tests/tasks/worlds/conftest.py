"""Worlds of programs with their sandbox open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task


@pytest.fixture(scope="module")
def task(request: pytest.FixtureRequest, sandboxed: str) -> Iterator[ProgramTask]:
    """The task that a module of tests names as its `TASK`."""
    made = load_task(request.module.TASK)
    assert isinstance(made, ProgramTask)
    with made.sandbox:
        yield made
