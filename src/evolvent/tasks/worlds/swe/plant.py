"""Chooses the faults of the world: `python -m evolvent.tasks.worlds.swe.plant` writes faults.json anew.

A fault counts if a test of the suite fails, at least half of them pass, the suite ends in time, and the original takes
it back within what a patch may change. Of each function up to `EACH` are kept, of different kinds first. What a faulty
repository does is found out in the sandbox, since it may never end.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evolvent.core.random import stream
from evolvent.guard.sandbox import Call, Limits, Sandbox
from evolvent.tasks.base import Split
from evolvent.tasks.worlds.repair.faults import KINDS
from evolvent.tasks.worlds.swe.admit import refusal
from evolvent.tasks.worlds.swe.bugs import visible
from evolvent.tasks.worlds.swe.calls import PRELOAD, SIDE, VERIFIER
from evolvent.tasks.worlds.swe.sources import Repository, functions, repositories

FILE = Path(__file__).with_name("faults.json")
MOST = 36  # functions of a repository
EACH, TRIED = 2, 4  # faults of a function that are kept, and that are looked at
PASSING, LOOKED_AT = 2, 3  # visible tests that pass; failing ones of which one becomes visible
SECONDS = 5.0  # of the processor, for one suite
LIMITS = Limits(seconds=300.0)
TURN: tuple[Split, ...] = ("train", "test", "gate", "train", "test")  # of the functions, one after the other

Fault = tuple[str, int, str]  # kind, number, faulty file


def candidates(text: str, function: str, rng: np.random.Generator) -> list[Fault]:
    """Faults of a function to look at, each program once, kinds in turn."""
    tree = ast.parse(text)
    node, seen = functions(tree)[function], {text}
    kinds = {kind: list(find(node)) for kind, find in KINDS.items()}
    waiting = {kind: rng.permutation(len(changes)).tolist() for kind, changes in kinds.items()}
    found: list[Fault] = []
    while any(waiting.values()):
        for kind in [list(waiting)[i] for i in rng.permutation(len(waiting))]:
            if waiting[kind]:
                number = waiting[kind].pop()
                make, undo = kinds[kind][number]
                make()
                made = ast.unparse(tree) + "\n"
                undo()
                if made not in seen and not refusal(made, text) and not refusal(text, made):
                    found.append((kind, number, made))
                    if len(found) == TRIED:
                        return found
                seen.add(made)
    return found


@dataclass(frozen=True)
class Suite:
    """The tests of a repository that pass as it is, and which functions they execute.

    tests     {"name", "function", "arguments"}; the function is None where a test needs more than its arguments
    executed  (file, function) -> numbers of tests; functions that run when the package is imported are left out, since
              a fault in these concerns all tests
    """

    it: Repository
    tests: Sequence[Mapping[str, Any]]
    executed: Mapping[tuple[str, str], Sequence[int]]


def inventory(sandbox: Sandbox) -> list[Suite]:
    """The suites of all repositories."""
    given = {name: it.data() for name, it in repositories().items()}
    [outcome] = sandbox.run([Call(VERIFIER, "suite", "inventory", (given, 8 * SECONDS))], LIMITS)
    return [suite(it, **outcome.value[name]) for name, it in repositories().items()]


def suite(it: Repository, tests: Sequence[Mapping[str, Any]], executed: Mapping[str, Sequence[Any]]) -> Suite:
    """A suite, of what the sandbox gave. Cases of a test are sorted, since some are made from sets."""
    order = list(dict.fromkeys(test["name"].partition("[")[0] for test in tests))
    passing = [test for test in tests if test["mark"] == "p"]
    passing.sort(key=lambda test: (order.index(test["name"].partition("[")[0]), test["name"]))
    found: dict[tuple[str, str], list[int]] = {}
    for file, text in it.files.items():
        for name, node in functions(ast.parse(text)).items():
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            inside = range(first, (node.end_lineno or first) + 1)
            ran = {test for test, codes in executed.items() if any(path == file and n in inside for path, n in codes)}
            if ran and "" not in ran:
                found[file, name] = [i for i, test in enumerate(passing) if test["name"] in ran]
    return Suite(it, passing, {place: numbers for place, numbers in found.items() if numbers})


def chosen(of: Suite, file: str, function: str, seed: int, sandbox: Sandbox) -> list[dict[str, Any]]:
    """The faults of one function: what they are, which tests fail (numbers in `tests`), which are visible, the report.

    Only tests that execute the function can fail; all others count as passing."""
    it, rng = of.it, stream(seed, "faults", of.it.name, file, function)
    numbers = of.executed[file, function]
    wanted = [of.tests[i]["name"] for i in numbers]
    looked_at = candidates(it.files[file], function, rng)
    rows = [{"repository": it.name, "changed": {file: made}, "wanted": wanted} for _, _, made in looked_at]
    call = Call(VERIFIER, "suite", "suites", ({it.name: it.data()}, rows, len(wanted), SECONDS))
    marks: Sequence[str] = sandbox.run([call], LIMITS)[0].value if rows else []
    found: list[dict[str, Any]] = []
    for (kind, number, made), mark in zip(looked_at, marks, strict=True):
        fails = [i for i, letter in zip(numbers, mark, strict=True) if letter == "f"]
        if len(found) == EACH or not fails or 2 * len(fails) > len(of.tests) or "-" in mark:
            continue
        mixed = [int(i) for i in rng.permutation(numbers) if of.tests[i]["function"]]
        bad, good = [i for i in mixed if i in fails][:LOOKED_AT], [i for i in mixed if i not in fails][:PASSING]
        shows, report = exhibited(of, {**it.files, file: made}, bad, good, sandbox)
        if shows:
            row = {"repository": it.name, "file": file, "function": function, "kind": kind, "number": number}
            found.append({**row, "fails": fails, "visible": shows, "report": report})
    return found


def exhibited(
    of: Suite, files: Mapping[str, str], bad: Sequence[int], good: Sequence[int], sandbox: Sandbox
) -> tuple[list[int], str]:
    """Visible tests, one of the bad ones before the good ones, and how that fails; only those that do so by themselves,
    and none where no bad one does."""
    tests = [visible(of.it, of.tests[i]) for i in [*bad, *good]]
    rows = [{"files": files, "tests": tests}, {"files": dict(of.it.files), "tests": tests}]
    faulty, right = sandbox.run([Call(SIDE, "runner", "runs_of", (rows,))], LIMITS)[0].value
    cases = list(zip([*bad, *good], faulty, right, strict=True))
    shows = [(i, was["error"]) for i, was, now in cases if now["passed"] and not was["passed"] and was["error"]]
    others = [i for i, was, now in cases if now["passed"] and was["passed"] and i in good]
    return ([shows[0][0], *others], shows[0][1]) if shows else ([], "")


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write faults.json anew.")
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    rows: list[dict[str, Any]] = []
    with Sandbox(1, PRELOAD) as sandbox:
        suites, count = inventory(sandbox), 0
        for of in suites:
            places = list(of.executed)
            drawn = stream(seed, "functions", of.it.name).permutation(len(places))[:MOST].tolist()
            for file, function in [places[i] for i in sorted(drawn)]:
                found = chosen(of, file, function, seed, sandbox)
                rows += [{"split": TURN[count % len(TURN)], **row} for row in found]
                count += bool(found)
                print(of.it.name, file, function, len(found), flush=True)
    kept = (
        (of.it.name, [{k: test[k] for k in ("name", "function", "arguments")} for test in of.tests]) for of in suites
    )
    tests = ",\n".join(f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in kept)
    lines = ",\n".join(json.dumps(row) for row in rows)
    FILE.write_text(f'{{"seed": {seed},\n"tests": {{\n{tests}\n}},\n"faults": [\n{lines}\n]}}\n')
    print(f"{len(rows)} faults in {count} functions")


if __name__ == "__main__":
    main()
