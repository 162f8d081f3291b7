"""Free disk space: weights that no run needs any more, and what processes that died left behind.

Needed are, of every run: the start, the head, what was measured, the last versions that were accepted, and all that is
stored by a run under way. Only weights go; events, curves and reports stay.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evolvent.lineage.runs import RunView, is_held, list_runs
from evolvent.lineage.store import Store

SETTLED = 3600.0  # seconds; a younger file that nothing names may be on its way into the record
TEMPORARY = ("*.part", "version.safetensors", "reading-*.safetensors")


@dataclass
class Swept:
    """What was (or would be) removed."""

    versions: dict[str, list[int]] = field(default_factory=dict)  # run -> numbers of versions whose weights go
    unnamed: int = 0  # stored files that no version names
    temporary: int = 0
    freed: int = 0  # bytes
    kept: int = 0  # bytes of weights that stay


def needed(view: RunView, last: int) -> set[int]:
    """Numbers of the versions of a run whose weights must stay."""
    keep = {v.number for v in view.versions if v.verdict == "start"} | set(view.measured.values()) | set(view.figures)
    if view.head is not None:
        keep.add(view.head)
    if view.status == "running":
        return keep | {v.number for v in view.versions}
    standing = [v.number for v in view.standing]
    return keep | set(standing[-last:] if last else [])


def sweep(store: Store, last: int = 3, dry_run: bool = False) -> Swept:
    """Remove what is not needed; `last` accepted versions of every run stay besides its start and head."""
    swept, views = Swept(), list_runs(store)
    wanted: set[str] = set()
    named: dict[str, list[tuple[str, int]]] = {}
    for view in views:
        keep = needed(view, last)
        for v in view.versions:
            if v.hash is not None:
                named.setdefault(v.hash, []).append((view.name, v.number))
                if v.number in keep:
                    wanted.add(v.hash)
    now, strangers = time.time(), unknown_runs(store, {view.name for view in views})
    for stored in store.objects.files():
        if stored.pid is not None:
            if alive(stored.pid) and now - stored.changed < 24 * SETTLED:
                continue
            swept.temporary += 1
        elif stored.name in wanted or (stored.name not in named and (strangers or now - stored.changed < SETTLED)):
            swept.kept += stored.size
            continue
        elif stored.name not in named:
            swept.unnamed += 1
        for run, number in named.get(stored.name, []) if stored.pid is None else []:
            swept.versions.setdefault(run, []).append(number)
        swept.freed += stored.size
        if not dry_run:
            store.objects.remove(stored)
    for path in leftovers(store):
        swept.temporary += 1
        swept.freed += path.stat().st_size if path.is_file() else 0
        if not dry_run:
            path.unlink() if path.is_file() else remove_empty(path)
    return swept


def unknown_runs(store: Store, known: Container[str]) -> list[str]:
    """Folders with a checkpoint that no event is about, as when the store's database was lost: their weights stay."""
    return [p.parent.name for p in store.root.glob("*/checkpoint.safetensors") if p.parent.name not in known]


def leftovers(store: Store) -> Iterator[Path]:
    """Files on their way in folders of runs that no process holds, and folders that never became a run."""
    known = {view.name for view in list_runs(store)}
    for folder in sorted(p for p in store.root.iterdir() if p.is_dir() and p.name != "objects"):
        lock = folder / "lock"
        if folder.name not in known:
            inside = [p.name for p in folder.iterdir()]
            if set(inside) <= {"lock"} and time.time() - folder.stat().st_mtime > SETTLED:
                yield folder
        elif not (lock.is_file() and is_held(lock)):
            for pattern in TEMPORARY:
                yield from folder.glob(pattern)


def remove_empty(folder: Path) -> None:
    """Remove a folder that holds a lock file at most."""
    (folder / "lock").unlink(missing_ok=True)
    folder.rmdir()


def alive(pid: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
