"""The store: append-only events in a database, artefacts beside it. Every other view is computed from the events.

SQLite in WAL mode by default, PostgreSQL by URL. A process that dies loses at most what it had not committed.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from evolvent.core.errors import UserError
from evolvent.core.secrets import redact
from evolvent.lineage.objects import Objects

VERSION = "1"
DAMAGED = "move it away; the runs' figures are also in their metrics.jsonl"  # what to do then
PATIENCE = 15.0  # seconds to wait for another process to finish writing
_tables = sql.MetaData()
META = sql.Table("evolvent", _tables, sql.Column("key", sql.String, primary_key=True), sql.Column("value", sql.String))
EVENTS = sql.Table(
    "events",
    _tables,
    sql.Column("id", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("run", sql.String, nullable=False),
    sql.Column("time", sql.Float, nullable=False),
    sql.Column("kind", sql.String, nullable=False),
    sql.Column("data", sql.Text, nullable=False),
    sql.Index("events_of_run", "run", "id"),
    sql.Index("events_of_kind", "kind", "run", "id"),
)


@dataclass(frozen=True)
class Event:
    """Something that happened to a run: when (seconds since 1970), of what kind, with what data."""

    id: int
    run: str
    time: float
    kind: str
    data: dict[str, Any]


def without_secrets(data: Any) -> Any:
    """Plain data, each text in it redacted by itself: numbers stay what they are, and so do names of fields."""
    if isinstance(data, str):
        return redact(data)
    if isinstance(data, dict):
        return {k: without_secrets(v) for k, v in data.items()}
    return [without_secrets(v) for v in data] if isinstance(data, list | tuple) else data


def texts_in(data: Any) -> Iterator[str]:
    """The texts in plain data, in their order."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list | tuple):
        for part in data.values() if isinstance(data, dict) else data:
            yield from texts_in(part)


def dumped(data: Any) -> str:
    """The JSON of plain data without known secrets. Hardly any has some, so all its texts are looked at together."""
    text = "\n".join(texts_in(data))
    return json.dumps(data if redact(text) == text else without_secrets(data))


