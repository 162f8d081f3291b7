"""What runs inside of the sandbox on the agent's side: agents on repositories, visible tests, an agent on its own text.

It stands alone beside `harness.py` of the world `repair` and `changes.py`, its operators on syntax trees; all three are
copied there. A run of a test has a process of its own, since a patch may never end. Hidden tests are never here, and
installed packages, among which the right sources may lie, are closed to an agent.
"""

from __future__ import annotations

import difflib
import functools
import importlib.machinery
import importlib.util
import linecache
import os
import random
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from types import CodeType, FrameType, ModuleType
from typing import Any

import harness  # type: ignore[import-not-found]
import pytest  # noqa: F401  visible tests import it, when installed packages are closed already
from harness import PROGRAM, Exhausted, apart, loaded

STEPS = 50_000  # lines of the repository that one run of a test may execute
PULSE = 0.6  # seconds of the processor of one run, for what a line takes too long
CLOSED = ("site-packages", "dist-packages")
STATM = "/statm"  # of /proc, which `apart` reads
PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")
TOLD = 1500  # characters of a failure

harness.PATIENCE = 30  # since an agent waits for the tests that it runs, the clock may be that much ahead of its time

Place = tuple[str, int]  # file, line


class TooLong(BaseException):
    """A patched repository takes too many steps; nothing that it catches."""


class Tools:
    """What an agent has beside the files: a report, visible tests, and a number of times that it may run one of them.

    report    how the first visible test fails
    examples  visible tests [{"name", "text", "function", "arguments"}]; the first one fails
    rng       a generator of `random`
    """

    def __init__(self, bug: Mapping[str, Any], runs: int, seed: str) -> None:
        self.files, self.report, self.examples = dict(bug["files"]), bug["report"], bug["tests"]
        self.left, self.rng = runs, random.Random(seed)

    def test(self, files: Mapping[str, str], i: int) -> bool:
        """Whether the repository with these files in the place of its own passes an example; a run less is left.
        `Exhausted` if none was."""
        return self.trace(files, i)[0]

    def trace(self, files: Mapping[str, str], i: int) -> tuple[bool, list[Place]]:
        """The same, with the lines (file, line) of the repository that the test executed."""
        if self.left < 1:
            raise Exhausted("no runs are left")
        self.left -= 1
        found = run({**self.files, **files}, self.examples[i])
        return found["passed"], [(path, line) for path, line in found["lines"]]


def run(files: Mapping[str, str], test: Mapping[str, Any]) -> dict[str, Any]:
    """A visible test in a process of its own: {"passed", "error", "lines"}; lines are [file, line]."""
    try:
        codes = {path: compiled(path, text) for path, text in files.items()}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
        return {"passed": False, "error": f"{type(reason).__name__}: {reason}", "lines": []}
    found = apart(lambda: ran(files, codes, test), PULSE)
    return {"passed": False, "error": "", "lines": [], **(found if isinstance(found, dict) else {})}


@functools.lru_cache(maxsize=64)
def compiled(path: str, text: str) -> CodeType:
    """The code of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(text, path, "exec", dont_inherit=True)


class Finder:
    """Imports modules of a repository from code that is compiled already."""

    def __init__(self, codes: Mapping[str, CodeType]) -> None:
        self.codes = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): (path, code)
                      for path, code in codes.items()}  # fmt: skip

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The module's specification, if it is one of the repository."""
        if name not in self.codes:
            return None
        package = self.codes[name][0].endswith("/__init__.py")
        return importlib.util.spec_from_loader(name, self, is_package=package)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Modules are made as usual."""

    def exec_module(self, made: ModuleType) -> None:
        """Run the module's code."""
        path, code = self.codes[made.__name__]
        made.__file__ = path
        exec(code, made.__dict__)


def ran(files: Mapping[str, str], codes: Mapping[str, CodeType], test: Mapping[str, Any]) -> dict[str, Any]:
    """A visible test in this process, which ends afterwards."""
    finder, steps, lines = Finder(codes), 0, dict[Place, None]()
    for name in [n for n in sys.modules if n.partition(".")[0] in {m.partition(".")[0] for m in finder.codes}]:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    file = str(test["name"]).partition("::")[0]

    def line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if event == "line":
            steps += 1
            lines[frame.f_code.co_filename, frame.f_lineno] = None
            if steps > STEPS:
                raise TooLong
        return line

    try:
        names: dict[str, Any] = {"__name__": "visible"}
        exec(compiled(file, test["text"]), names)
        sys.settrace(lambda frame, event, _: line if frame.f_code.co_filename in codes else None)
        names[test["function"]](**test["arguments"])
        passed, error = True, ""
    except TooLong:
        passed, error = False, "it takes too long"
    except BaseException as reason:  # a patched repository may do anything
        sys.settrace(None)
        passed, error = False, failure(reason, {**files, file: test["text"]})
    sys.settrace(None)
    return {"passed": passed, "error": error[-TOLD:], "lines": [list(place) for place in lines]}


def failure(reason: BaseException, files: Mapping[str, str]) -> str:
    """Where an exception came by in these files, and what it says."""
    for path, text in files.items():
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    frames = [f for f in traceback.extract_tb(reason.__traceback__) if f.filename in files]
    told = [f"{f.filename}:{f.lineno} in {f.name}: {f.line}" for f in frames]
    return "\n".join([*told, "".join(traceback.format_exception_only(reason)).strip()])


