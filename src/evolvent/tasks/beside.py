"""What goes into the sandbox with an evaluator of the user's: the files beside it that it names.

These are modules that it imports, those that they import, and data files whose names stand in them as texts. Nothing
is guessed: a folder may hold runs, environments and other programs.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from evolvent.core.errors import UserError

MOST = 2**20  # bytes of all files together
DATA = (".json", ".csv", ".txt")
OPENEVOLVE = "openevolve"


def beside(folder: Path, codes: Sequence[str], program: Path) -> dict[str, str]:
    """Name -> text of the files in a folder that these codes name; never the `program` that is evaluated.

    `UserError` for what is no text, or for more than `MOST` bytes.
    """
    found: dict[str, str] = {}
    left = list(codes)
    while left:
        tree = ast.parse(left.pop())
        for path in [*modules(tree, folder), *data(tree, folder)]:
            name = path.relative_to(folder).as_posix()
            if name in found or path.samefile(program):
                continue
            found[name] = text = within(path, MOST - sum(len(one.encode()) for one in found.values()))
            if path.suffix == ".py":
                try:
                    ast.parse(text)
                except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
                    raise UserError(f"{path} is not Python ({reason}); mend it, it goes with the evaluator") from None
                left.append(text)
    if not any(name.partition("/")[0] in (OPENEVOLVE, f"{OPENEVOLVE}.py") for name in found):
        found |= stand_in([*codes, *(text for name, text in found.items() if name.endswith(".py"))])
    return found


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules that a code imports, with their dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def modules(tree: ast.AST, folder: Path) -> Iterator[Path]:
    """The files of modules that a code imports and that are there; a package is all of its modules."""
    for name in imported(tree):
        root = name.partition(".")[0]
        if root in sys.stdlib_module_names:
            continue
        if (folder / f"{root}.py").is_file():
            yield folder / f"{root}.py"
        elif (folder / root / "__init__.py").is_file() or (folder / f"{name.replace('.', '/')}.py").is_file():
            yield from sorted(path for path in (folder / root).rglob("*.py") if path.is_file())


def data(tree: ast.AST, folder: Path) -> Iterator[Path]:
    """The files of data whose names stand in a code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(DATA):
            name = Path(node.value)
            usable = len(node.value) < 200 and node.value.isprintable() and ".." not in name.parts
            if usable and not name.is_absolute() and (folder / name).is_file():
                yield folder / name


def within(path: Path, room: int) -> str:
    """The text of a file of at most so many bytes."""
    if path.stat().st_size > room:
        raise UserError(
            f"the files that the evaluator uses are larger than {MOST >> 20} MiB with {path}; make them smaller, or "
            "write what it needs into the evaluator"
        )
    return source(path)


def source(path: Path) -> str:
    """The text of a file of the user's. `UserError` for what is no text."""
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as reason:
        raise UserError(f"{path} is not UTF-8 (byte {reason.start}: {reason.reason}); save it as UTF-8") from None
    except OSError as reason:
        raise UserError(f"{path} cannot be read ({reason.strerror}); mend that, or name another file") from None


def stand_in(codes: Sequence[str]) -> dict[str, str]:
    """The module of OpenEvolve that its evaluators import, if any of the codes does and it is not installed."""
    roots = {name.partition(".")[0] for code in codes for name in imported(ast.parse(code))}
    if OPENEVOLVE not in roots or importlib.util.find_spec(OPENEVOLVE):
        return {}
    first = f"from {OPENEVOLVE}.evaluation_result import EvaluationResult\n"
    text = Path(__file__).with_name("evaluation_result.py").read_text("utf-8")
    return {f"{OPENEVOLVE}/__init__.py": first, f"{OPENEVOLVE}/evaluation_result.py": text}
