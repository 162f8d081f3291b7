"""The library that faults are planted in: right by other means, in splits that share nothing, with faults that show."""

from __future__ import annotations

import ast
import calendar
import datetime
import json
import math
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from evolvent.guard.sandbox import Call, Sandbox
from evolvent.tasks.base import SPLITS
from evolvent.tasks.worlds.repair import world
from evolvent.tasks.worlds.repair.faults import KINDS, faults, planted
from evolvent.tasks.worlds.repair.harness import same
from evolvent.tasks.worlds.repair.units import units

OTHERWISE = {  # the same by other means
    "insertion_sort": sorted,
    "merge_sort": sorted,
    "distinct": lambda items: list(dict.fromkeys(items)),
    "partition": lambda items, p: [[x for x in items if f(x)] for f in (p.__gt__, p.__eq__, p.__lt__)],
    "run_lengths": lambda text: [[k, len(list(g))] for k, g in groupby(text)],
    "power_mod": pow,
    "square_root": math.isqrt,
    "polynomial": lambda c, x: sum(a * x**i for i, a in enumerate(c)),
    "primes": lambda n: [p for p in range(2, n + 1) if all(p % d for d in range(2, p))],
    "weekday": calendar.weekday,
    "day_of_year": lambda y, m, d: datetime.date(y, m, d).timetuple().tm_yday,
    "lowest_terms": lambda a, b: list(__import__("fractions").Fraction(a, b).as_integer_ratio()),
    "turned": lambda rows, n: [list(r) for r in __import__("numpy").rot90(rows, -n).tolist()],
    "product": lambda a, b: (__import__("numpy").array(a) @ __import__("numpy").array(b)).tolist(),
    "determinant": lambda rows: round(float(__import__("numpy").linalg.det(rows))),
}


@pytest.mark.parametrize("function", OTHERWISE)
def test_right_answers_are_right(function: str) -> None:
    for arguments, wanted in units()[function].tests:
        try:
            found = {"gives": OTHERWISE[function](*arguments)}
        except (ValueError, ZeroDivisionError):
            found = {"raises": "ValueError"}
        assert found == wanted, (function, arguments)


def test_splits_share_no_function() -> None:
    names = {split: {u.function for u in units().values() if u.split == split} for split in SPLITS}
    assert {split: len(found) for split, found in names.items()} == {"train": 33, "gate": 11, "test": 22}
    defined: dict[str, set[str]] = {split: set() for split in SPLITS}
    for unit in units().values():
        tree = ast.parse(unit.source)
        defined[unit.split] |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        assert unit.function in defined[unit.split]
        assert not any(isinstance(n, ast.AnnAssign) for n in ast.walk(tree))
    assert not defined["train"] & defined["test"]
    assert not defined["train"] & defined["gate"]
    assert not defined["gate"] & defined["test"]
    found = world.world("60").instances
    assert {name.rpartition("-")[0] for name in found["train"]} <= names["train"]
    assert {name.rpartition("-")[0] for name in found["test"]} <= names["test"]
    assert [len(found[split]) for split in SPLITS] == [60, 30, 60]
    assert len({n.rpartition("-")[0] for n in found["train"][:33]}) == 33  # as many functions as there are


def test_a_fault_is_one_small_change_and_can_be_made_again() -> None:
    for name, (unit, row) in world.bugs().items():
        assert world.bug(name)["source"] == planted(unit.source, row["kind"], row["number"])
        assert ast.dump(ast.parse(world.bug(name)["source"])) != ast.dump(ast.parse(unit.source))
    assert set(KINDS) == {row["kind"] for _, row in world.bugs().values()}
    unit = units()["clock"]
    every = list(faults(unit.source))
    assert len({text for *_, text in every} - {unit.source}) > 50
    counts = Counter(kind for kind, *_ in every)
    assert [number for kind, number, _ in every if kind == "off_by_one"] == list(range(counts["off_by_one"]))
    assert ast.unparse(ast.parse(unit.source)) + "\n" == unit.source  # all changes were taken back


def test_faults_show_in_visible_and_in_hidden_tests(sandboxed: str) -> None:
    names = list(world.bugs())[::60]
    rows = []
    for name in names:
        unit, _ = world.bugs()[name]
        calls = [arguments for arguments, _ in unit.tests]
        rows += [
            {"source": text, "function": unit.function, "calls": calls}
            for text in (unit.source, world.bug(name)["source"])
        ]
    with Sandbox(1, ()) as sandbox:
        (outcome,) = sandbox.run([Call({"harness.py": world.HARNESS}, "harness", "results", (rows, 5.0))])
    for name, good, bad in zip(names, outcome.value[::2], outcome.value[1::2], strict=True):
        unit, row = world.bugs()[name]
        assert all(same(g, dict(w)) for g, (_, w) in zip(good, unit.tests, strict=True))
        wrong = [i for i, (g, (_, w)) in enumerate(zip(bad, unit.tests, strict=True)) if not same(g, dict(w))]
        assert set(wrong) & set(row["visible"]), name
        assert set(wrong) - set(row["visible"]), name


def test_the_file_of_faults_is_whole() -> None:
    rows = json.loads((Path(world.__file__).parent / "faults.json").read_text())
    assert len(rows) == 660
    assert set(Counter(row["function"] for row in rows).values()) == {10}
    assert all(len(row["visible"]) <= 6 < len(units()[row["function"]].tests) for row in rows)
