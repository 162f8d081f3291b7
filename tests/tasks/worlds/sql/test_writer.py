"""The scripted writer: what each sentence of the instructions changes, and what it cannot know."""

from __future__ import annotations

import sqlite3

import pytest

from evolvent.tasks.worlds.sql.agents import components
from evolvent.tasks.worlds.sql.directives import SENTENCES, directives
from evolvent.tasks.worlds.sql.report import read_report
from evolvent.tasks.worlds.sql.writer import Cannot, words, write

REPORT = """
table Owners
column Owners.id
column Owners.name
column Owners.ct
table pets
column pets.id
column pets.own_ref
column pets.name
column pets.kind
column pets.price
column pets.born
join pets.own_ref = Owners.id
meaning Owners.ct: city
unit pets.price: cents
date pets.born: %d.%m.%Y
values pets.kind: ["Dog", "DOG ", "hot_dog", null]
missing pets.price: -1
this line says nothing
values pets.born: ["cut off
"""
ROWS = """
CREATE TABLE Owners (id INTEGER, name TEXT, ct TEXT);
INSERT INTO Owners VALUES (1, 'Ann', 'york'), (2, 'Bob', 'new york'), (3, 'Cy', 'York');
CREATE TABLE pets (id INTEGER, own_ref INTEGER, name TEXT, kind TEXT, price INTEGER, born TEXT);
INSERT INTO pets VALUES (1, 1, 'a', 'Dog', 500, '01.02.2020'), (2, 1, 'b', 'DOG ', 500, '05.01.2021'),
                        (3, 2, 'c', 'hot_dog', -1, '03.12.2020'), (4, 3, 'd', NULL, 300, '09.09.2019');
"""
EVERY = ("meanings", "joins", "qualify")


def rows(question: str, *told: str, report: str = REPORT) -> list[tuple[object, ...]]:
    with sqlite3.connect(":memory:") as db:
        db.executescript(ROWS)
        return sorted(db.execute(write(question, read_report(report), frozenset(told))).fetchall())


@pytest.mark.parametrize(
    ("question", "told", "found"),
    [
        ("Give the name of all pets with the kind 'dog'.", (), []),
        ("Give the name of all pets with the kind 'dog'.", ("case",), [("a",)]),
        ("Give the name of all pets with the kind 'dog'.", ("case", "trim"), [("a",), ("b",)]),
        ("Give the name of all pets with the kind 'dog'.", ("spellings",), [("a",), ("b",)]),
        ("Give the name of all pets with the kind 'dog'.", ("like",), [("a",), ("b",), ("c",)]),
        ("Give the name of all pets with the kind 'hot dog'.", ("like",), []),
        ("How many pets have the kind 'hot dog'?", ("underscores",), [(1,)]),
        ("How many different values of the kind are known among the pets?", (), [(3,)]),
        ("How many different values of the kind are known among the pets?", ("case", "trim"), [(2,)]),
        ("What percentage of all pets have the kind 'hot dog'?", ("spellings",), [(25,)]),
        ("Of how many pets is the price not known?", (), [(0,)]),
        ("Of how many pets is the price not known?", ("missing",), [(1,)]),
        ("What is the average price in dollars of the pets?", ("missing", "units"), [(1300 / 3 / 100,)]),
        ("What is the average price in dollars of the pets?", ("missing",), [(1300 / 3,)]),
        ("How many pets have a price of more than 4 dollars?", (), [(3,)]),
        ("How many pets have a price of more than 4 dollars?", ("units",), [(2,)]),
        ("Give the name of the pets with the highest price.", ("ties",), [("a",), ("b",)]),
        ("Give the name of the pets with the lowest price.", ("ties",), [("c",)]),
        ("Give the name of the pets with the lowest price.", ("missing",), [("d",)]),
        ("How many pets have a born in 2020?", (), [(0,)]),
        ("How many pets have a born in 2020?", ("dates",), [(2,)]),
        ("Give the name of all pets with a born after 2020-12-02.", ("dates",), [("b",), ("c",)]),
        ("Give the name of all pets whose owner has the city 'york'.", EVERY, [("a",), ("b",)]),
        ("Give the name of all pets whose owner has the city 'york'.", (*EVERY, "like"),
         [("a",), ("b",), ("c",), ("d",)]),
        ("How many owners have at least one pet with the kind 'dog'?", (*EVERY, "spellings"), [(2,)]),
        ("How many owners have at least one pet with the kind 'dog'?", (*EVERY, "spellings", "once"), [(1,)]),
        ("What is the total price in dollars of all pets whose owner has the city 'new york'?", EVERY, [(-1,)]),
        ("What is the total price in dollars of all pets whose owner has the city 'york'?", (*EVERY, "units"), [(10,)]),
        ("Give the name of all pets with the kind 'dog'.", ("spellings", "id"), [(1, "a"), (2, "b")]),
        ("Give the name of all pets with the kind 'dog'.", ("spellings", "one", "sort"), [("a",)]),
        ("How many owners have the city 'york'?", ("guess",), [(1,)]),
    ],
)  # fmt: skip
def test_instructions_change_what_is_asked(
    question: str, told: tuple[str, ...], found: list[tuple[object, ...]]
) -> None:
    assert rows(question, *told) == [
        tuple(pytest.approx(x) if isinstance(x, float) else x for x in row) for row in found
    ]


