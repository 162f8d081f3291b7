"""Generated databases: what is stored is what is true, in the oddities that they have."""

from __future__ import annotations

import sqlite3
from datetime import date, datetime
from typing import Any

import pytest

from evolvent.tasks.worlds.sql.databases import ODDITIES, Column, Database, database, short
from evolvent.tasks.worlds.sql.domains import DOMAINS

NAMES = [f"{split}-{i}" for split, n in (("train", 9), ("gate", 2), ("test", 3)) for i in range(n)]


def opened(made: Database) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.deserialize(made.data)
    return db


def read(c: Column, cell: Any) -> Any:
    """What a stored cell means, read without the generator's help."""
    if c.kind in ("text", "number") and (cell is None or cell in ("", "N/A", -1)):
        return None
    if c.kind == "text":
        return " ".join(str(cell).lower().replace("_", " ").split())
    if c.kind == "number":
        return cell / c.factor
    if c.kind == "date":
        return datetime.strptime(str(cell), c.form).date()
    return cell


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_what_is_true(name: str) -> None:
    made = database(name)
    with opened(made) as db:
        for table in made.tables:
            rows = db.execute(f'SELECT * FROM "{table.name}"').fetchall()
            assert len(rows) == len(table.rows) > 20
            for row, true in zip(rows, table.rows, strict=True):
                found = {c.phrase: read(c, cell) for c, cell in zip(table.columns.values(), row, strict=True)}
                assert found == true


def test_oddities_are_there_where_they_are_said_to_be() -> None:
    seen = set()
    for name in NAMES:
        made = database(name)
        seen |= {*made.odd}
        with opened(made) as db:
            schema = "\n".join(row[0] for row in db.execute("SELECT sql FROM sqlite_master"))
            keys = [db.execute(f'PRAGMA foreign_key_list("{t.name}")').fetchall() for t in made.tables]
            assert [len(k) for k in keys] == ([0, 0, 0] if "keys" in made.odd else [0, 1, 1])
            assert ("_ref" in schema) == ("names" in made.odd or "wide" in made.odd)
            assert ("in cents" in schema or "in grams" in schema or "in minutes" in schema) == ("units" in made.odd)
            assert ("remark" in schema) == ("wide" in made.odd)
            [day] = db.execute(f'SELECT "{made.tables[0].of("date")[0].name}" FROM "{made.tables[0].name}"').fetchone()
            assert (str(day)[4:5] + str(day)[7:8] == "--") == ("dates" not in made.odd)
            for t in made.tables:
                for c in t.of("text"):
                    held = {row[0] for row in db.execute(f'SELECT "{c.name}" FROM "{t.name}"')}
                    assert (None in held) == ("missing" not in made.odd)
                    plain = {v for v in held if v and v != "N/A"}
                    assert ("values" in made.odd) or plain <= {*t.kind.texts[c.phrase]}
    assert seen == {*ODDITIES}
    assert {len(database(name).odd) for name in NAMES} >= {0, 1, 3, 5, 7}


def test_databases_are_drawn_by_name_and_domains_are_of_one_split() -> None:
    database.cache_clear()
    first = database("train-2").data
    database.cache_clear()
    assert database("train-2").data == first != database("train-7").data
    assert database("train-0").tables[0].kind != database("test-0").tables[0].kind
    named = [d.name for ds in DOMAINS.values() for d in ds]
    assert len(set(named)) == len(named) == 10


def test_no_two_columns_of_a_table_have_one_name() -> None:
    for domains in DOMAINS.values():
        for domain in domains:
            for kind in domain.kinds:
                phrases = [kind.label, *kind.texts, *kind.numbers, kind.date]
                assert len({short(p) for p in phrases}) == len(phrases)
    assert short("purchase date") == "prch_dt"
    assert isinstance(database("gate-0").tables[0].rows[0][database("gate-0").tables[0].kind.date], date)
