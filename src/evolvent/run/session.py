"""Carry a run out: steps, events, checkpoints, versions, the final table; and carry it on after it was killed."""

from __future__ import annotations

import fcntl
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import torch

from evolvent.bench.evaluate import Subject
from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget, Ledger
from evolvent.core.step import Step
from evolvent.lineage import pack
from evolvent.lineage.runs import RunView, free_name, read_run
from evolvent.lineage.store import Store
from evolvent.models.checkpoint import write_weights
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.environment import environment
from evolvent.run.final import measure
from evolvent.run.log import DEFAULT, Log, open_logs
from evolvent.run.spec import RunSpec

SMALL = 2_000_000  # parameters; up to here a checkpoint is written every step
SHARE = 0.05  # of the time, at most, that checkpoints of larger models may take


@dataclass
class Progress:
    """What a display is told after each step."""

    run: str
    t: int
    share: float  # of the budget that is used
    metrics: Mapping[str, float]
    spent: Mapping[str, float]
    seconds: float


@dataclass
class Result:
    """A finished (or interrupted) run."""

    name: str
    spec: RunSpec
    assembled: Assembled
    view: RunView
    folder: Path
    interrupted: bool = False
    reached: bool = False

    @property
    def policy(self) -> Any:
        """The evolved model."""
        return self.assembled.policy

    @property
    def ledger(self) -> Ledger:
        """What was spent."""
        return self.assembled.system.ledger

    def curve(self, metric: str = "outcome", role: str = "") -> list[tuple[int, float]]:
        """(step, value) of a metric."""
        return self.view.curve(metric, role)

    @property
    def evaluations(self) -> dict[str, Any]:
        """The test split's figures, `start` and `evolved`."""
        return self.view.evaluations