def test_whole_numbers_are_divided_as_such_unless_told() -> None:
    asked = "What percentage of all owners have the city 'york'?"
    assert rows(asked, "meanings") == [(33,)]
    assert rows(asked, "meanings", "decimals") == [(pytest.approx(100 / 3),)]
    assert rows(asked, "meanings", "decimals", "round") == [(33,)]
    assert rows("What is the average price of the pets?", "zero") == [(pytest.approx(1299 / 4),)]


def test_what_the_report_lacks_cannot_be_used() -> None:
    asked = "How many owners have the city 'york'?"
    with pytest.raises(Cannot, match="no column for the city in Owners"):
        rows(asked)
    with pytest.raises(Cannot, match="no table of owners"):
        rows(asked, report="table pets\ncolumn pets.id")
    with pytest.raises(Cannot, match="no join between pets and Owners"):
        rows("Give the name of all pets whose owner has the city 'york'.", "meanings")
    with pytest.raises(Cannot, match="of no kind"):
        rows("Who is the best?")
    with pytest.raises(sqlite3.OperationalError, match="ambiguous"):
        rows("Give the name of all pets whose owner has the city 'york'.", "meanings", "joins")
    plain = REPORT.replace("own_ref", "owner_id").replace("join pets", "no pets")
    assert 'ON "pets"."owner_id" = "Owners"."id"' in write(
        "Give the name of all pets whose owner has the city 'york'.", read_report(plain), frozenset({"meanings"})
    )


def test_reports_and_names() -> None:
    found = read_report(REPORT)
    assert found.values == {("pets", "kind"): ["Dog", "DOG ", "hot_dog", None]}
    assert found.missing == {("pets", "price"): [-1]}
    assert read_report("unit a.b: cents\nunit a.b: grams").units == {("a", "b"): "cents"}
    assert read_report("table x y\ncolumn nowhere\njoin a = b\nmissing a.b: [1]").columns == {}
    assert read_report("values x.y: " + "[" * 2000 + "\nmissing x.y: " + "[" * 2000 + "\nunit x.y: g").units == {
        ("x", "y"): "g"
    }
    assert words("tbl_purchase_date") == ["purchase", "date"]
    assert words("HousesTable") == ["houses"]


def test_every_sentence_of_the_library_is_understood() -> None:
    sentences = {name: c.code for name, c in components().items() if c.role == "sentence"}
    assert {name: directives(code) for name, code in sentences.items()} == {name: {name} for name in sentences}
    assert {*sentences} == {*SENTENCES.values()}
    assert directives("Be quick. IGNORE\n case, and convert units.") == {"case", "units"}
