"""Chooses the faults of the world: `python -m evolvent.tasks.worlds.repair.plant` writes faults.json anew.

A fault counts if a visible test shows it and hidden tests do, too. Of each function up to `EACH` are drawn, of
different kinds first. What a faulty program gives is found out in the sandbox, since it may never end.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from random import Random
from typing import Any

from evolvent.guard.sandbox import Call, Limits, Sandbox
from evolvent.tasks.worlds.repair.faults import faults
from evolvent.tasks.worlds.repair.harness import same
from evolvent.tasks.worlds.repair.units import Unit, units

FILE = Path(__file__).with_name("faults.json")
HARNESS = Path(__file__).with_name("harness.py")
EACH, FAILING, PASSING = 10, 3, 3  # faults of a function; visible tests that fail, and that pass
HIDDEN = 2  # hidden tests that have to fail
TRIED = 40  # faults of a function that are looked at


def candidates(unit: Unit, rng: Random) -> list[tuple[str, int, str]]:
    """Faults to look at, each program once, kinds in turn."""
    seen = {ast.dump(ast.parse(unit.source))}
    kinds: dict[str, list[tuple[str, int, str]]] = {}
    for fault in faults(unit.source):
        form = ast.dump(ast.parse(fault[2]))
        if form not in seen:
            seen.add(form)
            kinds.setdefault(fault[0], []).append(fault)
    for group in kinds.values():
        rng.shuffle(group)
    order: list[tuple[str, int, str]] = []
    while any(kinds.values()) and len(order) < TRIED:
        order += [group.pop() for group in rng.sample(list(kinds.values()), len(kinds)) if group]
    return order[:TRIED]


def chosen(unit: Unit, sandbox: Sandbox) -> list[dict[str, Any]]:
    """The faults of one function, with the numbers of their visible tests."""
    rng = Random(f"faults of {unit.function}")
    looked_at = candidates(unit, rng)
    calls = [arguments for arguments, _ in unit.tests]
    patches = [{"source": program, "function": unit.function, "calls": calls} for _, _, program in looked_at]
    files = {"harness.py": HARNESS.read_text()}
    outcome = sandbox.run([Call(files, "harness", "results", (patches, 3.0))], Limits(seconds=300.0))[0]
    found: list[dict[str, Any]] = []
    for (kind, number, _), given in zip(looked_at, outcome.value, strict=True):
        if len(found) == EACH or not isinstance(given, list):
            continue
        passes = [same(g, dict(wanted)) for g, (_, wanted) in zip(given, unit.tests, strict=True)]
        bad, good = ([i for i, passed in enumerate(passes) if passed == which] for which in (False, True))
        if len(bad) < HIDDEN + 1:
            continue
        shown = rng.sample(bad, min(FAILING, len(bad) - HIDDEN)) + rng.sample(good, min(PASSING, len(good)))
        found.append({"function": unit.function, "kind": kind, "number": number, "visible": sorted(shown)})
    return found


def main() -> None:
    """Write the file."""
    with Sandbox(2, ()) as sandbox:
        rows = []
        for unit in units().values():
            rows += chosen(unit, sandbox)
    FILE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print(f"{len(rows)} faults in {len(units())} functions")


if __name__ == "__main__":
    main()
