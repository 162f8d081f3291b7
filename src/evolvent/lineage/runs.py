"""What the events say about a run: its description, state, curves and versions."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evolvent.core.errors import UserError, unknown
from evolvent.lineage.store import Event, Store

STANDING = ("start", "accepted")  # verdicts of versions that a run may stand on


@dataclass(frozen=True)
class Version:
    """What a gate decided on: weights by hash, where they come from, the evidence and the verdict.

    Refused versions have no hash: their weights were not kept.
    """

    number: int
    step: int
    parents: tuple[int, ...]
    hash: str | None
    operator: str
    evidence: dict[str, float]
    verdict: str
    time: float = 0.0


@dataclass(frozen=True)
class Rollback:
    """The user went back (or, undoing that, forward) to a version; `event` orders it among all events."""

    event: int
    source: int | None
    to: int
    time: float


@dataclass
class RunView:
    """One run, computed from its events. Steps that were done again after a resume count once, as done last.

    `evaluations` and `samples` have the figures of the start and, as `evolved`, those of the head if it was measured.
    """

    name: str
    spec: dict[str, Any] = field(default_factory=dict)
    created: float = 0.0
    updated: float = 0.0
    status: str = "new"
    steps: dict[int, dict[str, Any]] = field(default_factory=dict)  # t -> {"roles": {...}, "spent": {...}}
    versions: list[Version] = field(default_factory=list)
    head: int | None = None
    rollbacks: list[Rollback] = field(default_factory=list)
    settled: int = 0  # versions before the last rollback, which are not made again; they come first
    resumed: list[tuple[int, int]] = field(default_factory=list)  # (event, step) of each time it was carried on
    evaluations: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, int] = field(default_factory=dict)  # evaluation -> the version that it is of
    samples: dict[str, Any] = field(default_factory=dict)
    figures: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # evaluation and samples of all that were heads
    evidence_spent: dict[str, float] = field(default_factory=dict)
    recipe: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    fingerprint: str | None = None  # of the user's own task
    folder: str = ""  # where the run was begun, as seen from the store
    environment: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    errors: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    candidates: dict[int, dict[str, Any]] = field(default_factory=dict)  # of a search, by uid
    rescored: dict[str, Any] | None = None  # the best of a finished search, evaluated anew (`search.rescore`)

    def curve(self, metric: str, role: str = "") -> list[tuple[int, float]]:
        """(step, value) of a metric, where it was recorded."""
        found = []
        for t, data in sorted(self.steps.items()):
            value = data["roles"].get(role, {}).get(metric)
            if value is not None:
                found.append((t, value))
        return found

    def values(self, metric: str) -> list[float]:
        """A metric, role by role, step by step."""
        return [value for role in self.roles for _, value in self.curve(metric, role)]

    @property
    def roles(self) -> list[str]:
        """Names of the roles that stepped; [""] in a system with a single one."""
        return list(dict.fromkeys(role for s in self.steps.values() for role in s["roles"]))

    @property
    def spent(self) -> dict[str, dict[str, float]]:
        """The ledger, by account: after the last step, and what measuring took."""
        accounts = dict(self.steps[max(self.steps)]["spent"]) if self.steps else {}
        if self.evidence_spent:
            accounts["evidence"] = self.evidence_spent
        return accounts

    @property
    def rollback(self) -> Rollback | None:
        """The last rollback."""
        return self.rollbacks[-1] if self.rollbacks else None

    @property
    def standing(self) -> list[Version]:
        """Versions that the run may stand on, in the order in which they were made."""
        return [v for v in self.versions if v.verdict in STANDING]

    def stand(self, head: int | None) -> None:
        """Make a version the head; figures of another one are not those of the evolved model any more."""
        self.head = head
        if self.measured.get("evolved", head) != head:
            for found in (self.evaluations, self.measured, self.samples):
                found.pop("evolved", None)
        if head is not None and head in self.figures:
            self.evaluations["evolved"], self.samples["evolved"] = self.figures[head]
            self.measured["evolved"] = head

    def evaluation(self, number: int) -> dict[str, Any] | None:
        """What a version scored on the test split, if it was measured, be it the head or not."""
        if number in self.figures:
            return dict(self.figures[number][0])
        return self.evaluations["start"] if self.measured.get("start") == number else None

    def version(self, number: int) -> Version:
        """A version by number."""
        for v in self.versions:
            if v.number == number:
                return v
        known = ", ".join(str(v.number) for v in self.versions)
        raise UserError(f"run {self.name} has no version {number}; it has {known or 'none yet'}")


def _apply(view: RunView, event: Event) -> None:
    view.updated, data = event.time, event.data
    match event.kind:
        case "created":
            view.spec, view.created, view.status = data["spec"], event.time, "running"
            view.environment, view.command = data.get("environment", {}), data.get("command", "")
            view.recipe, view.options = data.get("recipe", {}), data.get("options", {})
            view.fingerprint, view.folder = data.get("task"), data.get("folder", "")
        case "resumed":
            view.status, step, head = "running", data["step"], data["head"]
            view.steps = {t: s for t, s in view.steps.items() if t < step}
            again = [v for v in view.versions[view.settled :] if v.step <= step or v.number == head]
            view.versions[view.settled :] = again
            view.stand(head)
            view.resumed.append((event.id, step))
            view.rescored = None
            if data.get("budget"):
                view.spec = {**view.spec, "budget": data["budget"]}
        case "step":
            view.steps[data["t"]] = data
            view.errors = data.get("errors", view.errors)
        case "version":
            _add_version(view, Version(**{**data, "parents": tuple(data["parents"]), "time": event.time}))
        case "candidate":
            view.candidates[data["uid"]] = {**view.candidates.get(data["uid"], {}), **data}  # or what is new of it
        case "rollback":
            view.rollbacks.append(Rollback(event.id, view.head, data["to"], event.time))
            view.settled = len(view.versions)
            view.stand(data["to"])
        case "evaluation":
            view.evaluations[data["name"]] = view.evaluations[data["as"]] if "as" in data else data["result"]
            view.measured[data["name"]] = data["version"]
            if data["name"] == "evolved":
                view.figures[data["version"]] = view.evaluations["evolved"], view.samples.get("evolved", [])
            for unit, amount in data.get("spent", {}).items():
                view.evidence_spent[unit] = view.evidence_spent.get(unit, 0.0) + amount
        case "rescored":
            view.rescored = data["result"]
            for unit, amount in data["spent"].items():
                view.evidence_spent[unit] = view.evidence_spent.get(unit, 0.0) + amount
        case "samples":
            view.samples[data["name"]] = view.samples[data["as"]] if "as" in data else data["problems"]
        case "finished" | "interrupted" | "failed":
            view.status = event.kind
            view.errors = data.get("errors", view.errors)
            if data.get("note"):
                view.notes.append(data["note"])


def _add_version(view: RunView, version: Version) -> None:
    """A number that is there already was looked at again: it has new evidence, and stays what it is."""
    for place, v in enumerate(view.versions):
        if v.number == version.number:
            evidence = {**v.evidence, **version.evidence}
            view.versions[place] = Version(v.number, v.step, v.parents, v.hash, v.operator, evidence, v.verdict, v.time)
            break
    else:
        view.versions.append(version)
    if version.verdict in STANDING:
        view.stand(version.number)


def build_view(name: str, events: Iterable[Event]) -> RunView:
    """A run from its events."""
    view = RunView(name)
    for event in events:
        _apply(view, event)
    return view


def find_run(store: Store, name: str) -> str:
    """The name of a run; `last` is the one begun last. `UserError` suggests the nearest one."""
    names = run_names(store)
    if name == "last" and names:
        return names[-1]
    if name not in names:
        raise unknown("run", name, names, "`evolvent runs` lists them" if names else f"no runs in {store.name} yet")
    return name


def read_run(store: Store, name: str) -> RunView:
    """One run by name; `last` is the one begun last."""
    name = find_run(store, name)
    view = build_view(name, store.events(name))
    view.status = true_status(store, view)
    return view


def list_runs(store: Store) -> list[RunView]:
    """All runs in the order in which they began, each with its last step only; cheap however many steps there were.

    Where the last step is to be done again, since the run was resumed from before it, all of its steps are read.
    """
    kinds = ("created", "resumed", "version", "rollback", "evaluation", "rescored", "finished", "interrupted", "failed")
    latest = store.latest("step")
    found: dict[str, list[Event]] = {}
    for event in sorted([*store.events(kinds=kinds), *latest], key=lambda e: e.id):
        found.setdefault(event.run, []).append(event)
    views = {name: build_view(name, events) for name, events in found.items()}
    for name in {event.run for event in latest}:
        if not views[name].steps:
            views[name] = build_view(name, store.events(name, (*kinds, "step")))
    for view in views.values():
        view.status = true_status(store, view)
    return sorted((v for v in views.values() if v.created), key=lambda v: v.created)


def true_status(store: Store, view: RunView) -> str:
    """The status, where a run that claims to be running but whose process is gone counts as interrupted."""
    lock = store.folder(view.name) / "lock"
    if view.status == "running" and lock.is_file() and not is_held(lock):
        return "interrupted"
    return view.status


def is_held(lock: Path) -> bool:
    """Whether a process holds a run's lock file."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def run_names(store: Store) -> list[str]:
    """All runs, in the order in which they began."""
    return [e.run for e in store.events(kinds=("created",))]


def free_name(store: Store, recipe: str, task: str) -> str:
    """`grpo-countdown-1`, or the next free number; its folder is made, so that nobody else takes it meanwhile.

    Of files, the name counts: `my_method.py:fast` on `my_task.py` is `fast-my-task-1`.
    """
    method = re.sub(r"[^+]*\.py:?", lambda m: "" if m[0].endswith(":") else Path(m[0]).stem, recipe)
    work = re.sub(r"\.(py|jsonl|csv|parquet)$", "", Path(task.split(":")[0]).name)
    base = "".join(c if c.isalnum() and c.isascii() else "-" for c in f"{method}-{work}").lower()
    base = "-".join(p for p in base.split("-") if p)[:60].strip("-")
    taken = set(run_names(store))
    number = 1
    while True:
        name = f"{base}-{number}"
        number += 1
        if name in taken:
            continue
        try:
            store.folder(name).mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as reason:
            raise UserError(
                f"cannot make the folder {store.folder(name)} ({reason.strerror}); choose another with --store"
            ) from None
        return name
