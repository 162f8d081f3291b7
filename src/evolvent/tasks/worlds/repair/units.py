"""Repositories that faults are planted in: a function of the library with what it calls, and tests of it.

A test is the arguments of a call with what the function gives, or the name of the exception that it raises. Splits are
disjoint by function: nothing that is tested in one is tested, or called, in another.
"""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from evolvent.tasks.base import Split

MODULES = ("dates", "graphs", "grids", "intervals", "machines", "numbers", "parsing", "sequences", "text")
TESTS = 40  # drawn for a function, before repeats are left out
TURN: tuple[Split, ...] = ("train", "gate", "train", "test", "train", "test")  # of the functions, one after the other


@dataclass(frozen=True)
class Unit:
    """A repository: `function` is what is tested, `source` has it with everything that it calls.

    tests  (arguments, what comes back): {"gives": value} or {"raises": name}
    """

    function: str
    source: str
    tests: tuple[tuple[list[Any], Mapping[str, Any]], ...]
    split: Split


@functools.cache
def units() -> Mapping[str, Unit]:
    """All repositories, by function."""
    found: dict[str, Unit] = {}
    for name in MODULES:
        module = importlib.import_module(f"evolvent.tasks.worlds.repair.library.{name}")
        tree = ast.parse(inspect.getsource(module))
        known = {target: node for node in tree.body for target in defined(node)}
        for function, draw in module.CASES.items():
            wanted = closure(function, known)
            body = [bare(node) for node in tree.body if any(t in wanted for t in defined(node))]
            source = ast.unparse(ast.Module(body, [])) + "\n"
            tests = drawn(function, getattr(module, function), draw)
            found[function] = Unit(function, source, tests, TURN[len(found) % len(TURN)])
    return found


def drawn(function: str, reference: Callable[..., Any], draw: Callable[[Random], list[Any]]) -> Any:
    """Tests of a function, each arguments once; always the same ones."""
    rng, tests = Random(f"tests of {function}"), {}
    for _ in range(TESTS):
        arguments = draw(rng)
        try:
            result = {"gives": reference(*copy.deepcopy(arguments))}
        except (ValueError, IndexError, KeyError, ZeroDivisionError) as reason:
            result = {"raises": type(reason).__name__}
        tests[json.dumps(arguments)] = (arguments, result)
    return tuple(tests.values())


def defined(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines, if it is a function or an assignment."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    return [t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)]


def closure(function: str, known: Mapping[str, ast.stmt]) -> set[str]:
    """A function and all names of its module that it needs."""
    wanted, waiting = {function}, [function]
    while waiting:
        used = {n.id for n in ast.walk(known[waiting.pop()]) if isinstance(n, ast.Name)}
        new = (used & known.keys()) - wanted
        wanted |= new
        waiting += sorted(new)
    return wanted


class Strip(ast.NodeTransformer):
    """Takes annotations away: agents are to read plain programs."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Without the types of arguments and result."""
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Without its type."""
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """As a plain assignment."""
        assert node.value is not None
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def bare(node: ast.stmt) -> ast.stmt:
    """A copy without annotations."""
    found: ast.stmt = ast.fix_missing_locations(Strip().visit(copy.deepcopy(node)))
    return found