class Store:
    """Events and artefacts of all runs under one folder."""

    def __init__(self, root: Path, url: str | None = None, patience: float = PATIENCE) -> None:
        self.root, self.patience = root, patience
        if url is not None and re.search(r"[?&]password=", url, re.IGNORECASE):
            raise UserError(
                "no password in the address of a store, please, since addresses are shown and recorded; leave it out, "
                "and set PGPASSWORD or write it to ~/.pgpass"
            )
        if url is not None and not url.startswith("postgres"):
            raise UserError(
                f"{redact(url)} is no address of a store; give a folder, or postgresql://user@host/database"
            )
        self.url = re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url or f"sqlite:///{root / 'store.db'}")
        self.objects = Objects(str(root / "objects"))
        try:
            self.engine = sql.create_engine(self.url, connect_args={"timeout": patience} if self._sqlite else {})
        except ModuleNotFoundError:
            raise UserError(
                f"the store {self.name} needs a driver: pip install 'evolvent[postgres]' for PostgreSQL"
            ) from None
        except (sql.exc.ArgumentError, ValueError):
            raise UserError(
                f"{self.name} is no address of a store; give a folder, or postgresql://user@host/database"
            ) from None
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            raise UserError(
                f"cannot make the folder {root} for runs ({reason.strerror}); choose another with --store"
            ) from None
        if self._sqlite:
            sql.event.listen(self.engine, "connect", self._pragmas)
        with self._guarded():
            self._prepare()

    @property
    def _sqlite(self) -> bool:
        return self.url.startswith("sqlite")

    def _prepare(self) -> None:
        """Make the tables if they are not there; two processes may do so at once."""
        if not sql.inspect(self.engine).has_table(META.name):
            try:
                _tables.create_all(self.engine)
            except DBAPIError:
                time.sleep(0.2)  # somebody else was faster, or it fails again now
                _tables.create_all(self.engine)
        with self.engine.begin() as db:
            found = self._version(db)
            if found is None:
                text = f"INSERT INTO {META.name} (key, value) VALUES ('version', :v) ON CONFLICT DO NOTHING"
                db.execute(sql.text(text), {"v": VERSION})
                found = self._version(db)
        if found != VERSION:
            raise UserError(
                f"the store {self.name} is of version {found}, and this evolvent writes version {VERSION}; "
                "use another folder with --store, or the evolvent that made it"
            )

    @staticmethod
    def _version(db: sql.Connection) -> str | None:
        return db.execute(sql.select(META.c.value).where(META.c.key == "version")).scalar()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Database failures as one sentence."""
        try:
            yield
        except (DBAPIError, sqlite3.Error) as reason:
            text = redact(str(reason.orig if isinstance(reason, DBAPIError) else reason).strip())
            if "locked" in text:
                why, what = "another process keeps it locked", "wait for it to end, or use another --store"
            elif "full" in text or "disk I/O" in text:
                why, what = "the disk is full or fails", "free some space (`evolvent gc` helps), then `evolvent resume`"
            elif "malformed" in text or "not a database" in text:
                why, what = "its file is damaged", DAMAGED
            elif "readonly" in text or "unable to open" in text:
                why, what = "it cannot be written", "check the permissions, or use another --store"
            elif "onnection" in text:
                why, what = text.split("\n")[0], "check that the server runs, and the address"
            else:
                why, what = text.split("\n")[0], "check that it is a store of evolvent"
            raise self._useless(why, what) from None

    def _useless(self, why: str, what: str) -> UserError:
        return UserError(f"the store {self.name} cannot be used: {why}; {what}")

    @property
    def name(self) -> str:
        """The folder or address, without a password."""
        return str(self.root) if self._sqlite else redact(self.url)

    def add(self, run: str, kind: str, data: Mapping[str, Any]) -> None:
        """Append one event."""
        self.add_many(run, [(kind, data)])

    def add_many(self, run: str, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Append several events in one transaction. Known secrets in them are replaced (`core.secrets`)."""
        now = time.time()
        rows = [{"run": run, "time": now, "kind": k, "data": dumped(data)} for k, data in events]
        with self._guarded(), self.engine.begin() as db:
            db.execute(EVENTS.insert(), rows)

    def forget(self, run: str) -> None:
        """Take back the events of a run that came to nothing before it had a result. All others stay for ever."""
        with self._guarded(), self.engine.begin() as db:
            db.execute(EVENTS.delete().where(EVENTS.c.run == run))

    def events(self, run: str | None = None, kinds: tuple[str, ...] = (), after: int = 0) -> list[Event]:
        """Events in order, of one run and of some kinds if given."""
        query = sql.select(EVENTS).where(EVENTS.c.id > after).order_by(EVENTS.c.id)
        if run is not None:
            query = query.where(EVENTS.c.run == run)
        if kinds:
            query = query.where(EVENTS.c.kind.in_(kinds))
        return self._read(query)

    def latest(self, kind: str) -> list[Event]:
        """The last event of a kind of every run."""
        newest = sql.select(sql.func.max(EVENTS.c.id)).where(EVENTS.c.kind == kind).group_by(EVENTS.c.run)
        return self._read(sql.select(EVENTS).where(EVENTS.c.id.in_(newest)).order_by(EVENTS.c.id))

    def _read(self, query: Any) -> list[Event]:
        with self._guarded(), self.engine.connect() as db:
            rows = db.execute(query).all()
        try:
            return [Event(r.id, r.run, r.time, r.kind, json.loads(r.data)) for r in rows]
        except ValueError:
            raise self._useless("its file is damaged", DAMAGED) from None

    def folder(self, run: str) -> Path:
        """Where a run keeps its checkpoint, its report and its logs."""
        return self.root / run

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _pragmas(self, connection: Any, _: Any) -> None:
        """Write-ahead log: readers never wait, a killed writer leaves nothing half-written."""
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={int(1000 * self.patience)}")
        deadline = time.monotonic() + self.patience
        while True:
            try:
                cursor.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as reason:  # SQLite does not wait here by itself
                if "locked" not in str(reason) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()
