"""The world `repair`: an agent, itself a program, mends small repositories with planted faults.

An instance is one fault in one function of the library. The agent sees the faulty program and some tests of it, of
which some fail, and may run tests `RUNS` times. The value is the share of instances where its patch passes all hidden
tests. These run in a call of their own, of which the judge here gets what each call gives; right answers never enter
the sandbox, so nothing that an agent or its patch does there can fake success.

An agent has `solve` and `improve`. The latter changes an agent's text, its own as a rule, with a library of components:
operators that make patches, ways to find the place and to order patches, and ways to choose, check and put in
components. Some are good, some useless, some wrong.
"""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from evolvent.guard.sandbox import Call, Limits
from evolvent.tasks.base import Split
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM, World
from evolvent.tasks.worlds.repair.faults import planted
from evolvent.tasks.worlds.repair.harness import same
from evolvent.tasks.worlds.repair.units import Unit, units
from evolvent.tasks.worlds.sized import read_size

HERE = Path(__file__).parent
HARNESS = (HERE / "harness.py").read_text()
SEED = (HERE / "agent.txt").read_text()
STAGES = (10, 30)  # instances after the first stage and after the second; the third has the rest
RUNS = 120  # of visible tests, for one instance
SECONDS = 2.0  # of the processor, for one instance
TRIES = 4  # of a changed agent on an instance, while it is being changed
LONGEST = 20_000  # characters of a patched program

GOAL = """Improve an agent that repairs Python functions. `solve(source, tools)` returns the patched source of a faulty
program: tools.examples are visible tests of tools.function, tools.test(text, i) runs the i-th on a program,
tools.trace(text, i) also gives the lines that were executed; together they run tools.left times at most, then Exhausted
is raised. `improve(own, entry, log, components, shop)` returns the text of a changed agent and a note. The value is the
share of faults that the agent repairs, which hidden tests decide. Both functions have to stay."""


@functools.cache
def bugs() -> Mapping[str, tuple[Unit, Mapping[str, Any]]]:
    """All instances: name -> (repository, fault). Of each function the first faults come first."""
    rows = json.loads((HERE / "faults.json").read_text())
    counts: dict[str, int] = {}
    numbered = []
    for row in rows:
        counts[row["function"]] = counts.get(row["function"], 0) + 1
        numbered.append((counts[row["function"]], row))
    order = list(units())
    Random("order of functions 6").shuffle(order)  # of the first ten, the seed agent solves one
    numbered.sort(key=lambda pair: (pair[0], order.index(pair[1]["function"])))
    return {f"{row['function']}-{number}": (units()[row["function"]], row) for number, row in numbered}


@functools.cache
def bug(name: str) -> Mapping[str, Any]:
    """An instance as the agent sees it: `name`, `function`, the faulty `source` and its `examples`."""
    unit, row = bugs()[name]
    examples = [{"arguments": unit.tests[i][0], **unit.tests[i][1]} for i in row["visible"]]
    source = planted(unit.source, row["kind"], row["number"])
    return {"name": name, "function": unit.function, "source": source, "examples": examples}


def hidden(name: str) -> list[tuple[list[Any], Mapping[str, Any]]]:
    """The tests of an instance that nobody sees."""
    unit, row = bugs()[name]
    return [test for i, test in enumerate(unit.tests) if i not in row["visible"]]


@functools.cache
def components() -> tuple[Mapping[str, Any], ...]:
    """What `improve` may put into an agent: `name`, `role`, what it `serves`, `code`."""
    found = []
    for part in ("\n" + (HERE / "components.txt").read_text()).split("\n# ")[1:]:
        head, _, code = part.partition("\n")
        name, role, serves = (piece.strip() for piece in head.split("|"))
        found.append({"name": name, "role": role, "serves": serves.split(), "code": code.strip() + "\n"})
    return tuple(found)


def call(text: str, names: Sequence[str]) -> Call:
    """The agent on instances."""
    files = {"harness.py": HARNESS, PROGRAM: text}
    return Call(files, "harness", "attempts", ([bug(name) for name in names], RUNS, SECONDS))


