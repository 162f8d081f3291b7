"""Evaluations that cost money, kept as they come in: a step that is done again after a kill pays none of them twice."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from evolvent.lineage.store import Store

KIND = "evaluated"


class Evaluations:
    """What a task asks for whose `journal` this is (`tasks.texts.task`).

    What was kept after the event `after`, with which the steps that are done again begin, is handed out once each:
    such a step asks for the same evaluations as often as before.
    """

    def __init__(self, store: Store, run: str, after: int = 0) -> None:
        self.store, self.run, self.lock = store, run, threading.Lock()
        self.known: dict[str, list[Mapping[str, Any]]] = {}
        for event in store.events(run, (KIND,), after):
            self.known.setdefault(event.data["key"], []).append(event.data["told"])

    def take(self, key: str) -> Mapping[str, Any] | None:
        """What was told when this was asked for, before the kill."""
        with self.lock:
            left = self.known.get(key)
            return left.pop(0) if left else None

    def add(self, key: str, told: Mapping[str, Any]) -> None:
        """Keep what an evaluation told."""
        with self.lock:
            self.store.add(self.run, KIND, {"key": key, "told": dict(told)})


def begun(store: Store, run: str, t: int) -> int:
    """The event after which step `t` of a run began: that of the step before; 0 for the first one."""
    return max((e.id for e in store.events(run, ("step",)) if e.data["t"] < t), default=0)
