"""The repositories and their faults: suites pass as they are, faults show, splits share nothing, all of it repeats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import pytest

from evolvent.guard.sandbox import Call, Limits, Sandbox
from evolvent.tasks.base import SPLITS
from evolvent.tasks.worlds.swe import plant
from evolvent.tasks.worlds.swe.admit import refusal
from evolvent.tasks.worlds.swe.bugs import FILE, bugs
from evolvent.tasks.worlds.swe.calls import PRELOAD, SIDE, VERIFIER
from evolvent.tasks.worlds.swe.sources import FOLDER, functions, planted, repositories


@pytest.fixture(scope="module")
def sandbox(sandboxed: str) -> Iterator[Sandbox]:
    with Sandbox(1, PRELOAD) as found:
        yield found


def test_every_repository_has_its_licence_and_is_named_in_the_notice() -> None:
    notice = (FOLDER / "NOTICE.md").read_text()
    assert set(repositories()) == {"boltons", "inflection", "parse", "toolz"}
    for name, it in repositories().items():
        text = " ".join((FOLDER / name / "LICENSE").read_text().split())
        assert "Copyright (c)" in text.replace("(C)", "(c)")
        assert "Permission is hereby granted" in text or "Redistribution and use in source" in text
        assert f"| `{name}` |" in notice
        assert it.files
        assert all(path.startswith("tests/") for path in it.tests)
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 410_000


@pytest.fixture(scope="module")
def suites(sandbox: Sandbox) -> list[plant.Suite]:
    return plant.inventory(sandbox)


@pytest.mark.slow
def test_suites_pass_as_they_are_and_the_committed_names_are_theirs(suites: list[plant.Suite]) -> None:
    known = json.loads(FILE.read_text())["tests"]
    keys = ("name", "function", "arguments")
    assert {of.it.name: [{key: test[key] for key in keys} for test in of.tests] for of in suites} == known
    assert {name: len(tests) for name, tests in known.items()} == {
        "boltons": 54, "inflection": 455, "parse": 96, "toolz": 141,
    }  # fmt: skip


@pytest.mark.slow
def test_a_planted_fault_fails_and_the_original_repairs_it(sandbox: Sandbox) -> None:
    sample = [next(b for b in bugs().values() if b.repository.name == name) for name in repositories()]
    rows = []
    for it in sample:
        faulty = {it.file: it.files[it.file]}
        rows += [{"repository": it.repository.name, "changed": c, "wanted": it.suite} for c in (faulty, {})]
    given = {name: it.data() for name, it in repositories().items()}
    (outcome,) = sandbox.run([Call(VERIFIER, "suite", "suites", (given, rows, 10_000, 10.0))], Limits(seconds=200))
    for it, faulty, right in zip(sample, outcome.value[::2], outcome.value[1::2], strict=True):
        assert faulty == "f" * it.fails + "p" * (len(it.suite) - it.fails), it.name
        assert right == "p" * len(it.suite)


def test_visible_tests_show_the_fault_and_pass_without_it(sandbox: Sandbox) -> None:
    sample = list(bugs().values())[::24]
    rows = [{"files": dict(f), "tests": list(b.visible)} for b in sample for f in (b.files, b.repository.files)]
    (outcome,) = sandbox.run([Call(SIDE, "runner", "runs_of", (rows,))], Limits(seconds=200))
    for it, faulty, right in zip(sample, outcome.value[::2], outcome.value[1::2], strict=True):
        assert [given["passed"] for given in faulty] == [False] + [True] * (len(it.visible) - 1), it.name
        assert faulty[0]["error"] == it.report
        assert all(given["passed"] for given in right), it.name


def test_splits_share_no_function() -> None:
    found = {split: {(b.file, b.function) for b in bugs().values() if b.split == split} for split in SPLITS}
    for one, other in combinations(found.values(), 2):
        assert not one & other
    counts = Counter(b.split for b in bugs().values())
    assert counts["train"] >= 48
    assert counts["gate"] >= 24
    assert counts["test"] >= 48
    for split in SPLITS:
        assert {b.repository.name for b in bugs().values() if b.split == split} == set(repositories())


@pytest.mark.slow
def test_faults_are_no_duplicates_leave_half_of_the_tests_and_can_be_taken_back() -> None:
    seen = set()
    for it in bugs().values():
        text, right = it.files[it.file], it.repository.files[it.file]
        assert text == planted(right, it.function, it.kind, it.number)
        assert (it.file, text) not in seen
        seen.add((it.file, text))
        assert text != right
        assert refusal(right, text) == ""
        compile(text, it.file, "exec")
        assert 0 < it.fails <= len(it.suite) / 2
        assert len(set(it.suite)) == len(it.suite)
        assert it.visible[0]["name"] in it.suite[: it.fails]
        assert all(test["name"] in it.suite[it.fails :] for test in it.visible[1:])


def test_names_of_functions_lead_to_what_python_calls_so() -> None:
    import ast

    tree = ast.parse("def a(): return 1\n\n\nclass B:\n    def a(self): pass\n\n\ndef a(): return 2\n")
    assert list(functions(tree)) == ["a", "B.a"]
    assert ast.unparse(functions(tree)["a"]).endswith("2")


@pytest.mark.slow
def test_the_generator_gives_the_committed_faults(sandbox: Sandbox, suites: list[plant.Suite]) -> None:
    data = json.loads(FILE.read_text())
    wanted = [
        {key: value for key, value in row.items() if key != "split"}
        for row in data["faults"]
        if (row["file"], row["function"]) == ("inflection/__init__.py", "ordinal")
    ]
    assert wanted
    (of,) = [of for of in suites if of.it.name == "inflection"]
    assert plant.chosen(of, "inflection/__init__.py", "ordinal", data["seed"], sandbox) == wanted
