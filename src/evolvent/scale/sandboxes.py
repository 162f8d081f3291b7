"""Sandboxes in the workers of a Ray cluster, to be used like the one on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import SLACK, Call, Limits, Outcome, Sandbox, lost
from evolvent.guard.worker import packed
from evolvent.scale.cluster import LOCAL
from evolvent.scale.pool import Lost, Pool
from evolvent.tasks.base import Task
from evolvent.tasks.program import UNSAFE, ProgramTask


class Boxed:
    """What a worker holds: a sandbox for one call at a time, warm."""

    def __init__(self, preload: Sequence[str], folders: Sequence[Path], unsafe: bool, kind: str | None) -> None:
        self.sandbox = Sandbox(1, preload, folders, unsafe, kind=kind)
        self.sandbox.describe()

    def run(self, call: Call, limits: Limits) -> Outcome:
        """The outcome of a call. Raises `Lost` where its sandbox lost it."""
        [outcome] = self.sandbox.run([call], limits)
        if outcome.status == "lost":
            raise Lost(outcome.error)
        return outcome

    def describe(self) -> str:
        """What protects the worker's machine."""
        return self.sandbox.describe()


class Sandboxes:
    """Runs calls in the sandboxes of `workers` workers; see `guard.sandbox.Sandbox`, whose interface this is.

    address  see `scale.cluster`
    kind     of sandbox, on every machine, instead of the first that works there

    Outcomes, and their order, are those of a sandbox on this machine; a call that was lost twice has the status `lost`.
    `folders` have to be at the same paths on all machines.
    """

    def __init__(
        self,
        workers: int = 1,
        preload: Sequence[str] = ("numpy",),
        folders: Sequence[Path] = (),
        unsafe: bool = False,
        *,
        kind: str | None = None,
        address: str = LOCAL,
    ) -> None:
        if kind == "none" and not unsafe:
            raise UserError("nothing runs without a sandbox unless --unsafe-no-sandbox says so")
        settings = {"preload": tuple(preload), "folders": tuple(folders), "unsafe": unsafe, "kind": kind}
        self.workers = workers
        self.pool = Pool(Boxed, settings, workers, address)

    def describe(self) -> str:
        """One sentence on what protects; starts a worker."""
        [found] = self.pool.map("describe", [()])
        if isinstance(found, Lost):
            raise UserError(f"workers at {self.pool.address} end as soon as they have started: {found}")
        return f"in {self.workers} workers of Ray, {found}"

    @property
    def pid(self) -> None:
        """No process of this machine leads all of them."""
        return

    def __enter__(self) -> Sandboxes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers with everything in them. The next run starts others."""
        self.pool.close()

    def run(self, calls: Sequence[Call], limits: Limits | None = None) -> list[Outcome]:
        """The outcomes of the calls, in their order. Raises `UserError` where calls are no JSON or nothing starts."""
        wanted = limits or Limits()
        try:
            for call in calls:
                packed({"call": call.data()})
        except (TypeError, ValueError, RecursionError) as reason:
            raise UserError(f"arguments of a call have to be JSON data ({reason})") from None
        found = self.pool.map("run", [(call, wanted) for call in calls], wanted.seconds + 2 * SLACK)
        return [lost(str(outcome)) if isinstance(outcome, Lost) else outcome for outcome in found]


def elsewhere(task: Task, pool: str) -> None:
    """Have a task's programs evaluated in a pool, `ray` or `ray:ADDRESS`, instead of on this machine.

    `UserError` for a task that runs no programs, and where there is no such pool.
    """
    name, _, address = pool.partition(":")
    if name != "ray":
        raise UserError(f"there is no pool `{pool}`; use ray, ray:auto or ray:HOST:PORT")
    here = task.sandbox if isinstance(task, ProgramTask) else None
    if here is None:
        raise UserError(f"--pool is for programs that are run, and {task.name} runs none; leave it out")
    unsafe = os.environ.get(UNSAFE) == "1"
    made = Sandboxes(task.workers, task.world.preload, task.world.folders, unsafe, address=address or LOCAL)
    here.close()
    task.sandbox = made  # its interface is the same
