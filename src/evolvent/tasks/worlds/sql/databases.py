"""Generated databases: from a domain and a number come a schema, its oddities, clean rows and what is stored of them.

How odd a database is differs: it draws a share p evenly from 0 to 1, and has each of these with the probability p:

names     half of the columns are abbreviated, and foreign keys; comments in the CREATE statements say what they mean
keys      foreign keys are not declared
values    texts are stored in several spellings: casing, spaces at the end, or underscores
dates     texts such as 31.12.2020, 12/31/2020 or numbers such as 20201231, and not 2020-12-31
units     numbers are stored in cents, grams, ...; comments say so
missing   what is not known is '', 'N/A' or -1, and not NULL
wide      tables have further columns that nobody asks about

Columns of different tables share their names throughout: `id`, `name`, `status`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from evolvent.core.random import stream
from evolvent.tasks.base import Split
from evolvent.tasks.worlds.sql.domains import DOMAINS, Kind

SIZES = (25, 60, 110)  # rows of owners, things, events
ODDITIES = ("names", "keys", "values", "dates", "units", "missing", "wide")
DATES = ("%d.%m.%Y", "%m/%d/%Y", "%Y%m%d")
STYLES = ("{many}", "{Many}", "tbl_{many}", "{Many}Table")
IDLE = ("remark", "created_by", "checksum", "batch_no", "legacy_ref")
SYLLABLES = ("ba", "do", "fe", "ki", "lu", "ma", "no", "ri", "sa", "te", "vo", "wi")
BRIEF = 0.5  # share of the columns that are abbreviated, where some are
UNKNOWN = 0.15  # share of the values of an attribute that are not known


@dataclass(frozen=True)
class Column:
    """One column and what is true of it.

    kind     id, key, label, text, number, date, idle
    name     in SQL; `phrase` in questions; `comment` in the CREATE statement
    factor   stored number / number that questions ask about, in `unit`
    form     of a date, as in `strftime`
    unknown  what is stored where nothing is known; None: NULL
    stored   of a text's values: the spellings that occur
    """

    kind: str
    name: str
    phrase: str
    comment: str = ""
    unit: str = ""
    factor: int = 1
    form: str = ""
    unknown: Any = None
    stored: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class Table:
    """One table: its name in SQL, its kind of things, columns by phrase, and its clean rows by phrase."""

    name: str
    kind: Kind
    columns: Mapping[str, Column]
    rows: Sequence[Mapping[str, Any]]

    def of(self, kind: str) -> list[Column]:
        """Its columns of a kind."""
        return [c for c in self.columns.values() if c.kind == kind]


@dataclass(frozen=True)
class Database:
    """Three tables, owners first; `data` is the SQLite file, `odd` the oddities that it has."""

    name: str
    tables: tuple[Table, Table, Table]
    data: bytes
    odd: tuple[str, ...]


@lru_cache(maxsize=256)
def database(name: str) -> Database:
    """The database of a name such as `train-3`: the split says of which domains, the number is a seed."""
    split, _, number = name.rpartition("-")
    rng = stream(int(number), "sql", split)
    domains = DOMAINS[_split(split)]
    domain = domains[int(number) % len(domains)]
    share = rng.random()
    odd = tuple(o for o, u in zip(ODDITIES, rng.random(len(ODDITIES)), strict=True) if u < share)
    style = STYLES[int(rng.integers(len(STYLES)))] if "names" in odd else STYLES[0]
    form = DATES[int(rng.integers(len(DATES)))] if "dates" in odd else "%Y-%m-%d"
    tables: list[Table] = []
    for size, kind in zip(SIZES, domain.kinds, strict=True):
        tables.append(_table(kind, size, tables[-1] if tables else None, style, form, odd, rng))
    owners, things, events = tables
    return Database(name, (owners, things, events), _file(tables, odd, rng), odd)


def _split(name: str) -> Split:
    assert name in DOMAINS
    return name  # type: ignore[return-value]


def short(phrase: str) -> str:
    """An abbreviation: of each word the first letter and the next consonants, four in all."""
    return "_".join((w[0] + "".join(c for c in w[1:] if c not in "aeiouy"))[:4] for w in phrase.split())


def _table(
    kind: Kind, size: int, owner: Table | None, style: str, form: str, odd: Sequence[str], rng: np.random.Generator
) -> Table:
    words = [*kind.texts, *kind.numbers, kind.date, kind.label]
    brief = {w for w in words if "names" in odd and rng.random() < BRIEF}

    def named(phrase: str) -> str:
        return short(phrase) if phrase in brief else phrase.replace(" ", "_")

    def says(phrase: str) -> str:
        return phrase if phrase in brief else ""

    columns = {"id": Column("id", "id", "id")}
    if owner is not None:
        one = owner.kind.one
        columns[one] = Column("key", f"{short(one)}_ref" if "names" in odd else f"{one}_id", one)
    columns[kind.label] = Column("label", named(kind.label), kind.label, says(kind.label))
    for phrase, values in kind.texts.items():
        spelled = {v: _spellings(v, rng) if "values" in odd else (v,) for v in values}
        unknown: str | int | None = ("", "N/A")[int(rng.integers(2))] if "missing" in odd else None
        columns[phrase] = Column("text", named(phrase), phrase, says(phrase), unknown=unknown, stored=spelled)
    for phrase, (_, _, (asked, other, factor)) in kind.numbers.items():
        scale = factor if "units" in odd else 1
        unit = f"in {other if scale > 1 else asked}" if asked else ""
        comment = ", ".join(part for part in (says(phrase), unit) if part)
        unknown = -1 if "missing" in odd else None
        columns[phrase] = Column("number", named(phrase), phrase, comment, asked, scale, unknown=unknown)
    columns[kind.date] = Column("date", named(kind.date), kind.date, says(kind.date), form=form)
    for phrase in IDLE if "wide" in odd else ():
        columns[phrase] = Column("idle", phrase, phrase)
    return Table(style.format(many=kind.many, Many=kind.many.capitalize()), kind, columns, _rows(
        kind, size, owner, columns, rng
    ))  # fmt: skip


def _spellings(value: str, rng: np.random.Generator) -> tuple[str, ...]:
    """Two or three ways in which a value is stored."""
    ways = (value.title(), value.upper(), value + " ", value.replace(" ", "_"), value.capitalize())
    chosen = rng.permutation(len(ways))[: int(rng.integers(2, 4))]
    return tuple(dict.fromkeys(ways[i] for i in chosen.tolist()))


def _rows(
    kind: Kind, size: int, owner: Table | None, columns: Mapping[str, Column], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Clean rows: texts as in questions, numbers in the unit asked in, dates; None where nothing is known."""
    labels: list[str] = []
    while len(labels) < size:
        words = [SYLLABLES[i] for i in rng.integers(len(SYLLABLES), size=3).tolist()]
        made = (
            f"{words[0]}-{rng.integers(10, 99)}".upper() if kind.label in ("code", "plate") else "".join(words).title()
        )
        labels += [made] * (made not in labels)
    rows = []
    for i in range(size):
        row: dict[str, Any] = {"id": i + 1, kind.label: labels[i]}
        if owner is not None:
            row[owner.kind.one] = int(rng.integers(1, len(owner.rows) + 1))
        for phrase, values in kind.texts.items():
            row[phrase] = None if rng.random() < UNKNOWN else values[int(rng.integers(len(values)))]
        for phrase, (least, most, _) in kind.numbers.items():
            grid = np.unique(np.linspace(least, most, 12).astype(int))  # few numbers, so that there are ties
            row[phrase] = None if rng.random() < UNKNOWN else int(grid[rng.integers(len(grid))])
        row[kind.date] = date(2016, 1, 1) + timedelta(days=int(rng.integers(365 * 7)))
        for column in columns.values():
            if column.kind == "idle":
                row[column.phrase] = f"{column.phrase} {labels[i]} {int(rng.integers(10**6))}"
        rows.append(row)
    return rows


