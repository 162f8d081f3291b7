"""Visible tests: one test function of a test file, with nothing of the file but what it needs.

Data of the file that only other tests use is left out, so nothing of the hidden tests goes along. Decorators are left
out, too: the arguments of a parametrized test are given with it, those of one case.
"""

from __future__ import annotations

import ast

from evolvent.tasks.worlds.repair.units import closure


def shown(text: str, function: str) -> str:
    """The part of a test file that one of its functions needs to run."""
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
    known = {name: node for node in tree.body for name in bound(node)}
    wanted = closure(function, known)
    kept = [node for node in tree.body if any(known[name] is node for name in bound(node) if name in wanted)]
    return ast.unparse(ast.Module([slim(node, wanted) for node in kept], [])) + "\n"


def bound(node: ast.stmt) -> list[str]:
    """Names that a statement of a module binds."""
    found = []
    for part in [node] if isinstance(node, ast.FunctionDef | ast.ClassDef) else ast.walk(node):
        match part:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.append(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found += [alias.asname or alias.name.partition(".")[0] for alias in names]
    return found


def slim(node: ast.stmt, wanted: set[str]) -> ast.stmt:
    """An import with those of its names that are wanted; any other statement as it is."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        node.names = [a for a in node.names if (a.asname or a.name.partition(".")[0]) in wanted]
    return node
