"""The world `swe`: an agent, itself a program, mends small packages with planted faults; their pytest suites decide.

An instance is one fault in one function of a package that others wrote. The agent sees the sources, how one test fails,
that test and up to two that pass, and may run these `RUNS` times. The value is the share of instances where the whole
suite of the package passes with what it changed: all tests that failed, and all that passed. The suite runs in a call
of its own, which gets nothing of the agent's but sources that `admit.py` lets through; no file of a test comes from it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Call, Limits
from evolvent.tasks.base import Split
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM, World
from evolvent.tasks.worlds.repair.patches import tools
from evolvent.tasks.worlds.repair.world import attempts
from evolvent.tasks.worlds.repair.world import components as mending
from evolvent.tasks.worlds.sized import read_size
from evolvent.tasks.worlds.swe.admit import refusal
from evolvent.tasks.worlds.swe.bugs import Bug, bugs
from evolvent.tasks.worlds.swe.calls import PRELOAD, SIDE, VERIFIER

HERE = Path(__file__).parent
SEED = (HERE / "agent.txt").read_text()
STAGES = (8, 24)  # instances after the first stage and after the second; the third has the rest
RUNS = 40  # of visible tests, for one instance
SECONDS = 4.0  # of the processor, for an agent on one instance, without the tests that it runs
SUITE = 5.0  # of the processor, for a suite
TRIES = 3  # of a changed agent on an instance, while it is being changed
OTHERS = ("last_lines", "any_change")  # components of `repair` that are for a single program

GOAL = """Improve an agent that repairs Python packages. `solve(files, tools)` gets the sources by path, in one function
of which there is a fault, and returns {path: new text} of the files that it changes. tools.report says how a test
fails, tools.examples are visible tests, of which the first fails and the others pass: {"name", "text", "function",
"arguments"}. tools.test(changed, i) runs the i-th with changed files, tools.trace(changed, i) also gives the lines
(path, line) that were executed; together they run tools.left times at most, then Exhausted is raised. Only bodies of
functions may change, and nothing may be imported. The module `changes` has operators on syntax trees.
`improve(own, entry, log, components, shop)` returns the text of a changed agent and a note. The value is the share of
faults that the agent repairs, which the hidden suites of the packages decide. Both functions have to stay."""


def components() -> list[Mapping[str, Any]]:
    """What `improve` may put into an agent: those of `repair` that fit, and some of its own."""
    found = [part for part in mending() if part["name"] not in OTHERS]
    for part in ("\n" + (HERE / "components.txt").read_text()).split("\n# ")[1:]:
        head, _, code = part.partition("\n")
        name, role, serves = (piece.strip() for piece in head.split("|"))
        found.append({"name": name, "role": role, "serves": serves.split(), "code": code.strip() + "\n"})
    return found


def statements() -> tuple[str, ...]:
    """What operators on syntax trees may put into an agent."""
    operators = [f"OPERATORS.append({name!r})" for name in tools() if f'"{name}"' not in SEED]
    return (*operators, "OPERATORS.pop()", "patches.reverse()", "functions[:SCOPE + 1]", "CAP + 10", "2 * CAP")


def call(text: str, names: Sequence[str]) -> Call:
    """The agent on instances."""
    given = [bugs()[name].data() for name in names]
    return Call({**SIDE, PROGRAM: text}, "runner", "attempts", (given, RUNS, SECONDS))


def changes(value: Any, names: Sequence[str]) -> list[dict[str, str]]:
    """What the agent changed of each instance: files of the repository that differ; nothing else is taken."""
    found = []
    for row, name in zip(attempts(value, names), names, strict=True):
        given, files = row.get("changed"), bugs()[name].files
        pairs = given.items() if isinstance(given, dict) else ()
        found.append({path: t for path, t in pairs if path in files and isinstance(t, str) and t != files[path]})
    return found


def refused(changed: Mapping[str, str], of: Bug) -> str:
    """Why a change cannot be taken; empty if it can."""
    reasons = ((path, refusal(text, of.files[path])) for path, text in changed.items())
    return next((f"{path} is refused: {why}" for path, why in reasons if why), "")


def check(value: Any, names: Sequence[str]) -> Call:
    """What was handed in, on the suites; no test has to run where nothing was, or where it is refused."""
    rows, used = [], dict[str, Any]()
    for changed, name in zip(changes(value, names), names, strict=True):
        it = bugs()[name]
        wanted = it.suite if changed and not refused(changed, it) else ()
        used |= {it.repository.name: it.repository.data()} if wanted else {}
        files = {**it.files, **changed}
        differs = {path: text for path, text in files.items() if text != it.repository.files[path]}
        rows.append({"repository": it.repository.name, "changed": differs if wanted else {}, "wanted": wanted})
    return Call(VERIFIER, "suite", "suites", (used, rows, 1, SUITE))


def judge(value: Any, names: Sequence[str]) -> Evaluation:
    """The verdict on (what the agent gave, what became of the tests).

    Metrics beside those of instances: `empty/NAME` where nothing was changed, or nothing that is taken, and
    `exhausted/NAME` where no runs were left. Not valid is an agent without `solve` and `improve`, or one that changes
    nothing in a whole first stage.
    """
    first, second = value
    lacking = {"solve", "improve"} - set(first.get("defined") or () if isinstance(first, dict) else ())
    if lacking:
        why = next((str(row["error"])[:200] for row in attempts(first, names) if row.get("error")), "")
        return invalid(f"the agent has no function {' and no '.join(sorted(lacking))}: {why}")
    values, metrics, errors = {}, {}, []
    rows = second if isinstance(second, list) and len(second) == len(names) else [""] * len(names)
    for name, changed, attempt, marks in zip(names, changes(first, names), attempts(first, names), rows, strict=True):
        it = bugs()[name]
        why = refused(changed, it) if changed else ""
        values[name] = float(repaired(marks, it)) if changed and not why else 0.0
        if why or not changed:
            metrics[f"empty/{name}"] = 1.0
        if attempt.get("exhausted") is True:
            metrics[f"exhausted/{name}"] = 1.0
        if why or attempt.get("error"):
            errors.append(f"{name}: {why or attempt['error']!s:.200}")
    if len(names) >= STAGES[0] and sum(f"empty/{name}" in metrics for name in names) == len(names):
        return invalid("\n".join(["nothing was changed anywhere", *errors[:3]]))
    if not names:  # it works; nothing is known of how well
        return Evaluation(0.0)
    found = over_instances(values, metrics)
    return Evaluation(found.value, found.metrics, "\n".join(errors[:3]))


def repaired(marks: Any, of: Bug) -> bool:
    """Whether all tests that failed pass now, and none that passed fails; one that is skipped does not fail."""
    if not isinstance(marks, str) or len(marks) != len(of.suite):
        return False
    return set(marks[: of.fails]) == {"p"} and set(marks[of.fails :]) <= {"p", "s"}


def logs(text: str, names: Sequence[str]) -> Call:
    """What an agent makes of instances, with all that it sees: what a diagnosis is made from."""
    return Call({**SIDE, PROGRAM: text}, "runner", "logs", (diagnosed(names), RUNS, SECONDS))


def improve(text: str, editor: str, entry: str, names: Sequence[str], seed: int) -> Call:
    """`improve` of the editor's text on an agent."""
    library = [dict(component) for component in components()]
    arguments = (editor, entry, diagnosed(names), library, RUNS, SECONDS, TRIES, str(seed))
    return Call({**SIDE, PROGRAM: text}, "runner", "improved", arguments)


