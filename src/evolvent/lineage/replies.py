"""Paid replies of a run with an endpoint, kept as events: a run that was killed goes on without paying twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evolvent.lineage.store import Store

KIND = "reply"


class Replies:
    """What `engine.transport.Replay` asks for. Before a run has a name, replies wait until `keep` gives it one.

    Only what was there at the start is looked up: no run sends the same request twice, unless it does a step again.
    """

    def __init__(self, store: Store | None = None, run: str = "") -> None:
        self.store, self.run = store, run
        self.waiting: list[tuple[str, dict[str, Any]]] = []
        events = store.events(run, (KIND,)) if store is not None else []
        self.known: dict[str, Mapping[str, Any]] = {e.data["key"]: e.data["reply"] for e in events}

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The reply to a request that was paid before."""
        return self.known.get(key)

    def record(self, key: str, reply: Mapping[str, Any]) -> None:
        """Keep a reply."""
        self.waiting.append((KIND, {"key": key, "reply": dict(reply)}))
        if self.store is not None:
            self.keep(self.store, self.run)

    def keep(self, store: Store, run: str) -> None:
        """Write what waits, and from now on everything at once, to a run of a store."""
        self.store, self.run = store, run
        if self.waiting:
            store.add_many(run, self.waiting)
        self.waiting = []