def close() -> None:
    """Close installed packages, and programs, to this process and all that come of it."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in PROCESSES or event.startswith("ctypes."):
            raise PermissionError(f"{event} is closed to agents")
        if event == "open" or event.startswith("os."):
            for argument in arguments:
                if isinstance(argument, str | bytes):
                    path = os.fsdecode(argument)
                    real = os.path.realpath(path)
                    memory = real.startswith("/proc") and not real.endswith(STATM)
                    if memory or any(name in path or name in real for name in CLOSED):
                        raise PermissionError("installed packages and memory are closed to agents")

    sys.addaudithook(refuse)


def solved(agent: str, bug: Mapping[str, Any], runs: int) -> dict[str, Any]:
    """What an agent makes of a bug: the files that it changed, the runs it took, and whether it had none left."""
    tools = Tools(bug, runs, bug["name"])
    changed: dict[str, str] = {}
    error = ""
    try:
        made = loaded(agent, PROGRAM)["solve"](dict(bug["files"]), tools)
        if not isinstance(made, dict) or not all(isinstance(x, str) for pair in made.items() for x in pair):
            raise TypeError(f"solve gave no texts of files by path: {made!r:.80}")
        changed = {path: text for path, text in made.items() if text != bug["files"].get(path)}
    except Exhausted:
        pass
    except Exception as reason:  # an agent may do anything
        error = f"{type(reason).__name__}: {reason}"[:300]
    return {"changed": changed, "error": error, "runs": runs - tools.left, "exhausted": tools.left == 0}


def closed(agent: str, bugs: list[dict[str, Any]], i: int, runs: int, seconds: float) -> dict[str, Any]:
    """The same for one of several bugs, in a process to which installed packages are closed, and that has let go of the
    others: where one repository has a fault, another one has it right."""

    def work() -> dict[str, Any]:
        bug = bugs[i]
        bugs.clear()
        close()
        return solved(agent, bug, runs)

    return dict(apart(work, seconds))


def attempts(bugs: list[dict[str, Any]], runs: int, seconds: float) -> dict[str, Any]:
    """`solve` of the agent in program.py on each bug, and which of its two functions it has."""
    with open(PROGRAM) as file:
        agent = file.read()
    named = ("solve", "improve")
    has = apart(lambda: [name for name in named if callable(loaded(agent, PROGRAM).get(name))], seconds)
    rows = [closed(agent, bugs, i, runs, seconds) for i in range(len(bugs))]
    return {"defined": has if isinstance(has, list) else [], "attempts": rows}


def runs_of(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What each of several repositories {"files", "tests"} makes of each of its visible tests."""
    return [[run(row["files"], test) for test in row["tests"]] for row in rows]


class Workshop:
    """What an agent has that changes an agent: it may try a text on the bugs of the log, `left` times.

    rng  a generator of `random`
    """

    def __init__(self, bugs: Sequence[dict[str, Any]], runs: int, seconds: float, tries: int, seed: str) -> None:
        self.bugs, self.runs, self.seconds, self.left = bugs, runs, seconds, tries
        self.rng = random.Random(seed)

    def attempt(self, source: str, i: int) -> dict[str, Any]:
        """What an agent of this text makes of bug i: `changed`, `runs`, `exhausted`, `error`, and `passed`, how many
        of the visible tests. `Exhausted` if nothing is left."""
        if self.left < 1:
            raise Exhausted("no tries are left")
        self.left -= 1
        return tried(source, self.bugs[i], self.runs, self.seconds)


def tried(agent: str, bug: dict[str, Any], runs: int, seconds: float) -> dict[str, Any]:
    """An attempt, and how many visible tests pass with what it changed."""
    found = {"changed": {}, "runs": 0, "exhausted": False, "error": "", **closed(agent, [bug], 0, runs, seconds)}
    files = {**bug["files"], **{path: text for path, text in found["changed"].items() if path in bug["files"]}}
    return {**found, "passed": sum(run(files, test)["passed"] for test in bug["tests"])}


def logs(bugs: list[dict[str, Any]], runs: int, seconds: float) -> list[dict[str, Any]]:
    """What the agent in program.py made of these bugs, with what it saw: the `source` of the function that is faulty,
    and as `patch` the lines that it changed; the source where it changed nothing."""
    with open(PROGRAM) as file:
        agent = file.read()
    rows = []
    for bug in bugs:
        found = tried(agent, bug, runs, seconds)
        lines = [
            line
            for path, text in found.pop("changed").items()
            for line in difflib.unified_diff(bug["files"].get(path, "").splitlines(), text.splitlines(), path, path, "",
                                             "", 2, "")
        ]  # fmt: skip
        given = {"name": bug["name"], "report": bug["report"], "source": bug["source"], "examples": bug["tests"]}
        rows.append({**given, **found, "patch": "\n".join(lines)[:4000] or bug["source"]})
    return rows


def improved(
    editor: str,
    entry: str,
    bugs: list[dict[str, Any]],
    components: list[dict[str, Any]],
    runs: int,
    seconds: float,
    tries: int,
    seed: str,
) -> dict[str, Any]:
    """`improve` of an editor's text on the agent in program.py: {"source": its new text, "note": what was done}."""
    with open(PROGRAM) as file:
        own = file.read()
    log = logs(bugs, runs, seconds)

    def work() -> dict[str, Any]:
        shop = Workshop(bugs, runs, seconds, tries, seed)
        source, note = loaded(editor, PROGRAM)["improve"](own, entry, log, components, shop)
        return {"source": str(source), "note": str(note)[:60]}

    return dict(apart(work, seconds * (tries + 1)))


__all__ = ["attempts", "improved", "logs", "runs_of"]
