"""Processes that run the command line and are killed: for tests of what survives."""

from __future__ import annotations

import gc
import io
import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import scipy.stats  # noqa: F401  imported before the fork, so that no life has to
import tensorboard.summary.writer.event_file_writer  # noqa: F401
import torch

from evolvent.cli.main import main
from evolvent.lineage import pack
from evolvent.lineage.runs import RunView, read_run
from evolvent.lineage.store import Store
from evolvent.run import final

KILLED = -signal.SIGKILL


class Life(NamedTuple):
    """How a process ended (`KILLED` if it had to be), and how many seconds of the processor it had."""

    code: int
    seconds: float


def begin(args: list[str], before: Callable[[], None] = lambda: None, said: Path | None = None) -> int:
    """Fork a process that runs the command line; its number. What it prints goes to the file `said`.

    `before` is called in the process first. A fork spares the seconds that importing torch takes. No connection to a
    store may be open meanwhile: the child would count on locks that only its parent holds, and lose what it writes.
    """
    gc.collect()  # engines are cycles; what a test has left behind would be closed at any time
    child = os.fork()
    if child:
        return child
    code = 1
    out = io.StringIO()
    try:
        torch.set_num_threads(1)
        final.TEST_PROBLEMS, final.GATE_PROBLEMS, final.REMEMBERED_PROBLEMS = 30, 12, 6  # the same path, sooner
        before()
        with redirect_stdout(out), redirect_stderr(out):
            main(args)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        out.write(traceback.format_exc())
    finally:
        if said is not None:
            said.write_text(out.getvalue())
        elif code not in (0, 130):
            os.write(2, out.getvalue().encode())
        os._exit(code)


def end(child: int) -> Life:
    """Wait for a process that `begin` made."""
    _, status, usage = os.wait4(child, 0)
    return Life(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)


def live(args: list[str], kill_after: float | None = None, before: Callable[[], None] = lambda: None) -> Life:
    """Run the command line in a forked process; kill it after so many seconds of the processor.

    Time of the processor does not depend on what else the machine is doing.
    """
    child = begin(args, before)
    while kill_after is not None:
        used = int(Path(f"/proc/{child}/schedstat").read_text().split()[0]) / 1e9
        if used >= kill_after:
            os.kill(child, signal.SIGKILL)
            break
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return Life(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
        time.sleep(0.001)
    return end(child)


def record(store: Path, name: str) -> dict[str, Any]:
    """All that a run left, but for what is measured with a clock."""
    view = view_of(store, name)
    return {
        "state": timeless(pack.load(store / name / "checkpoint.safetensors")),
        "steps": timeless(view.steps),
        "versions": [(v.number, v.step, v.parents, v.hash, v.operator, v.evidence, v.verdict) for v in view.versions],
        "head": view.head,
        "measured": (view.measured, view.evaluations, view.samples, timeless(view.evidence_spent)),
        "status": view.status,
    }


def timeless(value: Any) -> Any:
    """Without the entries that hold seconds."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if "seconds" not in str(k) and k != "rollback"}
    return [timeless(v) for v in value] if isinstance(value, list | tuple) else value


def same(a: Any, b: Any, place: str = "") -> list[str]:
    """Places where two records differ, tensors compared bit by bit."""
    if isinstance(a, dict) and isinstance(b, dict):
        odd = [f"{place}.{k}: only in one" for k in a.keys() ^ b.keys()]
        return odd + [d for k in a.keys() & b.keys() for d in same(a[k], b[k], f"{place}.{k}")]
    if isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b, strict=True)) for d in same(x, y, f"{place}[{i}]")]
    if isinstance(a, torch.Tensor):
        return [] if torch.equal(a, b) else [f"{place}: tensors differ"]
    equal = bool((a == b).all()) if hasattr(a, "all") else a == b or (a != a and b != b)
    return [] if equal else [f"{place}: {a!r} and {b!r}"]


def view_of(store: Path, name: str) -> RunView:
    """The run as it stands."""
    with closing(Store(store)) as opened:
        return read_run(opened, name)
