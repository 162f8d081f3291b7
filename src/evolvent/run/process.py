"""One process at a time carries a run out, and how it is stopped."""

from __future__ import annotations

import fcntl
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from evolvent.core.errors import UserError


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """Hold a run's folder for this process; `UserError` if another one has it."""
    lock: IO[str] = (folder / "lock").open("a")
    try:
        for _ in range(20):  # whoever lists runs holds the lock for an instant
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.02)
        else:
            raise UserError(f"run {name} is under way in another process; wait for it, or stop it first")
        yield
    finally:
        lock.close()


@contextmanager
def interruptible(stopping: threading.Event, say: Callable[[str], None]) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) sets `stopping`: the step is finished and saved; the second interrupts at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        say("finishing this step, then saving (press Ctrl-C again to stop at once)")

    before = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
