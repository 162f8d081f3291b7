"""Go back to an earlier version of a run: one more event, nothing is deleted."""

from __future__ import annotations

from typing import Any

from evolvent.core.errors import UserError
from evolvent.lineage.runs import STANDING, is_held, read_run
from evolvent.lineage.store import Store
from evolvent.lineage.versions import kept


def go_back(store: Store, run: str, number: int) -> dict[str, Any]:
    """Move a run's head to a version. `UserError` for refused or lost versions, and while the run is under way."""
    view = read_run(store, run)
    version = view.version(number)
    if version.verdict not in STANDING:
        raise UserError(
            f"version {number} of {view.name} was refused by the gate and its weights were not kept; choose one of "
            f"{kept(store, view)}"
        )
    if version.hash is None or not store.objects.has(version.hash):
        raise UserError(
            f"the weights of version {number} of {view.name} were removed from the store; choose one of "
            f"{kept(store, view)}"
        )
    lock = store.folder(view.name) / "lock"
    if lock.is_file() and is_held(lock):
        raise UserError(f"run {view.name} is under way; stop it first (Ctrl-C finishes its step), then roll back")
    if number == view.head:
        raise UserError(
            f"version {number} is the head of {view.name} already; `evolvent lineage {view.name}` shows all"
        )
    store.add(view.name, "rollback", {"to": number})
    return {"run": view.name, "version": number, "step": version.step, "before": view.head}