def attempts(value: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """What the agent made of each instance; nothing is taken for granted of what came back."""
    rows = value.get("attempts") if isinstance(value, dict) else None
    rows = rows if isinstance(rows, list) and len(rows) == len(names) else [None] * len(names)
    return [row if isinstance(row, dict) else {"error": "no answer"} for row in rows]


def patches(value: Any, names: Sequence[str]) -> list[str]:
    """What the agent handed in; the faulty program where that is nothing."""
    texts = [row.get("patch") for row in attempts(value, names)]
    usable = [isinstance(text, str) and len(text) <= LONGEST for text in texts]
    return [str(text) if ok else bug(name)["source"] for text, ok, name in zip(texts, usable, names, strict=True)]


def check(value: Any, names: Sequence[str]) -> Call:
    """What was handed in on the hidden tests."""
    rows = [
        {"source": text, "function": bug(name)["function"], "calls": [arguments for arguments, _ in hidden(name)]}
        for text, name in zip(patches(value, names), names, strict=True)
    ]
    return Call({"harness.py": HARNESS}, "harness", "results", (rows, SECONDS))


def judge(value: Any, names: Sequence[str]) -> Evaluation:
    """The verdict on (what the agent gave, what its patches gave).

    Metrics beside those of instances: `empty/NAME` where the patch changes nothing, `exhausted/NAME` where no runs were
    left. Not valid is an agent without `solve` and `improve`, or whose patches are all empty (of a whole first stage).
    """
    first, second = value
    lacking = {"solve", "improve"} - set(first.get("defined") or () if isinstance(first, dict) else ())
    if lacking:
        why = next((str(row["error"])[:200] for row in attempts(first, names) if row.get("error")), "")
        return invalid(f"the agent has no function {' and no '.join(sorted(lacking))}: {why}")
    values, metrics, errors = {}, {}, []
    rows = second if isinstance(second, list) and len(second) == len(names) else [None] * len(names)
    for name, text, attempt, given in zip(names, patches(first, names), attempts(first, names), rows, strict=True):
        tests = hidden(name)
        values[name] = float(passes(given, tests))
        if is_same(text, bug(name)["source"]):
            metrics[f"empty/{name}"] = 1.0
        if attempt.get("exhausted") is True:
            metrics[f"exhausted/{name}"] = 1.0
        if attempt.get("error"):
            errors.append(f"{name}: {attempt['error']!s:.200}")
    if len(names) >= STAGES[0] and sum(f"empty/{name}" in metrics for name in names) == len(names):
        return invalid("\n".join(["all patches are empty", *errors[:3]]))
    if not names:  # it works; nothing is known of how well
        return Evaluation(0.0)
    found = over_instances(values, metrics)
    return Evaluation(found.value, found.metrics, "\n".join(errors[:3]))


def passes(given: Any, tests: Sequence[tuple[list[Any], Mapping[str, Any]]]) -> bool:
    """Whether what came back of the tests is right, all of it."""
    if not isinstance(given, list) or len(given) != len(tests):
        return False
    return all(isinstance(g, dict) and same(g, dict(wanted)) for g, (_, wanted) in zip(given, tests, strict=True))


def is_same(text: str, source: str) -> bool:
    """Whether two programs are the same but for their layout."""
    try:
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def logs(text: str, names: Sequence[str]) -> Call:
    """What an agent makes of instances, with all that it sees: what a diagnosis is made from."""
    files = {"harness.py": HARNESS, PROGRAM: text}
    return Call(files, "harness", "logs", ([bug(name) for name in names], RUNS, SECONDS))


def improve(text: str, editor: str, entry: str, names: Sequence[str], seed: int) -> Call:
    """`improve` of the editor's text on an agent."""
    files = {"harness.py": HARNESS, PROGRAM: text}
    chosen = [bug(name) for name in names]
    library = [dict(component) for component in components()]
    return Call(files, "harness", "improved", (editor, entry, chosen, library, RUNS, SECONDS, TRIES, str(seed)))


def world(size: str = "60") -> World:
    """The world of so many faults to search with, half as many for gates, and as many for evidence; up to those that
    there are. `UserError` for a size that is no number in range."""
    named: dict[Split, list[str]] = {"train": [], "gate": [], "test": []}
    for name, (unit, _) in bugs().items():
        named[unit.split].append(name)
    n = read_size("repair", size, STAGES[0], len(named["train"]), "faults")
    train = tuple(named["train"][:n])
    cuts = [0, *(cut for cut in STAGES if cut < n), n]
    return World(
        name=f"program:repair:{n}",
        goal=GOAL,
        seed=SEED,
        call=call,
        judge=judge,
        instances={"train": train, "gate": tuple(named["gate"][: n // 2]), "test": tuple(named["test"][:n])},
        stages=tuple(train[a:b] for a, b in pairwise(cuts)),
        limits=Limits(seconds=300.0, memory=1024),
        preload=("ast", "json", "random"),
        check=check,
        improve=improve,
        logs=logs,
    )
