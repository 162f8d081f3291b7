"""Repositories that faults are planted in: packages of others, with their own tests, as data beside this module.

Sources are given in the normal form of `ast.unparse`, without comments, so that a function with a fault looks like all
others; docstrings stay. Tests are as their authors wrote them. NOTICE.md says where all of it comes from.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evolvent.tasks.worlds.repair.faults import KINDS

FOLDER = Path(__file__).with_name("repositories")
TESTS = "tests"  # the folder of a repository that agents never see

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Repository:
    """A package: its sources and its tests, by path within the repository."""

    name: str
    files: Mapping[str, str]
    tests: Mapping[str, str]

    def data(self) -> dict[str, dict[str, str]]:
        """As JSON data."""
        return {"files": dict(self.files), "tests": dict(self.tests)}


@functools.cache
def repositories() -> Mapping[str, Repository]:
    """All repositories, by name."""
    found = {}
    for folder in sorted(path for path in FOLDER.iterdir() if path.is_dir()):
        texts = {p.relative_to(folder).as_posix(): p.read_text("utf-8") for p in sorted(folder.rglob("*.py"))}
        tests = {path: text for path, text in texts.items() if path.startswith(TESTS + "/")}
        files = {path: normal(text) for path, text in texts.items() if path not in tests}
        found[folder.name] = Repository(folder.name, files, tests)
    return found


def normal(text: str) -> str:
    """A program in the layout of `ast.unparse`."""
    return ast.unparse(ast.parse(text)) + "\n"


def module(path: str) -> str:
    """The dotted name of the module in a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def functions(tree: ast.Module) -> dict[str, Function]:
    """Functions of a module, and methods of its classes as `Class.method`; of a name the last one, as in Python."""
    found: dict[str, Function] = {}
    for node in tree.body:
        if isinstance(node, Function):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}": part for part in node.body if isinstance(part, Function)}
    return found


def planted(text: str, function: str, kind: str, number: int) -> str:
    """A program with one fault in one of its functions; kinds and numbers as in `repair.faults`."""
    tree = ast.parse(text)
    make, _ = list(KINDS[kind](functions(tree)[function]))[number]
    make()
    return ast.unparse(tree) + "\n"