def _stored(column: Column, value: Any, rng: np.random.Generator) -> Any:
    """What is stored of a clean value."""
    if value is None:
        return column.unknown
    if column.kind == "text":
        assert column.stored is not None
        ways = column.stored[value]
        return ways[int(rng.integers(len(ways)))]
    if column.kind == "number":
        return value * column.factor
    if column.kind == "date":
        text = value.strftime(column.form)
        return int(text) if text.isdecimal() else text
    return value


def _file(tables: Sequence[Table], odd: Sequence[str], rng: np.random.Generator) -> bytes:
    """The database as SQLite stores it."""
    types = {"id": "INTEGER PRIMARY KEY", "key": "INTEGER", "number": "INTEGER"}
    with sqlite3.connect(":memory:") as db:
        before: Table | None = None
        for table in tables:
            lines = []
            for i, c in enumerate(table.columns.values()):
                kind = "INTEGER" if c.form == "%Y%m%d" else types.get(c.kind, "TEXT")
                key = f' REFERENCES "{before.name}"(id)' if c.kind == "key" and before and "keys" not in odd else ""
                comma = "," if i + 1 < len(table.columns) else ""
                lines.append(f'  "{c.name}" {kind}{key}{comma}' + (f" -- {c.comment}" if c.comment else ""))
            db.execute(f'CREATE TABLE "{table.name}" (\n' + "\n".join(lines) + "\n)")
            marks = ", ".join("?" * len(table.columns))
            rows = [[_stored(c, row[p], rng) for p, c in table.columns.items()] for row in table.rows]
            db.executemany(f'INSERT INTO "{table.name}" VALUES ({marks})', rows)
            before = table
        db.commit()
        return db.serialize()