def diagnosed(names: Sequence[str]) -> list[dict[str, Any]]:
    """Instances with the function that is faulty, which only a diagnosis is told."""
    return [{**bugs()[name].data(), "source": bugs()[name].source} for name in names]


def world(size: str = "24") -> World:
    """The world of so many faults to search with, half as many for gates, and as many for evidence; up to those that
    there are. `UserError` for a size that is no number in range, and where pytest is not installed."""
    if importlib.util.find_spec("pytest") is None:
        raise UserError("the world swe runs suites with pytest, which is not installed; pip install 'evolvent[swe]'")
    named: dict[Split, list[str]] = {"train": [], "gate": [], "test": []}
    for name, it in bugs().items():
        named[it.split].append(name)
    n = read_size("swe", size, STAGES[0], len(named["train"]), "faults")
    train = tuple(named["train"][:n])
    cuts = [0, *(cut for cut in STAGES if cut < n), n]
    return World(
        name=f"program:swe:{n}",
        goal=GOAL,
        seed=SEED,
        call=call,
        judge=judge,
        instances={"train": train, "gate": tuple(named["gate"][: n // 2]), "test": tuple(named["test"][:n])},
        stages=tuple(train[a:b] for a, b in pairwise(cuts)),
        limits=Limits(seconds=1200.0, memory=1024),
        components=statements(),
        preload=PRELOAD,
        check=check,
        improve=improve,
        logs=logs,
    )
