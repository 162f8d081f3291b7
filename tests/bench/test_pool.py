"""Processes that cells run in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from evolvent.bench.pool import begin_worker

def work(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=begin_worker) as pool:
        pool.submit(work, sys.argv[1]).result()
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def until(condition, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_a_worker_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    parent = subprocess.Popen([sys.executable, program, marks])
    try:
        assert until(lambda: any(marks.iterdir()))
        worker = int(next(marks.iterdir()).name)
        assert alive(worker)
        os.kill(parent.pid, signal.SIGKILL)
        assert until(lambda: not alive(worker), 10)
    finally:
        parent.kill()
        parent.wait()
