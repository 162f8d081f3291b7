"""Workers in processes of a Ray cluster, each of which holds one thing that is costly to make; they share rows of work.

The death of a worker costs only what it was doing. That is done again elsewhere, once; what is lost a second time is
given back as `Lost`, and never as a result.
"""

from __future__ import annotations

import math
import os
import platform
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import evolvent
from evolvent.core.errors import UserError
from evolvent.scale import cluster

STARTUP = 300.0  # seconds in which the first worker has to be there
FAILURES = 3  # workers in a row that end before they have begun
SAME = ("numpy", "scipy")  # packages of which all machines need the same version: results depend on it


class Lost(Exception):
    """What a worker was doing is lost, and nothing is known of it. Things that workers hold may raise it, too."""


class Host:
    """The process of a worker. What it holds is made by `begin`, not at once, so that errors come back whole."""

    def __init__(self, make: Callable[..., Any], settings: Mapping[str, Any]) -> None:
        self.make, self.settings = make, dict(settings)

    def begin(self) -> dict[str, str]:
        """Make what is held; on which machine, and with what versions."""
        self.held = self.make(**self.settings)
        return {**versions(), "machine": platform.node(), "process": str(os.getpid())}

    def do(self, method: str, row: Sequence[Any]) -> Any:
        """What a method of it returns."""
        return getattr(self.held, method)(*row)


def versions() -> dict[str, str]:
    """Of everything that results depend on."""
    found = {"evolvent": evolvent.__version__, "Python": platform.python_version()}
    for name in SAME:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