@dataclass
class Session:
    """One run under way. `watch` is called after each step, `say` with lines worth telling."""

    store: Store
    spec: RunSpec
    name: str
    logs: tuple[str, ...] = DEFAULT
    target: float | None = None
    final: bool = True
    watch: Callable[[Progress], None] = lambda progress: None
    say: Callable[[str], None] = lambda line: None
    command: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.store.folder(self.name)

    @property
    def checkpoint(self) -> Path:
        """Where the state after the last step is."""
        return self.folder / "checkpoint.safetensors"

    def start(self, assembled: Assembled) -> Result:
        """Begin a new run; `UserError` if the name is taken."""
        if self.folder.exists():
            raise UserError(
                f"there is a run in {self.folder} already; choose another --name, or `evolvent resume {self.name}`"
            )
        self.folder.mkdir(parents=True)
        with self._locked():
            self.store.add(
                self.name,
                "created",
                {"spec": self.spec.as_dict(), "environment": environment(), "command": self.command},
            )
            self._version(assembled, 0, "start", {}, [])
            self._measure(assembled, "start")
            pack.save(self.checkpoint, assembled.system.state_dict())
            return self._loop(assembled, {})

    def resume(self) -> Result:
        """Carry on from the last checkpoint, or from the version that a rollback went to."""
        with self._locked():
            view = read_run(self.store, self.name)
            if not self.checkpoint.is_file():
                raise UserError(f"run {self.name} ended before its first checkpoint; begin it again under another name")
            assembled = assemble(self.spec)
            system = assembled.system
            system.load_state_dict(pack.load(self.checkpoint))
            head = self._after_rollback(view, assembled)
            self.store.add(self.name, "resumed", {"step": system.t, "head": head})
            if "start" not in view.evaluations:
                self._measure(assemble(self.spec), "start")
            before = {t: s["roles"] for t, s in view.steps.items() if t < system.t}
            return self._loop(assembled, {t: _flat(roles) for t, roles in before.items()})

    def _after_rollback(self, view: RunView, assembled: Assembled) -> int | None:
        """Load the head's weights if the user rolled back since the last step; optimizers start afresh."""
        latest = max((v.number for v in view.versions if v.verdict in ("start", "accepted")), default=None)
        if view.head == latest or view.head is None:
            return view.head
        weights = version_weights(self.store, view, view.head)
        if weights is None:
            raise UserError(f"version {view.head} of {self.name} has no stored weights; roll back to another")
        assembled.policy.set_weights(weights)
        assembled.policy.bump()
        for role in assembled.system.roles.values():
            for part in role.parts.values():
                if hasattr(part, "optimizer"):
                    part.optimizer.state.clear()
        return view.head

    def _loop(self, assembled: Assembled, before: Mapping[int, Mapping[str, float]]) -> Result:
        system, budget = assembled.system, Budget.parse(self.spec.budget)
        result = Result(self.name, self.spec, assembled, RunView(self.name), self.folder)
        with ExitStack() as stack:
            logs = open_logs(self.logs, self.folder, self.name, before)
            for log in logs:
                stack.callback(log.close)
            stack.enter_context(self._interruptible())
            saving = Pace(assembled.policy.size)
            begun = time.perf_counter()
            try:
                for steps in system.run(budget):
                    self._record(assembled, steps, logs, saving)
                    metrics = _flat({s.role.name: s.metrics for s in steps})
                    spent = system.ledger.spent["method"]
                    share = min(1.0, system.ledger.of(budget.unit) / budget.amount)
                    self.watch(Progress(self.name, system.t, share, metrics, spent, time.perf_counter() - begun))
                    accuracy = metrics.get("gate/accuracy")
                    if self.target is not None and accuracy is not None and accuracy >= self.target:
                        result.reached = True
                        break
                    if self.stopping.is_set():
                        result.interrupted = True
                        break
            except UserError as reason:
                self._save(assembled)
                self.store.add(self.name, "failed", {"errors": system.errors, "note": str(reason)})
                raise
            self._save(assembled)
        if result.interrupted:
            self.store.add(
                self.name, "interrupted", {"errors": system.errors, "note": f"stopped after step {system.t}"}
            )
        else:
            self._finish(assembled)
        result.view = read_run(self.store, self.name)
        return result

    def _finish(self, assembled: Assembled) -> None:
        view = read_run(self.store, self.name)
        step = assembled.system.t
        accepted = [v for v in view.versions if v.verdict in ("start", "accepted")]
        if not accepted or accepted[-1].step != step:
            self._version(assembled, step, "accepted", {}, [v.number for v in accepted[-1:]])
        self._measure(assembled, "evolved")
        self.store.add(self.name, "finished", {"errors": assembled.system.errors})

    def _record(self, assembled: Assembled, steps: list[Step], logs: list[Log], saving: Pace) -> None:
        system = assembled.system
        t = system.t - 1
        roles = {s.role.name: s.metrics for s in steps}
        events: list[tuple[str, Mapping[str, Any]]] = [
            ("step", {"t": t, "roles": roles, "spent": system.ledger.state_dict()})
        ]
        for s in steps:
            if "gate/accuracy" in s.metrics:
                verdict = "accepted" if s.metrics.get("gate/accepted", 1.0) else "refused"
                events.append(("version", self._version_data(assembled, t + 1, verdict, s)))
        self.store.add_many(self.name, events)
        metrics = _flat(roles)
        for log in logs:
            log.step(t, metrics)
        if saving.due():
            with saving:
                self._save(assembled)

    def _save(self, assembled: Assembled) -> None:
        try:
            pack.save(self.checkpoint, assembled.system.state_dict())
        except OSError as reason:
            raise UserError(
                f"cannot write the checkpoint of {self.name} ({reason.strerror}); the one before is still whole: free some "
                f"space (`evolvent gc` helps), then `evolvent resume {self.name}`"
            ) from None

    def _version_data(self, assembled: Assembled, step: int, verdict: str, s: Step | None = None) -> dict[str, Any]:
        evidence = {k: v for k, v in (s.metrics if s else {}).items() if k.startswith("gate/")}
        view_parents = [self._last_version] if self._last_version is not None else []
        number = assembled.policy.version
        data = {
            "number": number,
            "step": step,
            "parents": view_parents,
            "hash": self._store_weights(assembled) if verdict != "refused" else None,
            "operator": assembled.plan.name,
            "evidence": evidence,
            "verdict": verdict,
        }
        if verdict != "refused":
            self._last_version = number
        return data

    _last_version: int | None = field(default=None, init=False)

    def _version(
        self, assembled: Assembled, step: int, verdict: str, evidence: Mapping[str, float], parents: list[int]
    ) -> None:
        if parents:
            self._last_version = parents[-1]
        data = self._version_data(assembled, step, verdict)
        self.store.add(self.name, "version", data)

    def _store_weights(self, assembled: Assembled) -> str:
        part = self.folder / "version.safetensors"
        write_weights(part, assembled.policy.weights())
        name = self.store.objects.put(part)
        part.unlink()
        return name

    def _measure(self, assembled: Assembled, name: str) -> None:
        """Evaluate on the test split, once; its spending goes to the account `evidence`."""
        if not self.final:
            return
        self.say(f"measuring the {'start' if name == 'start' else 'evolved'} model on the test split")
        role = next(iter(assembled.system.roles.values()))
        subject = Subject(assembled.policy, role.engine, assembled.task, assembled.system.ledger, adapter=role.adapter)
        self.store.add(self.name, "evaluation", {"name": name, "result": measure(subject).as_dict()})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the run's folder for this process."""
        lock: IO[str] = (self.folder / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"run {self.name} is under way in another process; wait for it, or stop it first") from None
        try:
            yield
        finally:
            lock.close()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """The first Ctrl-C finishes the step and saves; the second one interrupts at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(*_: object) -> None:
            if self.stopping.is_set():
                raise KeyboardInterrupt
            self.stopping.set()
            self.say("finishing this step, then saving (press Ctrl-C again to stop at once)")

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


class Pace:
    """How often to save: every step for small models, else so rarely that it takes at most `SHARE` of the time."""

    def __init__(self, size: int) -> None:
        self.every_step = size <= SMALL
        self.cost, self.last = 0.0, time.perf_counter()

    def due(self) -> bool:
        """Whether it is time."""
        return self.every_step or time.perf_counter() - self.last > self.cost / SHARE

    def __enter__(self) -> None:
        self.begun = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.last = time.perf_counter()
        self.cost = self.last - self.begun


def _flat(roles: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Metrics of all roles, with the role's name before each where there are several."""
    return {f"{role}/{k}" if role else k: v for role, metrics in roles.items() for k, v in metrics.items()}


def version_weights(store: Store, view: RunView, number: int) -> dict[str, torch.Tensor] | None:
    """The stored weights of a version."""
    from safetensors.torch import load_file

    version = view.version(number)
    if version.hash is None:
        return None
    cache = store.folder(view.name) / f"version-{number}.safetensors"
    try:
        return load_file(store.objects.get(version.hash, cache))
    finally:
        cache.unlink(missing_ok=True)


def begin(spec: RunSpec, store: Store, name: str | None = None, **options: Any) -> Result:
    """Assemble and start a run under a name, or under the next free one."""
    Budget.parse(spec.budget)
    assembled = assemble(spec)
    session = Session(store, spec, name or free_name(store, spec.recipe, spec.task), **options)
    return session.start(assembled)


def resume(store: Store, name: str, **options: Any) -> Result:
    """Carry a run on, with its own description; `budget` may be raised."""
    view = read_run(store, name)
    budget = options.pop("budget", None)
    spec = RunSpec(**{**view.spec, **({"budget": budget} if budget else {})})
    return Session(store, spec, view.name, **options).resume()
