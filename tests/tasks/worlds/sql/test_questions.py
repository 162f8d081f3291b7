"""Questions and their SQL: the answers are those that the clean rows give, computed in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from evolvent.tasks.worlds.sql.databases import Database, Table, database
from evolvent.tasks.worlds.sql.questions import FORMS, QUESTIONS, Question, questions, rows_of

NAMES = [f"{split}-{i}" for split in ("train", "gate", "test") for i in range(3)]


def above(db: Database, t: Table, row: Mapping[str, Any], owner: Table) -> Mapping[str, Any]:
    """The owner of a row, one or two tables up."""
    place = [table.name for table in db.tables].index(t.name)
    while db.tables[place].name != owner.name:
        place -= 1
        row = db.tables[place].rows[row[db.tables[place].kind.one] - 1]
    return row


def answer(q: Question, db: Database) -> Any:
    """From the clean rows alone."""
    a, t = q.about, q.about["table"]
    rows, label = t.rows, t.kind.label
    p = a["column"].phrase
    match q.form:
        case "which":
            return [[r[label]] for r in rows if r[p] == a["value"]]
        case "count":
            return [[sum(r[p] == a["value"] for r in rows)]]
        case "different":
            return [[len({r[p] for r in rows} - {None})]]
        case "share":
            return [[100 * sum(r[p] == a["value"] for r in rows) / len(rows)]]
        case "unknown":
            return [[sum(r[p] is None for r in rows)]]
        case "average":
            known = [r[p] for r in rows if r[p] is not None]
            return [[sum(known) / len(known)]]
        case "above":
            return [[sum(r[p] is not None and r[p] > a["bound"] for r in rows)]]
        case "extreme":
            best = (max if a["word"] == "highest" else min)(r[p] for r in rows if r[p] is not None)
            return [[r[label]] for r in rows if r[p] == best]
        case "year":
            return [[sum(r[p].year == a["year"] for r in rows)]]
        case "after":
            return [[r[label]] for r in rows if r[p] > a["day"]]
        case "whose":
            return [[r[label]] for r in rows if above(db, t, r, a["owner"])[p] == a["value"]]
        case "at_least":
            return [[len({above(db, t, r, a["owner"])["id"] for r in rows if r[p] == a["value"]})]]
        case "total":
            n = a["number"].phrase
            return [[sum(r[n] or 0 for r in rows if above(db, t, r, a["owner"])[p] == a["value"])]]
    raise AssertionError(q.form)


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_the_clean_rows(name: str) -> None:
    made = questions(name)
    assert len({q.text for q in made}) == QUESTIONS
    for q in made:
        assert rows_of(answer(q, database(name))) == q.answer, q
        assert q.answer not in ({(0,)}, {(None,)}, frozenset())


def test_all_forms_are_asked_and_questions_do_not_show_how_values_are_stored() -> None:
    made = [q for name in NAMES for q in questions(name)]
    assert {q.form for q in made} == {f.__name__ for f in FORMS}
    assert all(word not in q.text for q in made for word in (" cents", " grams", "minutes", "_", "N/A", "NULL"))


def test_sets_of_rows() -> None:
    assert rows_of([[1.0, "a"], [1, "a"]]) == {(1, "a")}
    assert rows_of([[1 / 3]]) == rows_of([[0.3333333333]]) != rows_of([[0.33333]])
    assert rows_of([["1"]]) != rows_of([[1]])
    assert rows_of([[None]]) == {(None,)}
    assert rows_of([[1, 2]]) != rows_of([[2, 1]])
