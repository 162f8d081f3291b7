"""Questions about a generated database in templated English, each with SQL that answers it, written from what is true.

Questions speak of nouns, attributes and values as people do, and know nothing of how these are stored. Their answers
are sets of rows; of numbers six decimals count. A question whose answer is empty, or 0, is left out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np

from evolvent.core.random import stream
from evolvent.tasks.worlds.sql.databases import Column, Database, Table, database

QUESTIONS = 40  # about each database
Rows = frozenset[tuple[Any, ...]]


@dataclass(frozen=True)
class Question:
    """A question, the SQL of its answer, and its logical form: which kind it is, and what it is about."""

    text: str
    sql: str
    form: str
    about: Mapping[str, Any]
    answer: Rows


def rows_of(rows: Iterable[Sequence[Any]]) -> Rows:
    """The set of rows, with numbers that can be compared: six decimals, whole ones whole."""
    return frozenset(tuple(_cell(cell) for cell in row) for row in rows)


def _cell(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    near = round(value, 6)
    return int(near) if near == int(near) else near


@lru_cache(maxsize=256)
def questions(name: str) -> tuple[Question, ...]:
    """The questions about the database of that name."""
    made = database(name)
    rng = stream(0, "sql questions", name)
    found: dict[str, Question] = {}
    with sqlite3.connect(":memory:") as db:
        db.deserialize(made.data)
        while len(found) < QUESTIONS:
            draw = FORMS[int(rng.integers(len(FORMS)))]
            asked = draw(made, rng)
            if asked is None or asked[0] in found:
                continue
            text, sql, about = asked
            answer = rows_of(db.execute(sql).fetchall())
            if answer and answer not in ({(0,)}, {(None,)}):
                found[text] = Question(text, sql, draw.__name__, about, answer)
    return tuple(found.values())


def q(name: str) -> str:
    """A name in SQL."""
    return f'"{name}"'


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def known(c: Column, at: str) -> str:
    """That something is known."""
    if c.unknown is None:
        return f"{at}.{q(c.name)} IS NOT NULL"
    return f"{at}.{q(c.name)} <> {text(c.unknown) if isinstance(c.unknown, str) else c.unknown}"


def equals(c: Column, value: str, at: str) -> str:
    """That a text attribute has a value, in any spelling that occurs."""
    assert c.stored is not None
    return f"{at}.{q(c.name)} IN ({', '.join(text(way) for way in c.stored[value])})"


def day(c: Column, at: str) -> str:
    """A date as yyyymmdd, a text."""
    name = f"{at}.{q(c.name)}"
    places = {"%Y-%m-%d": (1, 6, 9), "%d.%m.%Y": (7, 4, 1), "%m/%d/%Y": (7, 1, 4), "%Y%m%d": (1, 5, 7)}[c.form]
    return " || ".join(f"substr({name}, {i}, {n})" for i, n in zip(places, (4, 2, 2), strict=True))


def join(db: Database, down: int, up: int) -> str:
    """FROM with the tables from `down` (an event or a thing) to the owner `up`, as t2, t1, t0."""
    parts = [f"{q(db.tables[down].name)} t{down}"]
    for i in range(down, up, -1):
        key = db.tables[i].of("key")[0]
        parts.append(f'JOIN {q(db.tables[i - 1].name)} t{i - 1} ON t{i}.{q(key.name)} = t{i - 1}."id"')
    return " ".join(parts)


def _one(items: Sequence[Any], rng: np.random.Generator) -> Any:
    return items[int(rng.integers(len(items)))]


def _table(db: Database, rng: np.random.Generator) -> tuple[Table, Column]:
    table = _one(db.tables, rng)
    return table, table.of("label")[0]


def _value(table: Table, rng: np.random.Generator) -> tuple[Column, str]:
    column = _one(table.of("text"), rng)
    return column, _one(list(column.stored), rng)


def _lower(db: Database, rng: np.random.Generator) -> tuple[int, int]:
    return _one([(1, 0), (2, 1), (2, 0)], rng)


Asked = tuple[str, str, dict[str, Any]] | None
Draw = Callable[[Database, np.random.Generator], Asked]


def which(db: Database, rng: np.random.Generator) -> Asked:
    """A list by a text attribute."""
    t, label = _table(db, rng)
    c, v = _value(t, rng)
    asked = f"Give the {label.phrase} of all {t.kind.many} with the {c.phrase} '{v}'."
    sql = f"SELECT t.{q(label.name)} FROM {q(t.name)} t WHERE {equals(c, v, 't')}"
    return asked, sql, {"table": t, "column": c, "value": v}


def count(db: Database, rng: np.random.Generator) -> Asked:
    """How many have a text attribute."""
    t, _ = _table(db, rng)
    c, v = _value(t, rng)
    asked = f"How many {t.kind.many} have the {c.phrase} '{v}'?"
    sql = f"SELECT COUNT(*) FROM {q(t.name)} t WHERE {equals(c, v, 't')}"
    return asked, sql, {"table": t, "column": c, "value": v}


def different(db: Database, rng: np.random.Generator) -> Asked:
    """How many values there are."""
    t, _ = _table(db, rng)
    c = _one(t.of("text"), rng)
    asked = f"How many different values of the {c.phrase} are known among the {t.kind.many}?"
    name = f"lower(trim(replace(t.{q(c.name)}, '_', ' ')))"
    sql = f"SELECT COUNT(DISTINCT {name}) FROM {q(t.name)} t WHERE {known(c, 't')}"
    return asked, sql, {"table": t, "column": c}


def share(db: Database, rng: np.random.Generator) -> Asked:
    """A percentage of all."""
    t, _ = _table(db, rng)
    c, v = _value(t, rng)
    asked = f"What percentage of all {t.kind.many} have the {c.phrase} '{v}'?"
    sql = f"SELECT 100.0 * SUM(CASE WHEN {equals(c, v, 't')} THEN 1 ELSE 0 END) / COUNT(*) FROM {q(t.name)} t"
    return asked, sql, {"table": t, "column": c, "value": v}


def unknown(db: Database, rng: np.random.Generator) -> Asked:
    """How many lack an attribute."""
    t, _ = _table(db, rng)
    c = _one([*t.of("text"), *t.of("number")], rng)
    asked = f"Of how many {t.kind.many} is the {c.phrase} not known?"
    return asked, f"SELECT COUNT(*) FROM {q(t.name)} t WHERE NOT ({known(c, 't')})", {"table": t, "column": c}


def average(db: Database, rng: np.random.Generator) -> Asked:
    """A mean of what is known."""
    t, _ = _table(db, rng)
    c = _one(t.of("number"), rng)
    unit = f" in {c.unit}" if c.unit else ""
    asked = f"What is the average {c.phrase}{unit} of the {t.kind.many}?"
    sql = f"SELECT AVG(t.{q(c.name)}) / {float(c.factor)} FROM {q(t.name)} t WHERE {known(c, 't')}"
    return asked, sql, {"table": t, "column": c}


def above(db: Database, rng: np.random.Generator) -> Asked:
    """How many have more than so much."""
    t, _ = _table(db, rng)
    c = _one(t.of("number"), rng)
    least, most, _ = t.kind.numbers[c.phrase]
    bound = int(rng.integers(least, most))
    unit = f" {c.unit}" if c.unit else ""
    asked = f"How many {t.kind.many} have a {c.phrase} of more than {bound}{unit}?"
    sql = f"SELECT COUNT(*) FROM {q(t.name)} t WHERE t.{q(c.name)} > {bound * c.factor} AND {known(c, 't')}"
    return asked, sql, {"table": t, "column": c, "bound": bound}


def extreme(db: Database, rng: np.random.Generator) -> Asked:
    """Who has the most or the least; all that have it."""
    t, label = _table(db, rng)
    c = _one(t.of("number"), rng)
    word = _one(("highest", "lowest"), rng)
    pick = {"highest": "MAX", "lowest": "MIN"}[word]
    asked = f"Give the {label.phrase} of the {t.kind.many} with the {word} {c.phrase}."
    best = f"SELECT {pick}(t.{q(c.name)}) FROM {q(t.name)} t WHERE {known(c, 't')}"
    sql = f"SELECT t.{q(label.name)} FROM {q(t.name)} t WHERE t.{q(c.name)} = ({best})"
    return asked, sql, {"table": t, "column": c, "word": word}


def year(db: Database, rng: np.random.Generator) -> Asked:
    """How many have a date in a year."""
    t, _ = _table(db, rng)
    [c] = t.of("date")
    number = int(rng.integers(2016, 2023))
    asked = f"How many {t.kind.many} have a {c.phrase} in {number}?"
    sql = f"SELECT COUNT(*) FROM {q(t.name)} t WHERE substr({day(c, 't')}, 1, 4) = '{number}'"
    return asked, sql, {"table": t, "column": c, "year": number}


def after(db: Database, rng: np.random.Generator) -> Asked:
    """A list by a date."""
    t, label = _table(db, rng)
    [c] = t.of("date")
    begin = date(2021, 1, 1).toordinal() + int(rng.integers(600))
    when = date.fromordinal(begin)
    asked = f"Give the {label.phrase} of all {t.kind.many} with a {c.phrase} after {when:%Y-%m-%d}."
    sql = f"SELECT t.{q(label.name)} FROM {q(t.name)} t WHERE {day(c, 't')} > '{when:%Y%m%d}'"
    return asked, sql, {"table": t, "column": c, "day": when}


def whose(db: Database, rng: np.random.Generator) -> Asked:
    """A list by an attribute of the owner."""
    down, up = _lower(db, rng)
    t, owner = db.tables[down], db.tables[up]
    [label] = t.of("label")
    c, v = _value(owner, rng)
    asked = f"Give the {label.phrase} of all {t.kind.many} whose {owner.kind.one} has the {c.phrase} '{v}'."
    sql = f"SELECT t{down}.{q(label.name)} FROM {join(db, down, up)} WHERE {equals(c, v, f't{up}')}"
    return asked, sql, {"table": t, "owner": owner, "column": c, "value": v}


def at_least(db: Database, rng: np.random.Generator) -> Asked:
    """How many owners have something with an attribute; each counts once."""
    down, up = _lower(db, rng)
    t, owner = db.tables[down], db.tables[up]
    c, v = _value(t, rng)
    asked = f"How many {owner.kind.many} have at least one {t.kind.one} with the {c.phrase} '{v}'?"
    sql = f'SELECT COUNT(DISTINCT t{up}."id") FROM {join(db, down, up)} WHERE {equals(c, v, f"t{down}")}'
    return asked, sql, {"table": t, "owner": owner, "column": c, "value": v}


def total(db: Database, rng: np.random.Generator) -> Asked:
    """A sum over what belongs to those with an attribute."""
    down, up = _lower(db, rng)
    t, owner = db.tables[down], db.tables[up]
    numbers = t.of("number")
    c, (d, v) = _one(numbers, rng), _value(owner, rng)
    unit = f" in {c.unit}" if c.unit else ""
    asked = f"What is the total {c.phrase}{unit} of all {t.kind.many} whose {owner.kind.one} has the {d.phrase} '{v}'?"
    sql = (
        f"SELECT SUM(t{down}.{q(c.name)}) / {float(c.factor)} FROM {join(db, down, up)} "
        f"WHERE {equals(d, v, f't{up}')} AND {known(c, f't{down}')}"
    )
    return asked, sql, {"table": t, "owner": owner, "number": c, "column": d, "value": v}


FORMS: tuple[Any, ...] = (
    which, count, different, share, unknown, average, above, extreme, year, after, whose, at_least, total,
)  # fmt: skip
