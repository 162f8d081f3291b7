"""What a patch may change: bodies of functions of the files that are there, and what these may reach for.

Assertions of a suite run beside the code that they are about, so a patch could reach for the interpreter: leave at
import, replace parts of pytest, give back what is equal to everything. Nothing of that is needed to take a fault back.
So all that is not the body of a function stays as it is, and names that lead to the interpreter (modules such as `sys`,
functions such as `setattr`, names with two underscores, frames) may not occur more often than they did.
"""

from __future__ import annotations

import ast
from collections import Counter

from evolvent.tasks.worlds.swe.sources import Function

LONGEST = 150_000  # characters of a patched file
FUNCTIONS = {
    "__import__", "attrgetter", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "input",
    "locals", "methodcaller", "open", "setattr", "type", "vars",
}  # fmt: skip
MODULES = {
    "atexit", "builtins", "ctypes", "gc", "importlib", "inspect", "io", "os", "pytest", "signal", "subprocess", "sys",
    "threading", "types", "unittest",
}  # fmt: skip
FRAMES = {
    "ag_frame", "cr_frame", "f_back", "f_builtins", "f_code", "f_globals", "f_locals", "gi_frame", "modules",
    "tb_frame",
}  # fmt: skip
REACHING = FUNCTIONS | MODULES | FRAMES


class Outline(ast.NodeTransformer):
    """A module without the bodies of its functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Name, arguments and decorators."""
        node.body = [ast.Pass()]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Name, arguments and decorators."""
        node.body = [ast.Pass()]
        return node


def refusal(text: str, before: str) -> str:
    """Why a patched file cannot be taken in the place of the file before; empty if it can."""
    if len(text) > LONGEST:
        return f"it has {len(text)} characters, and {LONGEST} are allowed"
    try:
        tree, old = ast.parse(text), ast.parse(before)
        more = reach(tree) - reach(old)
        outlines = [ast.dump(Outline().visit(t)) for t in (tree, old)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
        return f"it is no program ({type(reason).__name__}: {reason})"
    if outlines[0] != outlines[1]:
        return "it changes something else than the bodies of functions"
    if more:
        return f"it reaches for {', '.join(sorted(more)[:3])}, which the file did not do there before"
    return ""


def reach(tree: ast.AST) -> Counter[str]:
    """How often a program names what leads to the interpreter."""
    return Counter(name for node in ast.walk(tree) for name in named(node) if name in REACHING or "__" in name)


def named(node: ast.AST) -> list[str]:
    """What a node names: variables, attributes, definitions, imports, keywords and texts."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)) | ast.arg(arg=name):
            return [name]
        case ast.Constant(value=str(name)):
            return [name] if "__" in name else []
        case ast.Import() | ast.ImportFrom():
            return ["import __: " + ast.unparse(node)]
        case _ if isinstance(node, Function | ast.ClassDef):
            return [node.name]
    return []
