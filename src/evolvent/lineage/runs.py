"""What the events say about a run: its description, state, curves and versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evolvent.core.errors import UserError, unknown
from evolvent.lineage.store import Event, Store


@dataclass(frozen=True)
class Version:
    """What a gate decided on: weights by hash, where they come from, the evidence and the verdict."""

    number: int
    step: int
    parents: tuple[int, ...]
    hash: str | None
    operator: str
    evidence: dict[str, float]
    verdict: str


@dataclass
class RunView:
    """One run, computed from its events. Steps that were done again after a resume count once, as done last."""

    name: str
    spec: dict[str, Any] = field(default_factory=dict)
    created: float = 0.0
    updated: float = 0.0
    status: str = "new"
    steps: dict[int, dict[str, Any]] = field(default_factory=dict)  # t -> {"roles": {...}, "spent": {...}}
    versions: list[Version] = field(default_factory=list)
    head: int | None = None
    evaluations: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    errors: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def curve(self, metric: str, role: str = "") -> list[tuple[int, float]]:
        """(step, value) of a metric, where it was recorded."""
        found = []
        for t, data in sorted(self.steps.items()):
            value = data["roles"].get(role, {}).get(metric)
            if value is not None:
                found.append((t, value))
        return found

    @property
    def spent(self) -> dict[str, dict[str, float]]:
        """The ledger after the last step, by account."""
        return self.steps[max(self.steps)]["spent"] if self.steps else {}

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
        case "resumed":
            view.status = "running"
            view.steps = {t: s for t, s in view.steps.items() if t < data["step"]}
            view.versions = [v for v in view.versions if v.step < data["step"] or v.verdict == "start"]
            view.head = data.get("head", view.head)
        case "step":
            view.steps[data["t"]] = data
        case "version":
            version = Version(**{**data, "parents": tuple(data["parents"])})
            view.versions.append(version)
            if version.verdict in ("start", "accepted"):
                view.head = version.number
        case "rollback":
            view.head = data["to"]
        case "evaluation":
            view.evaluations[data["name"]] = data["result"]
        case "finished" | "interrupted" | "failed":
            view.status = event.kind
            view.errors = data.get("errors", {})
            if data.get("note"):
                view.notes.append(data["note"])


def read_run(store: Store, name: str) -> RunView:
    """One run by name; `last` is the one begun last."""
    names = run_names(store)
    if name == "last" and names:
        name = names[-1]
    if name not in names:
        raise unknown("run", name, names, "`evolvent runs` lists them" if names else f"no runs in {store.root} yet")
    view = RunView(name)
    for event in store.events(name):
        _apply(view, event)
    return view


def run_names(store: Store) -> list[str]:
    """All runs, in the order in which they began."""
    return [e.run for e in store.events(kinds=("created",))]


def free_name(store: Store, recipe: str, task: str) -> str:
    """`grpo-countdown-1`, or the next free number."""
    base = "".join(c if c.isalnum() else "-" for c in f"{recipe}-{task.split(':')[0]}").strip("-").lower()
    base = "-".join(p for p in base.split("-") if p)[:60]
    taken = set(run_names(store))
    number = 1
    while f"{base}-{number}" in taken or store.folder(f"{base}-{number}").exists():
        number += 1
    return f"{base}-{number}"