@dataclass(eq=False)
class Worker:
    """One worker as seen from here. `answer` is what it owes: the end of its start, or of the row `index`."""

    actor: Any
    answer: Any
    since: float = field(default_factory=time.monotonic)
    index: int | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether it could do something."""
        return self.answer is None

    @property
    def starting(self) -> bool:
        """Whether it has not begun yet."""
        return not self.facts


class Pool:
    """Up to `workers` workers, each holding `make(**settings)`, which must be importable where they run.

    address    see `scale.cluster`
    again      how often a row is done again after it was lost
    resources  what Ray sets aside for a worker, as `ray.remote` names it: `num_cpus`, 1 by default, `num_gpus`, ...;
               in a cluster of our own, on this machine alone, nothing is set aside

    Workers start when they are needed, and work begins with the first that is there; one that has died is replaced.
    Safe to use from several threads; calls take turns. `replaced` is how many workers were, `lost` how many rows.
    Raises `UserError` where Ray is not installed or no cluster answers.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        settings: Mapping[str, Any],
        workers: int = 1,
        address: str = cluster.LOCAL,
        *,
        again: int = 1,
        resources: Mapping[str, Any] | None = None,
    ) -> None:
        if workers < 1:
            raise UserError(f"a pool needs at least one worker, got {workers}")
        if again < 0:
            raise UserError(f"what is lost can be done again 0 times or more, not {again} times")
        cluster.load(address)
        cluster.check_address(address)
        self.make, self.settings, self.workers, self.address, self.again = make, settings, workers, address, again
        self.resources = {"num_cpus": 0 if address == cluster.LOCAL else 1, **(resources or {})}
        self.team: list[Worker] = []
        self.replaced = self.lost = 0
        self._failures = 0
        self._lock = threading.Lock()
        self._ray: Any = None

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers. The next call starts others."""
        with self._lock:
            for worker in list(self.team):
                self._end(worker)
            self._ray = None
            cluster.release(self)

    def map(self, method: str, rows: Sequence[Sequence[Any]], seconds: float = math.inf) -> list[Any]:
        """What the method returns for each row of arguments, in the order of the rows; a `Lost` for what was lost.

        A worker that has not answered after `seconds` is taken for dead. What a method raises is raised here, as is
        `UserError` where no worker can be started; then, as with an interrupt, workers that are busy are ended.
        """
        with self._lock:
            if not rows:
                return []
            self._ray = cluster.connect(self, self.address, self.workers)
            results: dict[int, Any] = {}
            waiting, losses = deque(range(len(rows))), [0] * len(rows)
            try:
                while len(results) < len(rows):
                    self._staff(min(self.workers, len(rows) - len(results)))
                    for worker in [w for w in self.team if w.idle][: len(waiting)]:
                        worker.index, worker.since = waiting.popleft(), time.monotonic()
                        worker.answer = worker.actor.do.remote(method, tuple(rows[worker.index]))
                    for worker, value in self._answers(seconds):
                        index = worker.index
                        if index is None:
                            continue
                        worker.index = None
                        if isinstance(value, Lost) and losses[index] < self.again:
                            losses[index] += 1
                            waiting.appendleft(index)
                            continue
                        self.lost += isinstance(value, Lost)
                        results[index] = value
            finally:
                for worker in [w for w in self.team if w.index is not None]:
                    self._end(worker)
            return [results[index] for index in range(len(rows))]

    def _staff(self, wanted: int) -> None:
        """Start what is missing of so many workers."""
        for _ in range(wanted - len(self.team)):
            actor = self._ray.remote(**self.resources)(Host).remote(self.make, self.settings)
            self.team.append(Worker(actor, actor.begin.remote()))

    def _answers(self, seconds: float) -> list[tuple[Worker, Any]]:
        """Wait until something happens: who answered what, or was lost."""
        owed = {w.answer: w for w in self.team if w.answer is not None}
        ends = [w.since + seconds for w in owed.values() if w.index is not None]
        if all(w.starting for w in self.team):
            ends.append(max(w.since for w in self.team) + STARTUP)
        rest = min(ends, default=math.inf) - time.monotonic()
        ready, _ = self._ray.wait(list(owed), timeout=None if rest == math.inf else max(rest, 0.0))
        found = [(owed[answer], self._read(owed[answer])) for answer in ready]
        now = time.monotonic()
        for worker in [
            w for w in self.team if w.index is not None and w.answer is not None and now > w.since + seconds
        ]:
            self._end(worker)
            found.append((worker, Lost(f"its worker did not answer for {seconds:g} s")))
            self.replaced += 1
        if not ready and self.team and all(w.starting and now > w.since + STARTUP for w in self.team):
            raise UserError(
                f"no worker has started at {self.address} within {STARTUP:g} s; what is free there: "
                f"{self._ray.available_resources().get('CPU', 0):g} processors (`ray status` says more)"
            )
        return found

    def _read(self, worker: Worker) -> Any:
        """What a worker has answered; one that is gone is taken off the team."""
        errors = self._ray.exceptions
        try:
            value, worker.answer = self._ray.get(worker.answer), None
        except errors.RayTaskError as reason:
            if not isinstance(reason.cause, Lost):
                self._end(worker)
                raise reason.cause from None
            value = Lost(str(reason.cause))
        except errors.RayError as reason:
            value = Lost(f"its worker died ({' '.join(str(reason).split())[:200]})")
        if isinstance(value, Lost):
            self._end(worker)
            self.replaced += 1
            self._failures += worker.starting
            if self._failures >= FAILURES:
                self._failures = 0
                raise UserError(f"workers at {self.address} end as soon as they have started: {value}")
        elif worker.starting:
            self._failures = 0
            self._welcome(worker, value)
        return value

    def _welcome(self, worker: Worker, facts: Mapping[str, str]) -> None:
        worker.facts = facts
        for name, here in versions().items():
            if facts[name] != here:
                self._end(worker)
                raise UserError(
                    f"{name} is {facts[name]} on {facts['machine']} and {here} here; results would depend on where "
                    "they are computed: install the same version"
                )

    def _end(self, worker: Worker) -> None:
        self.team.remove(worker)
        self._ray.kill(worker.actor)
