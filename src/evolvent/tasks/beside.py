"""What goes into the sandbox with an evaluator of the user's: the files of its folder that it names.

These are modules that it imports, those that they import, and files of text whose names stand in them: as one text, as
"data/x.json", or put together of texts behind a beginning that need not be known, as Path(__file__).parent / "data" /
"x.json" or os.path.join(HERE, "data", "x.json"). Text goes whatever its suffix, but Python, which goes where it is
imported: a folder may hold other programs. What is nowhere named, as runs and environments, is not guessed.

A file that its suffix says to be text has to fit, or the task is refused. Another one that does not, as a binary one,
stays behind, for it may be one that the evaluator writes; where it is missed, the verdict says so (`left_behind`).
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from evolvent.core.errors import UserError

MOST = 2**20  # bytes of all files together
LONGEST = 200  # characters of a name
DEEPEST = 50  # expressions within each other that are read
TEXT = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".md", ".yaml", ".yml", ".toml")
JOINING = ("join", "Path", "PosixPath", "PurePath", "PurePosixPath", "joinpath", "with_name")
SAME = ("resolve", "absolute", "abspath", "realpath", "fspath", "str")  # the same path, written otherwise
MISSED = re.compile(r"No such file or directory: '([^']+)'|FileNotFoundError: (\S+) not found")
OPENEVOLVE = "openevolve"


def beside(folder: Path, codes: Sequence[str], program: Path) -> dict[str, str]:
    """Name -> text of the files in a folder that these codes name; never the `program` that is evaluated.

    `UserError` for a file known as text that is none or leads out of the folder, or for more than `MOST` bytes.
    """
    found: dict[str, str] = {}
    others: list[Path] = []
    left = list(codes)
    while left:
        tree = ast.parse(left.pop())
        for path in [*modules(tree, folder), *data(tree, folder)]:
            name = path.relative_to(folder).as_posix()
            if name in found or path.samefile(program):
                continue
            if path.suffix not in (*TEXT, ".py"):
                others.append(path)
                continue
            if path.suffix != ".py" and not inside(path, folder):
                raise UserError(f"{path} leads out of the evaluator's folder; put a copy of the file there instead")
            found[name] = text = within(path, room(found))
            if path.suffix == ".py":
                try:
                    ast.parse(text)
                except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
                    raise UserError(f"{path} is not Python ({reason}); mend it, it goes with the evaluator") from None
                left.append(text)
    for path in others:  # after all that has to fit
        content = plain(path) if inside(path, folder) and path.stat().st_size <= room(found) else None
        if content is not None:
            found[path.relative_to(folder).as_posix()] = content
    python = [name for name in found if name.endswith(".py")]
    if not any(name.partition("/")[0] in (OPENEVOLVE, f"{OPENEVOLVE}.py") for name in python):
        found |= stand_in([*codes, *(found[name] for name in python)])
    return found


def room(found: Mapping[str, str]) -> int:
    """Bytes that further files may have."""
    return MOST - sum(len(text.encode()) for text in found.values())


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
    """The files whose names stand in a code and that are there. Nothing in a hidden folder, and a hidden file, as one
    of passwords, only if it is known as text."""
    bound: dict[str, str] = {}
    for one in sorted((n for n in ast.walk(tree) if isinstance(n, ast.Assign)), key=lambda n: n.lineno):
        target, text = one.targets[0], written(one.value, bound)
        if isinstance(target, ast.Name) and text:
            bound[target.id] = text
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call) and (text := written(node, bound)):
            path = PurePosixPath(text)
            usable = len(text) < LONGEST and text.isprintable() and path.suffix and not path.is_absolute()
            hidden = any(part.startswith(".") for part in path.parts[:-1]) or path.name == ".."
            hidden = hidden or (path.name.startswith(".") and path.suffix not in TEXT)
            if usable and not hidden and not path.suffix.startswith(".py") and (folder / path).is_file():
                yield folder / path


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


def inside(path: Path, folder: Path) -> bool:
    """Whether a file lies in a folder, and not behind a link that leads out of it, or into a hidden one."""
    real, home = path.resolve(), folder.resolve()
    return real.is_relative_to(home) and not any(p.startswith(".") for p in real.relative_to(home).parts[:-1])


def plain(path: Path) -> str | None:
    """The text of a file as it is, without loss; None for what is no text."""
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text


def left_behind(folder: Path, along: Collection[str], error: str) -> str:
    """What to say of an error about a file that lies in the folder and did not go `along`; empty for other errors.

    The error may have the path of the file in the sandbox, whose end is looked for.
    """
    for match in MISSED.finditer(error[:4000]):
        parts = [part for part in PurePosixPath(match[1] or match[2]).parts if part != "/"]
        for start in range(len(parts) if ".." not in parts else 0):
            name = "/".join(parts[start:])
            if os.path.exists(folder / name) and name not in along:
                return f"{name} lies beside the evaluator and did not go into the sandbox with it: {why(folder, name)}"
    return ""


def why(folder: Path, name: str) -> str:
    """Why a file stayed behind, and what to do."""
    path = folder / name
    if path.is_dir():
        return "folders do not go as a whole; name their files one by one in the evaluator, each as one text"
    if path.suffix.startswith(".py"):
        return "Python goes where it is imported; import it in the evaluator"
    if name.startswith(".") or "/." in name or not inside(path, folder):
        return "it is hidden, or leads out of the folder; put a copy of it beside the evaluator under another name"
    if path.stat().st_size > MOST:
        return f"all files together may have {MOST >> 20} MiB; make it smaller"
    if plain(path) is None:
        return "it is no UTF-8 text; save what is in it as .json or .csv, and read that"
    return (
        "its name, with a suffix, has to be written out in the evaluator, as in "
        f'Path(__file__).parent / "data" / "x.json", and all files together may have {MOST >> 20} MiB'
    )


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
