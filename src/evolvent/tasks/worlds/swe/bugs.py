"""The instances of the world: which faults there are, what an agent sees of one, and which tests decide."""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from evolvent.tasks.base import Split
from evolvent.tasks.worlds.swe.shown import shown
from evolvent.tasks.worlds.swe.sources import Repository, functions, module, planted, repositories

FILE = Path(__file__).with_name("faults.json")


@dataclass(frozen=True)
class Bug:
    """One fault in one function of a repository.

    function  as `functions` names it, in `file`
    suite     names of all tests that have to pass, those that fail because of the fault first; `fails`: how many
    shows     tests {"name", "function", "arguments"} that the agent sees, the first one fails
    report    how it fails
    """

    name: str
    split: Split
    repository: Repository
    file: str
    function: str
    kind: str
    number: int
    suite: tuple[str, ...]
    fails: int
    shows: tuple[Mapping[str, Any], ...]
    report: str

    @functools.cached_property
    def files(self) -> Mapping[str, str]:
        """The sources with the fault."""
        text = self.repository.files[self.file]
        return {**self.repository.files, self.file: planted(text, self.function, self.kind, self.number)}

    @functools.cached_property
    def source(self) -> str:
        """The function with the fault."""
        return ast.unparse(functions(ast.parse(self.files[self.file]))[self.function]) + "\n"

    @functools.cached_property
    def visible(self) -> tuple[Mapping[str, Any], ...]:
        """Tests {"name", "text", "function", "arguments"} that the agent sees, the first one fails."""
        return tuple(visible(self.repository, test) for test in self.shows)

    def data(self) -> dict[str, Any]:
        """As an agent sees it, as JSON data: `name`, which tells nothing, `files`, `report` and visible `tests`."""
        number = list(bugs()).index(self.name)
        return {"name": f"bug-{number}", "files": dict(self.files), "report": self.report, "tests": list(self.visible)}


@functools.cache
def bugs() -> Mapping[str, Bug]:
    """All instances, by name. The first faults of all functions come first, repositories in turn."""
    data = json.loads(FILE.read_text())
    found: list[Bug] = []
    counts: dict[str, int] = {}
    for row in data["faults"]:
        place = f"{module(row['file'])}.{row['function']}"
        counts[place] = counts.get(place, 0) + 1
        found.append(bug(f"{place}-{counts[place]}", row, data["tests"][row["repository"]]))
    Random("order of functions").shuffle(found)
    turns: dict[tuple[Any, ...], int] = {}
    places = {}
    for it in found:
        group = (it.name.rpartition("-")[2], it.split, it.repository.name)
        turns[group] = turns.get(group, 0) + 1
        places[it.name] = (group[0], turns[group], it.repository.name)
    return {it.name: it for it in sorted(found, key=lambda it: places[it.name])}


def bug(name: str, row: Mapping[str, Any], tests: list[Mapping[str, Any]]) -> Bug:
    """An instance, of its row in the file."""
    it, fails = repositories()[row["repository"]], row["fails"]
    rest = [i for i in range(len(tests)) if i not in set(fails)]
    return Bug(
        name=name,
        split=row["split"],
        repository=it,
        **{key: row[key] for key in ("file", "function", "kind", "number", "report")},
        suite=tuple(tests[i]["name"] for i in [*fails, *rest]),
        fails=len(fails),
        shows=tuple(tests[i] for i in row["visible"]),
    )


def visible(it: Repository, test: Mapping[str, Any]) -> dict[str, Any]:
    """A test as agents get it: `name`, `text`, `function`, `arguments`."""
    file = test["name"].partition("::")[0]
    given = {key: test[key] for key in ("name", "function", "arguments")}
    return {**given, "text": shown(it.tests[file], test["function"])}
