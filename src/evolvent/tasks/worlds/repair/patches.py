"""The world `patches`: a book with one patch for each of several bugs, for methods that work at one bug after another.

The bugs are those of the world `repair` whose functions are in the split `test` (`patches:40`) or `gate`
(`patches:gate-20`, to choose settings with). What a search sees of a patch are its visible tests: the value is the
share of bugs whose patch passes all of them. The figure that counts comes at the end, on the split `test` of this
world: the share whose patch passes the hidden tests, too. Nothing that makes or chooses patches sees those.

A book is a Python text of nothing but assignments `PATCHES["name"] = "program"`; it is read, not run. What runs, in
the sandbox, are the patches. Right answers of hidden tests never enter it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evolvent.core.errors import VerifierError
from evolvent.core.records import Problem
from evolvent.guard.sandbox import Call, Limits
from evolvent.tasks.base import Reply, key_of, one_user
from evolvent.tasks.evaluation import Evaluation, over_instances
from evolvent.tasks.program import ProgramTask, World
from evolvent.tasks.worlds.repair.world import HARNESS, LONGEST, SECONDS, SEED, bug, bugs, components, hidden, passes
from evolvent.tasks.worlds.sized import read_size

SCRIPT = Path(__file__).with_name("scripted.py").read_text()
USELESS = ("layouts", "doubles", "zeros", "items")  # components that never mend anything, or fail
SHOWN, HIDDEN = "shown/", "hidden/"  # before a bug's name: which tests count
BLOCK = re.compile(r"^```(?:python)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
GOAL = "Repair Python functions: a book has one patch for each bug, and its value is the share that pass their tests."
TOLD = """This Python program is faulty; `{function}` is what is tested:

```python
{source}
```

Visible tests (arguments, and what has to come back or be raised):

{examples}

Other tests decide in the end. Find the fault and change as little as possible. Answer with the whole program in one
block between ```python and ```. You are told which visible tests fail then, and may hand in another one."""


def tools() -> dict[str, str]:
    """Operators on syntax trees that the scripted agent has: name -> the source of a function."""
    first = next(n for n in ast.parse(SEED).body if isinstance(n, ast.FunctionDef) and n.name == "comparisons")
    found = {"comparisons": ast.unparse(first) + "\n"}
    found |= {c["name"]: c["code"] for c in components() if c["role"] == "operator"}
    return {name: code for name, code in found.items() if name not in USELESS}


def script(jobs: Sequence[tuple[str, Mapping[str, Any], str]], runs: int) -> Call:
    """Attempts (bug, strategy, seed) of the scripted agent, each with so many runs of visible tests."""
    code = "import ast\n\n\n" + "\n\n".join(tools().values())
    files = {"harness.py": HARNESS, "scripted.py": SCRIPT, "changes.py": code}
    rows = [[dict(bug(name)), dict(strategy), seed] for name, strategy, seed in jobs]
    return Call(files, "scripted", "attempts", (rows, runs, SECONDS))


def book(patches: Mapping[str, str]) -> str:
    """Patches by bug as a text, a line of it for each line of theirs."""
    parts = ["PATCHES = {}\n"]
    for name, text in patches.items():
        lines = "".join(f"    {line!r}\n" for line in text.splitlines(keepends=True)) or "    ''\n"
        parts.append(f"PATCHES[{name!r}] = (\n{lines})\n")
    return "".join(parts)


def read_book(text: str) -> dict[str, str]:
    """The patches of a book; what is not in its form is left out."""
    found: dict[str, str] = {}
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    for node in body:
        match node:
            case ast.Assign([ast.Subscript(ast.Name("PATCHES"), ast.Constant(str(name)))], ast.Constant(str(patch))):
                found[name] = patch
    return found


def tests_of(name: str) -> list[tuple[list[Any], Mapping[str, Any]]]:
    """The tests that an instance stands for: (arguments, what has to come back)."""
    which, _, plain = name.partition("/")
    shown: list[tuple[list[Any], Mapping[str, Any]]] = [(e["arguments"], e) for e in bug(plain)["examples"]]
    return shown if which == SHOWN[:-1] else shown + hidden(plain)


def trial(rows: Sequence[tuple[str, str]]) -> Call:
    """Patches (instance, program) on their tests; only what comes back of each call is known inside."""
    asked = []
    for name, text in rows:
        plain = bug(name.partition("/")[2])
        usable = text if len(text) <= LONGEST else plain["source"]
        calls = [arguments for arguments, _ in tests_of(name)]
        asked.append({"source": usable, "function": plain["function"], "calls": calls})
    return Call({"harness.py": HARNESS}, "harness", "results", (asked, SECONDS))


def call(text: str, names: Sequence[str]) -> Call:
    """The patches of a book on the tests of instances; the faulty program where it has none."""
    found = read_book(text)
    return trial([(name, found.get(plain := name.partition("/")[2], bug(plain)["source"])) for name in names])


def judge(value: Any, names: Sequence[str]) -> Evaluation:
    """The share of instances whose patch passes."""
    rows = value if isinstance(value, list) and len(value) == len(names) else [None] * len(names)
    return over_instances({name: float(passes(given, tests_of(name))) for name, given in zip(names, rows, strict=True)})


class Patches(ProgramTask):
    """The world as a task: `names` are the bugs; each is a problem of its own, and an episode of up to `max_turns`."""

    scripted_agent: ClassVar = True  # evidence says so: rules act where a model would

    max_turns = 4

    def __init__(self, world: World, names: tuple[str, ...]) -> None:
        super().__init__(world)
        self.names = names
        self.passing: dict[str, int] = {}

    def problem(self, name: str) -> Problem:
        """A bug, as whoever repairs it sees it."""
        it = bug(name)
        rows = []
        for e in it["examples"]:
            wanted = json.dumps(e["gives"]) if "gives" in e else f"raises {e['raises']}"
            rows.append(f"{json.dumps(e['arguments'])[1:-1]} -> {wanted}")
        told = TOLD.format(function=it["function"], source=it["source"].rstrip(), examples="\n".join(rows))
        return Problem(key_of("patches", name), one_user(told), {"bug": name}, it["function"], self.name)

    def source(self, problem: Problem) -> str:
        """The faulty program of a problem."""
        return str(bug(problem.data["bug"])["source"])

    def before(self, name: str) -> int:
        """How many visible tests the faulty program of a bug passes."""
        if name not in self.passing:
            self.passing[name] = sum(self.visible([(name, bug(name)["source"])])[0])
        return self.passing[name]

    def visible(self, rows: Sequence[tuple[str, str]]) -> list[list[bool]]:
        """Which visible tests patches (bug, program) pass. `VerifierError` where the sandbox itself failed."""
        if not rows:
            return []
        tests = trial([(SHOWN + name, text) for name, text in rows])
        [outcome] = self.run([tests])
        self.cpu_seconds += outcome.cpu
        if outcome.status == "lost":
            raise VerifierError(outcome.error)
        given = outcome.value if isinstance(outcome.value, list) and len(outcome.value) == len(rows) else []
        found = []
        for i, (name, _) in enumerate(rows):
            asked = tests_of(SHOWN + name)
            mine = given[i] if given and isinstance(given[i], list) and len(given[i]) == len(asked) else []
            found.append([passes([g], [t]) for g, t in zip(mine, asked, strict=True)] if mine else [False] * len(asked))
        return found

    def episode(self, problem: Problem) -> Attempting | None:
        """A model's work at one bug; None for what is no bug."""
        return Attempting(self, problem.data["bug"]) if "bug" in problem.data else None


