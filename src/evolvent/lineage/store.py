"""The store: append-only events in a database, artefacts beside it. Every other view is computed from the events.

SQLite in WAL mode by default, PostgreSQL by URL. A process that dies loses at most what it had not committed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from evolvent.core.errors import UserError
from evolvent.lineage.objects import Objects

VERSION = "1"
_tables = sql.MetaData()
META = sql.Table("evolvent", _tables, sql.Column("key", sql.String, primary_key=True), sql.Column("value", sql.String))
EVENTS = sql.Table(
    "events",
    _tables,
    sql.Column("id", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("run", sql.String, nullable=False, index=True),
    sql.Column("time", sql.Float, nullable=False),
    sql.Column("kind", sql.String, nullable=False),
    sql.Column("data", sql.Text, nullable=False),
)


@dataclass(frozen=True)
class Event:
    """Something that happened to a run: when (seconds since 1970), of what kind, with what data."""

    id: int
    run: str
    time: float
    kind: str
    data: dict[str, Any]


class Store:
    """Events and artefacts of all runs under one folder."""

    def __init__(self, root: Path, url: str | None = None) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            raise UserError(f"cannot make the folder {root} for runs ({reason.strerror}); choose another with --store") from None
        self.url = url or f"sqlite:///{root / 'store.db'}"
        self.objects = Objects(str(root / "objects"))
        try:
            self.engine = sql.create_engine(self.url, connect_args={"timeout": 15} if self._sqlite else {})
        except (sql.exc.ArgumentError, ModuleNotFoundError) as reason:
            raise UserError(f"the store's address is not usable ({reason}); give sqlite:///FILE or postgresql+psycopg://...") from None
        if self._sqlite:
            sql.event.listen(self.engine, "connect", _pragmas)
        with self._guarded():
            _tables.create_all(self.engine)
            self._check_version()

    @property
    def _sqlite(self) -> bool:
        return self.url.startswith("sqlite")

    def _check_version(self) -> None:
        with self.engine.begin() as db:
            found = db.execute(sql.select(META.c.value).where(META.c.key == "version")).scalar()
            if found is None:
                db.execute(META.insert().values(key="version", value=VERSION))
        if found not in (None, VERSION):
            raise UserError(
                f"the store in {self.root} is of version {found}, and this evolvent writes version {VERSION}; "
                "use another folder with --store, or the evolvent that made it"
            )

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Database failures as one sentence."""
        try:
            yield
        except DBAPIError as reason:
            text = str(reason.orig)
            if "locked" in text:
                why, what = "another process keeps it locked", "wait for it to end, or use another --store"
            elif "full" in text or "disk I/O" in text:
                why, what = "the disk is full or fails", "free some space (`evolvent gc` helps) and `evolvent resume`"
            elif "malformed" in text or "not a database" in text:
                why, what = "its file is damaged", "move it away; runs can be read from their folders' metrics.jsonl"
            elif "readonly" in text or "unable to open" in text:
                why, what = "it cannot be written", "check the permissions or use another --store"
            else:
                why, what = text.split("\n")[0], "check the address"
            raise UserError(f"the store {self.name} cannot be used: {why}; {what}") from None

    @property
    def name(self) -> str:
        """The address, without a password."""
        return re.sub(r"://([^:/@]*):[^@]*@", r"://\1:***@", self.url)

    def add(self, run: str, kind: str, data: Mapping[str, Any]) -> None:
        """Append one event."""
        self.add_many(run, [(kind, data)])

    def add_many(self, run: str, events: list[tuple[str, Mapping[str, Any]]]) -> None:
        """Append several events in one transaction."""
        now = time.time()
        rows = [{"run": run, "time": now, "kind": kind, "data": json.dumps(data)} for kind, data in events]
        with self._guarded(), self.engine.begin() as db:
            db.execute(EVENTS.insert(), rows)

    def events(self, run: str | None = None, kinds: tuple[str, ...] = (), after: int = 0) -> list[Event]:
        """Events in order, of one run and of some kinds if given."""
        query = sql.select(EVENTS).where(EVENTS.c.id > after).order_by(EVENTS.c.id)
        if run is not None:
            query = query.where(EVENTS.c.run == run)
        if kinds:
            query = query.where(EVENTS.c.kind.in_(kinds))
        with self._guarded(), self.engine.connect() as db:
            return [Event(r.id, r.run, r.time, r.kind, json.loads(r.data)) for r in db.execute(query)]

    def folder(self, run: str) -> Path:
        """Where a run keeps its checkpoint, its report and its logs."""
        return self.root / run

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _pragmas(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA busy_timeout=15000")
    cursor.close()


