"""What is begun ahead is there sooner; what is wrong with it shows only where it is asked for."""

from __future__ import annotations

import threading
import time

import pytest

from evolvent.core.errors import UserError
from evolvent.run import ahead
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task


def test_the_sandbox_of_a_search_starts(sandboxed: str) -> None:
    task = load_task("program:circle-packing:4")
    assert isinstance(task, ProgramTask)
    ahead.start_sandbox(task)  # nobody has asked for it so far
    assert "sandbox" not in vars(task)
    with task.sandbox as sandbox:
        ahead.start_sandbox(task)
        until = time.monotonic() + 30
        while sandbox.pid is None and time.monotonic() < until:
            time.sleep(0.01)
        assert sandbox.pid is not None
        task.evaluate([task.seed_program])
        assert sandbox.starts == 1


@pytest.mark.parametrize(("task", "wanted"), [("program:circle-packing:4", 1), ("countdown", 0)])
def test_one_that_does_not_work_is_no_error_yet(monkeypatch: pytest.MonkeyPatch, task: str, wanted: int) -> None:
    asked, failed = [], []

    def nothing() -> str:
        asked.append(threading.current_thread())
        raise UserError("nothing works here")

    monkeypatch.setattr(ahead, "available", nothing)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = threading.enumerate()
    ahead.find_sandbox(task)
    for thread in threading.enumerate():
        if thread not in before:
            thread.join(5)
    assert len(asked) == wanted
    assert not failed
