"""What runs inside of the sandbox on the verifier's side: pytest, on a repository with its own tests.

It stands alone beside `harness.py` of the world `repair`. Every suite has a process and a new folder of its own, to
which nothing comes but the sources that were admitted and the tests of the repository: no conftest.py, an empty
configuration, no plugins. What passed comes back; what it means is decided outside.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from harness import apart  # type: ignore[import-not-found]

PLAIN = ("--noconftest", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:logging", "-c", "empty.ini", "-q")
MARKS = {"passed": "p", "failed": "f", "skipped": "s"}


class Watch:
    """A plugin that runs the wanted tests in their order, and notes what becomes of each."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self.place = {name: i for i, name in enumerate(wanted)}
        self.found: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out what is not wanted, and bring the rest into order."""
        items[:] = sorted((i for i in items if i.nodeid in self.place), key=lambda i: self.place[i.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test has failed if any of its phases has."""
        if report.when == "call" or report.outcome != "passed":
            mark = MARKS[report.outcome]
            self.found[report.nodeid] = mark if self.found.get(report.nodeid, mark) == mark else "f"


class Inventory(Watch):
    """A plugin that notes which tests there are, how each can be called, what becomes of it, and what it executes.

    executed  by name of a test the code that ran in it, as {(file, first line)}; under the empty name, before any test
    """

    def __init__(self, folder: str) -> None:
        super().__init__(())
        self.folder, self.items = folder + "/", list[dict[str, Any]]()
        self.executed: dict[str, set[tuple[str, int]]] = {"": set()}
        self.begin("")

    def begin(self, name: str) -> None:
        """From now on it is this test that runs."""
        executed, folder = self.executed.setdefault(name, set()), self.folder

        def called(frame: FrameType, event: str, _: Any) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(folder):
                executed.add((code.co_filename[len(folder) :], code.co_firstlineno))

        sys.setprofile(called)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Note what there is."""
        sys.setprofile(None)
        self.items = [described(item) for item in items]

    def pytest_runtest_setup(self, item: Any) -> None:
        """A test begins."""
        self.begin(item.nodeid)

    def pytest_runtest_teardown(self) -> None:
        """A test has ended."""
        sys.setprofile(None)


def described(item: Any) -> dict[str, Any]:
    """A test as data: its name, and its function with arguments, if that is all that is needed to call it."""
    arguments = dict(getattr(getattr(item, "callspec", None), "params", {}))
    try:
        plain = json.loads(json.dumps(arguments)) == arguments
    except (TypeError, ValueError):
        plain = False
    plain = plain and item.cls is None and set(getattr(item, "fixturenames", ())) == set(arguments)
    function = getattr(item, "originalname", None) if plain else None
    return {"name": item.nodeid, "function": function, "arguments": arguments if plain else {}}


def laid_out(files: Mapping[str, str], tests: Mapping[str, str]) -> str:
    """A new folder with a repository, which is this process's from now on."""
    folder = Path(tempfile.mkdtemp(dir=os.getcwd()))
    for path, text in {**files, **tests, "empty.ini": "[pytest]\n"}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    os.chdir(folder)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path.insert(0, str(folder))
    ours = {Path(path).parts[0].removesuffix(".py") for path in files}
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        del sys.modules[name]
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    return str(folder)


def suites(
    repositories: Mapping[str, Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], most: int, seconds: float
) -> list[str]:
    """For each row {"repository", "changed", "wanted"} a text with a letter for each wanted test: p passed, f failed,
    s was skipped, - was not reached, as when there were `most` failures before, when the suite ended itself, or when
    it took longer than so many seconds of the processor."""

    def of(row: Mapping[str, Any]) -> str:
        it, watch = repositories[row["repository"]], Watch(row["wanted"])
        folder = laid_out({**it["files"], **row["changed"]}, it["tests"])
        files = dict.fromkeys(name.partition("::")[0] for name in row["wanted"])
        pytest.main([*PLAIN, "--rootdir", folder, "--maxfail", str(most), *files], plugins=[watch])
        return "".join(watch.found.get(name, "-") for name in row["wanted"])

    found = [apart(lambda row=row: of(row), seconds) for row in rows]
    return [f if isinstance(f, str) else "-" * len(row["wanted"]) for f, row in zip(found, rows, strict=True)]


def inventory(repositories: Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, Any]:
    """For each repository its `tests`, as `described` does with what becomes of each in `mark`, and what they have
    `executed`: by name, [file, first line] of functions; under the empty name those that ran before any test."""

    def of(it: Mapping[str, Any]) -> dict[str, Any]:
        watch = Inventory(laid_out(it["files"], it["tests"]))
        files = [path for path in it["tests"] if Path(path).name.startswith("test_")]
        pytest.main([*PLAIN, "--rootdir", watch.folder, *files], plugins=[watch])
        tests = [{**item, "mark": watch.found.get(item["name"], "-")} for item in watch.items]
        return {"tests": tests, "executed": {name: sorted(ran) for name, ran in watch.executed.items()}}

    return {name: apart(lambda it=it: of(it), seconds) for name, it in repositories.items()}
