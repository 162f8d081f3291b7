"""What files and folders a code names: by texts, or by paths that are put together of texts.

A path may stand behind a beginning that need not be known: Path(__file__).parent / "data" / "x.json", or
os.path.join(HERE, "data", "x.json"). A folder is named by a path that goes on with what only a run knows, as
DATA / name, or by one that is listed or handed on; not by one that is only the beginning of a name of a file, nor where
the code makes the folder itself, as one of results, unless it lists it as well.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

LONGEST = 200  # characters of a name
DEEPEST = 50  # expressions within each other that are read
TEXT = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".md", ".yaml", ".yml", ".toml")
JOINING = ("join", "Path", "PosixPath", "PurePath", "PurePosixPath", "joinpath", "with_name")
SAME = ("resolve", "absolute", "abspath", "realpath", "fspath", "str")  # the same path, written otherwise
GLOBS = ("glob", "iglob", "rglob")
LISTS = (*GLOBS, "listdir", "scandir", "walk", "fwalk", "iterdir")
MAKES = ("mkdir", "makedirs")
ASIDE = (*MAKES, "exists", "isdir", "is_dir", "rmtree", "print")  # what says nothing of files that are in a folder
WILD = re.compile(r"[*?\[]")
OPEN = re.compile(r"[*?\[{%]")  # where a pattern begins, or what a run puts into a text
HOME = "."


def bindings(tree: ast.AST) -> dict[str, str]:
    """The paths that are assigned to names, by name; those of attributes, as of self.root, by ".root"."""
    bound: dict[str, str] = {}
    for one in sorted((n for n in ast.walk(tree) if isinstance(n, ast.Assign | ast.AnnAssign)), key=lambda n: n.lineno):
        target = one.targets[0] if isinstance(one, ast.Assign) else one.target
        text = written(one.value, bound) if one.value else None
        if isinstance(target, ast.Name) and text:
            bound[target.id] = text
        elif isinstance(target, ast.Attribute) and text:
            bound[f".{target.attr}"] = text
    return bound


def data(tree: ast.AST, folder: Path) -> Iterator[Path]:
    """The files whose names stand in a code and that are there. Nothing in a hidden folder, and a hidden file, as one
    of passwords, only if it is known as text."""
    bound = bindings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call) and (text := written(node, bound)):
            path = PurePosixPath(text)
            usable = len(text) < LONGEST and text.isprintable() and path.suffix and not path.is_absolute()
            hidden = any(part.startswith(".") for part in path.parts[:-1]) or path.name == ".."
            hidden = hidden or (path.name.startswith(".") and path.suffix not in TEXT)
            if usable and not hidden and not path.suffix.startswith(".py") and (folder / path).is_file():
                yield folder / path


def folders(tree: ast.AST, folder: Path) -> list[Path]:
    """The folders that a code names and that are there; hidden ones aside, and the one that the code lies in."""
    bound = bindings(tree)
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    loaded = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    bare = {
        one.targets[0].id
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Constant)
    }
    found: dict[str, bool] = {}  # whether it is listed
    made = set()
    for node in ast.walk(tree):
        name = in_front(beginning(node, bound) or "")
        if not name or not (folder / name).is_dir():
            continue
        outer = above.get(node)
        if isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Name) and outer.targets[0].id in loaded:
            continue  # what is done with the name says more
        call = called(node, above)
        if call in MAKES:
            made.add(name)
        if call in ASIDE or is_longer(node, name, above, bound):
            continue
        if isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in bare):
            text = written(node, bound) or ""
            goes_on = isinstance(outer, ast.BinOp) and outer.left is node and isinstance(outer.op, ast.Add | ast.Mod)
            alone = not isinstance(outer, ast.Expr | ast.JoinedStr | ast.BinOp)
            alone = alone or (goes_on and (text.endswith("/") or bool(OPEN.search(text))))
            by_path = "/" in text and alone and call not in (*JOINING, *SAME)
            if not (by_path or call in LISTS or call in functions or isinstance(outer, ast.arguments)):
                continue  # a word that happens to be the name of a folder
        found[name] = found.get(name, False) or call in LISTS
    return [folder / name for name, is_listed in found.items() if is_listed or name not in made]


def patterns(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Patterns of files in the code's own folder, and their lines; an empty one where all of it is listed, or what only
    a run knows."""
    bound = bindings(tree)
    for node in ast.walk(tree):
        name = name_of(node.func) if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or name not in LISTS:
            continue
        base = written(node.func.value, bound) if isinstance(node.func, ast.Attribute) else None
        first = written(node.args[0], bound) if node.args else None
        if name in GLOBS and base is not None:
            text = None if first is None else os.path.join(base, "**" if name == "rglob" else "", first)
            at_home = is_home(base)
        elif isinstance(node.func, ast.Attribute) and name in GLOBS and name_of(node.func.value) != "glob":
            continue  # in a folder that only a run knows
        elif name in GLOBS:
            text, at_home = first, bool(node.args) and is_home(beginning(node.args[0], bound))
        else:
            text, at_home = None, is_home(base) or is_home(first) or (name == "listdir" and not node.args)
        if text is not None and WILD.search(text) and not in_front(text) and not PurePosixPath(text).is_absolute():
            path = PurePosixPath(text)
            if any(part.startswith(".") for part in path.parts):
                continue
            yield (str(path) if re.search(r"\w", WILD.sub("", path.name)) else ""), node.lineno
        elif text is None and at_home:
            yield "", node.lineno


