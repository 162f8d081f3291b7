"""What a cell's result depends on in the code: the modules that it imports, without comments and docstrings.

A user's own files (recipes, tasks, data) count as modules do.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import evolvent

ROOT = Path(evolvent.__file__).parent


def module_file(name: str) -> Path | None:
    """The file of a module of this package."""
    return file_below(ROOT, name)


@cache
def file_below(root: Path, name: str) -> Path | None:
    """The file of a module of the package in a folder; asked for some thousand names in each closure."""
    parts = name.split(".")[1:]
    for path in (root.joinpath(*parts).with_suffix(".py"), root.joinpath(*parts, "__init__.py")):
        if path.is_file():
            return path
    return None


@cache
def read_module(path: Path) -> tuple[str, frozenset[str]]:
    """Hash of a module's code (comments, docstrings and layout left out), and the own modules that it imports.

    Only imports at the top of a module count: what is imported inside a function is another feature.
    """
    tree = ast.parse(path.read_text())
    imports: set[str] = set()
    for line in tree.body:
        if isinstance(line, ast.ImportFrom) and line.module and line.module.startswith("evolvent"):
            imports.add(line.module)
            imports |= {f"{line.module}.{alias.name}" for alias in line.names}
        elif isinstance(line, ast.Import):
            imports |= {a.name for a in line.names if a.name.startswith("evolvent")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:] or [ast.Pass()]
    return hashlib.blake2b(ast.dump(tree).encode(), digest_size=8).hexdigest(), frozenset(imports)


def name_of(path: Path) -> str:
    """What a file is called in the record: within the package, or as seen from here."""
    return f"evolvent/{path.relative_to(ROOT)}" if path.is_relative_to(ROOT) else os.path.relpath(path)


def closure(roots: Iterable[str | Path]) -> dict[str, str]:
    """Hash of every module that the roots import, directly or not, by module name; of files by `name_of`."""
    found: dict[str, str] = {}
    todo = list(roots)
    while todo:
        root = todo.pop()
        path, name = (root, name_of(root)) if isinstance(root, Path) else (module_file(root), root)
        if path is None or name in found or path.name == "__init__.py":
            continue
        if path.suffix == ".py":
            found[name], imports = read_module(path)
            todo += imports
        else:
            found[name] = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    return dict(sorted(found.items()))


def combined(hashes: dict[str, str]) -> str:
    """One hash of several."""
    text = "\n".join(f"{n} {h}" for n, h in sorted(hashes.items()))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def weights_hash(folder: Path) -> str:
    """Hash of a model folder's weights and configuration."""
    digest = hashlib.blake2b(digest_size=8)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        path = folder / name
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()