class Attempting:
    """A model's episode: each turn hands in a program and is told which visible tests fail; it ends when none does.

    The note `handed` has all that was handed in: [program, how many visible tests it passes].
    """

    def __init__(self, task: Patches, name: str) -> None:
        self.task, self.name = task, name
        self.handed: list[tuple[str, int]] = []

    def respond(self, turn: str) -> Reply:
        """What the visible tests say of the program in a turn."""
        blocks = BLOCK.findall(turn)
        if not blocks:
            return Reply("There is no program. Hand in the whole of it between ```python and ```.")
        made = blocks[-1]
        [passed] = self.task.visible([(self.name, made)])
        self.handed.append((made, sum(passed)))
        note = {"handed": list(self.handed)}
        if all(passed):
            return Reply("", done=True, note=note)
        failed = [json.dumps(t[0]) for t, good in zip(tests_of(SHOWN + self.name), passed, strict=True) if not good]
        return Reply(f"{len(failed)} visible tests fail, with the arguments {', '.join(failed)}", note=note)


def task(size: str = "40") -> Patches:
    """So many bugs, `gate-20` for those to choose settings with. `UserError` for a number that is not in range."""
    match = re.fullmatch(r"(?:(gate)-)?(.*)", size)
    split = match[1] if match and match[1] else "test"
    every = [name for name, (unit, _) in bugs().items() if unit.split == split]
    n = read_size("patches", match[2] if match else size, 1, len(every), "bugs")
    names = tuple(every[:n])
    named = f"program:patches:{'gate-' * (split == 'gate')}{n}"
    return Patches(
        World(
            name=named,
            goal=GOAL,
            seed=book({name: bug(name)["source"] for name in names}),
            call=call,
            judge=judge,
            instances={
                "train": tuple(SHOWN + name for name in names),
                "test": tuple(HIDDEN + name for name in names),
            },
            limits=Limits(seconds=300.0, memory=1024),
            preload=("ast", "json", "random"),
        ),
        names,
    )


__all__ = ["Patches", "book", "read_book", "script", "task", "tools"]