def is_home(text: str | None) -> bool:
    """Whether a path is the code's own folder."""
    return text is not None and os.path.normpath(text or HOME) == HOME


def in_front(text: str) -> str:
    """The folder that a path names in front of a pattern; empty for none, a hidden or an absolute one."""
    parts: list[str] = []
    for part in PurePosixPath(text).parts:
        if OPEN.search(part):
            break
        parts.append(part)
    wrong = len(text) >= LONGEST or not text.isprintable() or text.startswith("/")
    wrong = wrong or any(part.startswith(".") or part == "__pycache__" for part in parts)
    return "" if wrong else "/".join(parts)


def called(node: ast.AST, above: Mapping[ast.AST, ast.AST]) -> str:
    """The name of the function that gets an expression, or of its method that is taken; empty for neither."""
    outer = above.get(node)
    if isinstance(outer, ast.keyword):
        outer = above.get(outer)
    if isinstance(outer, ast.Call) and outer.func is not node:
        return name_of(outer.func)
    return outer.attr if isinstance(outer, ast.Attribute) else ""


def name_of(function: ast.AST) -> str:
    """The last name of what is called."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def is_longer(node: ast.AST, name: str, above: Mapping[ast.AST, ast.AST], bound: Mapping[str, str]) -> bool:
    """Whether a path is the beginning of one that is known to its end."""
    outer = above.get(node)
    while isinstance(outer, ast.expr):
        text = written(outer, bound)
        if text and PurePosixPath(text).is_relative_to(name):
            return True
        outer = above.get(outer)
    return False


def beginning(node: ast.AST, bound: Mapping[str, str]) -> str | None:
    """The path that an expression writes out, or the folder that it goes on from with what only a run knows."""
    text = written(node, bound)
    if text is not None or not isinstance(node, ast.Call | ast.JoinedStr):
        return text
    found: str | None = None
    for part in parts_of(node):
        text = written(part, bound, 1)
        if text is None and found is not None:
            break
        if isinstance(node, ast.JoinedStr):
            found = (found or "") + text if text is not None and (found is not None or part is node.values[0]) else None
            if found is None and text is not None and text.startswith("/"):
                found = text.lstrip("/")
        else:
            found = None if text is None else os.path.join(found or "", text)
    if found is not None and isinstance(node, ast.JoinedStr):
        found = found.rpartition("/")[0] or None  # "cases/a_" of f"cases/a_{n}.json"
    return found


def is_own_folder(node: ast.AST) -> bool:
    """Whether an expression is the folder of the code's own file: Path(__file__).parent, os.path.dirname(__file__)."""
    while isinstance(node, ast.Call) and name_of(node.func) in SAME:
        node = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else node.func
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        return is_own_file(node.value)
    return isinstance(node, ast.Call) and name_of(node.func) == "dirname" and any(map(is_own_file, node.args))


def is_own_file(node: ast.AST) -> bool:
    """Whether an expression is the path of the code's own file."""
    while isinstance(node, ast.Call) and name_of(node.func) in (*SAME, "Path", "PurePath"):
        node = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return isinstance(node, ast.Name) and node.id == "__file__"


def written(node: ast.AST, bound: Mapping[str, str], depth: int = 0) -> str | None:
    """The path that an expression writes out, behind a beginning that may be unknown; None where its end is unknown.

    `bound` has such paths by the names that they were assigned to.
    """
    if depth > DEEPEST:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    if is_own_folder(node):
        return HOME
    if isinstance(node, ast.Attribute):
        return bound.get(f".{node.attr}")
    glued, parts = isinstance(node, ast.JoinedStr), parts_of(node)
    glued = glued or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add))
    found: str | None = None
    behind_unknown = False
    for part in parts:
        text = written(part, bound, depth + 1)
        if text is None:
            found, behind_unknown = None, True
        elif glued and found is None and behind_unknown:  # f"{HERE}/x.json", but not f"{number}.json"
            found = text.lstrip("/") if text.startswith("/") else None
        elif glued:
            found = (found or "") + text
        else:
            found = os.path.join(found or "", text)
    return found


def parts_of(node: ast.AST) -> Sequence[ast.AST]:
    """What a path, or a text, is put together of."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, ast.FormattedValue) and node.format_spec is None:
        return [node.value]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
        return [node.left, node.right]
    if isinstance(node, ast.Call) and not node.keywords:
        if isinstance(node.func, ast.Name):
            return node.args if node.func.id in (*JOINING, *SAME) else []
        if isinstance(node.func, ast.Attribute) and node.func.attr in (*JOINING, *SAME):
            of_path = node.func.attr == "joinpath" or not node.args  # else of a module, as os.path.join(...)
            return [node.func.value, *node.args] if of_path else node.args
    return []
