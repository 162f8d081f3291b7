"""What takes a while outside this process, begun before it is waited for: a search is to evaluate soon."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Sandbox, available


def find_sandbox(task: str) -> None:
    """Try which sandbox works, while this process imports what it needs. What is wrong shows when one is asked for."""
    if task.startswith("program:"):
        _beside(available)


def start_sandbox(task: object) -> None:
    """Start the sandbox that a task of programs has, while the run is written down."""
    sandbox = getattr(task, "__dict__", {}).get("sandbox")  # no property: that would make one
    if isinstance(sandbox, Sandbox):
        _beside(sandbox.describe)


def _beside(work: Callable[[], str]) -> None:
    def tried() -> None:
        with suppress(UserError):
            work()

    threading.Thread(target=tried, daemon=True).start()
