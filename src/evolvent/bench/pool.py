"""Cells over processes, one thread each, with progress; a cell whose process dies is run again once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from evolvent.bench.cell import Cell, run_cell
from evolvent.bench.search_cell import SearchCell, run_search
from evolvent.core.errors import UserError

AnyCell = Cell | SearchCell


def begin_worker() -> None:
    """One thread, no interrupts of its own, and an end with the process that gave it work, however that one ends."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """An interrupt that comes within is held back until the end, and by a process that begins until it is ready."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _run(cell: AnyCell) -> dict[str, Any]:
    return run_search(cell) if isinstance(cell, SearchCell) else run_cell(cell)


def run_cells(
    cells: Sequence[AnyCell], jobs: int, say: Callable[[str], None] = lambda line: None
) -> Iterator[tuple[AnyCell, dict[str, Any]]]:
    """Results as they finish. Results do not depend on `jobs`: every cell runs on one thread of its own process."""
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    waiting, done, begun, retried = list(cells), 0, time.perf_counter(), set[int]()
    while waiting:
        with ProcessPoolExecutor(min(jobs, len(waiting)), mp_context=context, initializer=begin_worker) as pool:
            running: dict[Future[dict[str, Any]], AnyCell] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < jobs:
                        cell = waiting.pop(0)
                        with uninterrupted():
                            running[pool.submit(_run, cell)] = cell
                    finished, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in finished:
                        cell = running[future]
                        result = future.result()
                        del running[future]
                        done += 1
                        yield cell, result  # first: what has been told of is kept
                        spent = time.perf_counter() - begun
                        left = spent / done * (len(cells) - done)
                        say(f"{done}/{len(cells)} cells: {cell.arm}, seed {cell.seed}; {left / 60:.1f} minutes left")
            except BrokenProcessPool:
                lost = list(running.values())
                for cell in lost:
                    if id(cell) in retried:
                        raise UserError(
                            f"the process of cell {cell.arm}/{cell.seed} died twice; is the machine out of memory?"
                        ) from None
                    retried.add(id(cell))
                waiting = lost + waiting
            except BaseException:  # an interrupt: whoever waits for the workers would wait for whole cells
                for worker in set(multiprocessing.active_children()) - others:
                    worker.kill()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
