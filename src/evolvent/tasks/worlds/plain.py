"""Whether a program only computes: it imports NumPy and little else, opens nothing, and looks behind no object.

For worlds whose data a program could find on the machine, or carry past the place where it is to be forgotten, or whose
loop runs beside it. It is read before it runs; the sandbox is around it all the same.
"""

from __future__ import annotations

import ast

MODULES = frozenset({"numpy", "math", "itertools", "functools", "collections", "operator"})
NAMES = frozenset(
    {"open", "exec", "eval", "compile", "input", "breakpoint", "getattr", "setattr", "delattr", "vars", "globals"}
) | {"locals", "dir", "memoryview", "help", "attrgetter", "methodcaller"}
ATTRIBUTES = frozenset(  # of NumPy: what reads or writes files, or leads to modules that do
    {"load", "loads", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap", "open_memmap", "DataSource", "tofile"}
) | {
    "save", "savez", "savez_compressed", "savetxt", "dump", "dumps", "ctypeslib", "ctypes", "f2py", "lib", "testing",
    "distutils",
}  # fmt: skip
BEHIND = frozenset(  # what NumPy's own modules have imported, and attributes by texts, which nobody has read
    {"abc", "ast", "bltns", "builtins", "copyreg", "dis", "enum", "genericpath", "importlib", "inspect", "io", "os"}
) | {
    "linecache", "numbers", "posixpath", "re", "stat", "sys", "textwrap", "token", "tokenize", "types", "warnings",
    "attrgetter", "methodcaller", "update_wrapper", "wraps",
}  # fmt: skip
FRAMES = frozenset({"gi_frame", "cr_frame", "ag_frame", "tb_frame", "f_globals", "f_locals", "f_back", "f_builtins"})


def refusal(source: str) -> str:
    """What the program does that it may not, with the line; empty if there is nothing. It has to parse."""
    for node in ast.walk(ast.parse(source)):
        found = _wrong(node)
        if found:
            return f"line {getattr(node, 'lineno', 1)}: {found}"
    return ""


def patches(source: str) -> str:
    """Where a program could change what a loop beside it computes with, as `np.einsum = f` does; empty if nowhere."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            return f"line {node.lineno}: it assigns to .{node.attr}; keep what lasts in memory"
    return ""


def _wrong(node: ast.AST) -> str:
    names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
    modules = [node.module or "."] if isinstance(node, ast.ImportFrom) else names
    if isinstance(node, ast.ImportFrom) and node.level:
        modules = ["."]
    if "*" in names:
        return "it imports *; name what is needed"
    for module in modules:
        if module.partition(".")[0] not in MODULES:
            return f"it imports {module}; only {', '.join(sorted(MODULES))} may be imported"
    used = [part for name in (*names, *modules) for part in name.split(".")]
    used += [node.id] if isinstance(node, ast.Name) else [node.attr] if isinstance(node, ast.Attribute) else []
    used += node.kwd_attrs if isinstance(node, ast.MatchClass) else []
    for name in used:
        hidden = name.startswith("__" if isinstance(node, ast.Name) else "_") and name != "__name__"
        forbidden = NAMES if isinstance(node, ast.Name) else ATTRIBUTES | FRAMES | BEHIND
        if hidden or name in forbidden:
            return f"it uses {name}; a program here may compute, and not look at files or behind objects"
    return ""
