"""Questions against a solver that is written anew here; tools against values by hand."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal, getcontext

import pytest

from evolvent.tasks.base import split_of
from evolvent.tasks.worlds.workflow.questions import KINDS, named, names, question
from evolvent.tasks.worlds.workflow.tools import calculate, use
from evolvent.tasks.worlds.workflow.units import ToolError, rounded, show

FACTOR = {"km": "1", "mi": "1.609344", "kg": "1", "lb": "0.45359237", "km/h": "1", "mph": "1.609344", "coins/kg": "1"}


def amount(tables: dict[str, tuple[str, ...]], table: str, name: str) -> Decimal:
    """What a reader finds: the record of that name, its last number with a unit."""
    [row] = [r.removeprefix(f"{name}: ") for r in tables[table] if r.startswith(f"{name}: ")]
    number, unit = re.findall(r"(\d+\.\d+) ([a-z/]+)", row)[-1]
    if unit == "coins/lb":
        return Decimal(number) / Decimal("0.45359237")
    return Decimal(number) * Decimal(FACTOR[unit])


def solved(kind: str, text: str, tables: dict[str, tuple[str, ...]]) -> Decimal:
    w = re.findall(r"\w+", text)

    def road(a: str, b: str) -> Decimal:
        return amount(tables, "roads", min(a, b) + "-" + max(a, b))

    def person(name: str, what: str) -> str:
        [row] = [r for r in tables["people"] if r.startswith(f"{name}: ")]
        return re.search(rf"{what} (\w+)", row)[1]  # type: ignore[index]

    if kind == "weigh":
        n, g, m, h = (w[i] for i in (2, 5, 7, 10))
        return int(n) * amount(tables, "goods", g) + int(m) * amount(tables, "goods", h)
    if kind == "price":
        return int(w[6]) * amount(tables, "goods", w[9]) * amount(tables, "carriers", w[11])
    if kind == "ride":
        return 60 * road(w[10], w[12]) / amount(tables, "vehicles", w[4])
    if kind == "tour":
        a, b, c, d = (w[i] for i in (6, 8, 10, 12))
        return road(a, b) + road(b, c) + road(c, d)
    if kind == "home":
        return 2 * road(person(w[8], "home"), w[10])
    return 60 * road(person(w[3], "home"), w[8]) / amount(tables, "vehicles", person(w[3], "vehicle"))


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_what_the_tables_say(kind: str) -> None:
    getcontext().prec = 40
    for number in range(60):
        q = question(kind, number)
        exact = solved(kind, q.text, dict(q.tables))
        assert q.answer == str(exact.quantize(Decimal(1).scaleb(-q.decimals), ROUND_HALF_UP)), q.text


def test_splits_have_no_question_in_common() -> None:
    splits = {split: names(split, 4) for split in ("train", "gate", "test")}
    assert all(split_of(named(n).key) == split for split, found in splits.items() for n in found)
    assert len({n for found in splits.values() for n in found}) == 3 * 4 * len(KINDS)
    assert [n.partition("-")[0] for n in splits["gate"][:6]] == list(KINDS)
    assert question("ride", 3, seed=1).text != question("ride", 3).text or (
        question("ride", 3, seed=1).tables != question("ride", 3).tables
    )


def test_tools() -> None:
    q = question("ride", 0)
    name = q.wants["a"][1]
    rows = use("lookup", {"table": "roads", "name": name}, q).split("\n")
    assert rows == [r for r in q.tables["roads"] if r.startswith(name)]
    assert use("lookup", {"table": "roads", "name": "Nowhere"}, q) == "nothing found"
    assert use("converter", {"number": "10", "unit": "mi"}, q) == "16.09344 km"
    assert use("converter", {"number": "1", "unit": "coins/lb"}, q) == "2.20462262184878 coins/kg"
    assert use("calculator", {"expression": "60*12.5/(3-.5)"}, q) == "300"
    assert show(calculate("1/3")) == "0.333333333333333"
    assert [rounded(calculate(x), d) for x, d in (("2.5", 0), ("-0.04", 1), ("1.005", 2), ("7", 2))] == [
        "3", "0.0", "1.01", "7.00"
    ]  # fmt: skip


@pytest.mark.parametrize("call", ["2**9", "__import__('os')", "a+1", "1/0", "(" * 400, "1e9*3", "", "True+1"])
def test_the_calculator_only_calculates(call: str) -> None:
    with pytest.raises(ToolError):
        calculate(call)


def test_calls_that_make_no_sense() -> None:
    q = question("ride", 0)
    for tool, arguments in (("shell", {}), ("lookup", {"table": "x", "name": "y"}), ("converter", {"number": "1"})):
        with pytest.raises(ToolError):
            use(tool, arguments, q)
    with pytest.raises(ToolError, match="no number"):
        use("converter", {"number": "nan", "unit": "mi"}, q)
