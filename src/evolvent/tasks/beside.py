"""What goes into the sandbox with an evaluator of the user's: the files of its folder that it names.

These are modules that it imports, those that they import, and files and folders whose names stand in them (see
`named`). A file goes whatever its suffix, but Python, which goes where it is imported: a folder may hold other
programs. A named folder goes with all that is in it, and of the evaluator's own folder what a pattern in the text
matches. What is nowhere named, as runs and environments, is not guessed.

A file that its suffix says to be text has to fit, and so has a folder, or the task is refused. Another file that does
not stays behind, for it may be one that the evaluator writes; where it is missed, the verdict says so (`left_behind`).
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from evolvent.core.errors import UserError
from evolvent.core.python import fault, parses
from evolvent.tasks.named import TEXT, data, folders, patterns

MOST = 16 * 2**20  # bytes of all files together
MANY = 4096  # files of a folder; each takes a page in the sandbox, whose folder has 64 MiB
MISSED = re.compile(r"No such file or directory: '([^']+)'|FileNotFoundError: (\S+) not found")
OPENEVOLVE = "openevolve"
CASES = 'Path(__file__).parent / "cases"'

Files = dict[str, str | bytes]


def beside(
    folder: Path, codes: Sequence[str], program: Path, say: Callable[[str], None] = lambda line: None
) -> dict[str, str | bytes]:
    """Name -> content of the files in a folder that these codes name; never the `program` that is evaluated.

    `say` is told what a code may look for, and will not find. `UserError` for a file known as text or a named folder
    that leads out of the folder, or for more than `MOST` bytes.
    """
    found: Files = {}
    others: list[Path] = []
    whole: dict[Path, None] = {}  # folders, in order
    alike: dict[str, None] = {}
    left = list(codes)
    while left:
        code = left.pop()
        tree = ast.parse(code)
        for path in [*modules(tree, folder), *data(tree, folder)]:
            name = path.relative_to(folder).as_posix()
            if name in found or path.samefile(program):
                continue
            if path.suffix not in (*TEXT, ".py"):
                others.append(path)
                continue
            if path.suffix != ".py" and not inside(path, folder):
                raise UserError(f"{path} leads out of the evaluator's folder; put a copy of the file there instead")
            check_size(path, room(found))
            if path.suffix != ".py":
                found[name] = content_of(path)
                continue
            found[name] = text = source(path)
            if reason := fault(text):
                raise UserError(f"{path} is not Python ({reason}); mend it, it goes with the evaluator")
            left.append(text)
        whole |= dict.fromkeys(folders(tree, folder))
        for pattern, line in patterns(tree):
            if pattern:
                alike[pattern] = None
            else:
                told = code.splitlines()[line - 1].strip()[:80]
                say(
                    f"`{told}` looks through the evaluator's own folder, of which only what is named goes into the "
                    f"sandbox; put what it looks for into a folder below, and look through {CASES}"
                )
    for path in whole:
        add(found, files_of(path, folder, say), folder, program, f"the folder {path}")
    for pattern in alike:
        matched = [path for path in sorted(folder.glob(pattern)) if goes(path, folder)]
        add(found, matched, folder, program, f"what {pattern} matches in {folder}")
    for path in others:  # after all that has to fit
        name = path.relative_to(folder).as_posix()
        if name not in found and inside(path, folder) and path.stat().st_size <= room(found):
            found[name] = content_of(path)
    python = [text for name, text in found.items() if name.endswith(".py") and isinstance(text, str)]
    own = {name.partition("/")[0] for name in found if name.endswith(".py")}
    if not own & {OPENEVOLVE, f"{OPENEVOLVE}.py"}:
        found |= stand_in([*codes, *filter(parses, python)])
    return found


def add(found: Files, paths: Sequence[Path], folder: Path, program: Path, what: str) -> None:
    """Put files to those found. `UserError` where there are too many, or they are too large."""
    new = {path.relative_to(folder).as_posix(): path for path in paths if not path.samefile(program)}
    new = {name: path for name, path in new.items() if name not in found}
    size = sum(path.stat().st_size for path in new.values())
    if size > room(found) or len(new) > MANY:
        raise UserError(
            f"{what}, which the evaluator names, has {len(new):,} files and {size / 2**20:,.1f} MiB; all that goes "
            f"into the sandbox may have {MANY:,} files and {MOST >> 20} MiB: make it smaller, or name the "
            "files that are needed one by one"
        )
    found |= {name: content_of(path) for name, path in new.items()}


def files_of(path: Path, folder: Path, say: Callable[[str], None]) -> list[Path]:
    """The files below a named folder. `UserError` for one that leads out of the evaluator's."""
    if not inside(path / "x", folder):
        raise UserError(f"{path} leads out of the evaluator's folder; put a copy of the folder there instead")
    files, out = [], []
    for place, below, names in os.walk(path):
        out += [Path(place, name) for name in below if Path(place, name).is_symlink() and not name.startswith(".")]
        below[:] = sorted(name for name in below if not name.startswith(".") and name != "__pycache__")
        for each in sorted(Path(place, name) for name in names):
            if goes(each, folder):
                files.append(each)
            elif each.is_symlink() and not each.name.startswith("."):
                out.append(each)
        if len(files) > MANY:
            break
    if out:
        more = f" and {len(out) - 1:,} more" if len(out) > 1 else ""
        say(f"{out[0]}{more} does not go into the sandbox: it is a link; put a copy there instead")
    return files


def goes(path: Path, folder: Path) -> bool:
    """Whether a file of a named folder goes along: a plain one, not hidden, and no compiled module."""
    parts = path.relative_to(folder).parts
    hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
    return not hidden and path.suffix != ".pyc" and path.is_file() and inside(path, folder)


def content_of(path: Path) -> str | bytes:
    """What is in a file: text, or bytes where it is none. `UserError` where it cannot be read."""
    try:
        content = path.read_bytes()
    except OSError as reason:
        raise UserError(f"{path} cannot be read ({reason.strerror}); mend that, or name another file") from None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def room(found: Mapping[str, str | bytes]) -> int:
    """Bytes that further files may have."""
    return MOST - sum(len(x.encode() if isinstance(x, str) else x) for x in found.values())


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


def inside(path: Path, folder: Path) -> bool:
    """Whether a file lies in a folder, and not behind a link that leads out of it, or into a hidden one."""
    real, home = path.resolve(), folder.resolve()
    return real.is_relative_to(home) and not any(p.startswith(".") for p in real.relative_to(home).parts[:-1])


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
        return (
            f"a folder goes where the evaluator names it, as in {CASES}, and does not make it itself; or name its "
            "files one by one, each as one text"
        )
    if path.suffix.startswith(".py"):
        return "Python goes where it is imported; import it in the evaluator"
    if name.startswith(".") or "/." in name or not inside(path, folder):
        return "it is hidden, or leads out of the folder; put a copy of it beside the evaluator under another name"
    if path.stat().st_size > MOST:
        return f"all files together may have {MOST >> 20} MiB; make it smaller"
    return (
        "its name, with a suffix, has to be written out in the evaluator, as in "
        f'Path(__file__).parent / "data" / "x.json", and all that goes may have {MOST >> 20} MiB'
    )


def check_size(path: Path, room: int) -> None:
    """`UserError` for a file of more bytes than there is room for."""
    if path.stat().st_size > room:
        raise UserError(
            f"the files that the evaluator uses are larger than {MOST >> 20} MiB with {path}; make them smaller, or "
            "write what it needs into the evaluator"
        )


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
