"""Files that evaluate for a search, given as a task with problems and a reward: what is to be written instead.

They are told by their text, before they are imported: what they import may not be installed here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from evolvent.core.errors import UserError

ADAPTER = {"evaluate", "make_reflective_dataset"}  # methods of GEPA's
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
A_PROGRAM = re.compile(r"program|(^|_)code(_|$)")  # what a function that reads a program asks for
SOME_TEXTS = re.compile(r"text|prompt|candidate|instruction")  # and one of texts; of other names nobody knows
PLAIN = "write def evaluate(program_path), which may call asyncio.run on a function that waits"


def refuse_evaluator(path: Path, reward: str = "reward") -> None:
    """`UserError` for an evaluator of a search, with how it is used. Whatever has a reward or problems is none."""
    tree = read(path)
    there = names_of(tree)
    if there & {reward, "problems"}:
        return
    evaluates = next((n for n in tree.body if isinstance(n, FUNCTIONS) and n.name == "evaluate"), None)
    methods = [{m.name for m in n.body if isinstance(m, FUNCTIONS)} for n in tree.body if isinstance(n, ast.ClassDef)]
    if evaluates is None and ("adapter" in there or any(names >= ADAPTER for names in methods)):
        raise UserError(f"{path} is a GEPA adapter, so texts evolve by it: {texts(path, there)}")
    if evaluates is None:
        return
    first = [*evaluates.args.posonlyargs, *evaluates.args.args][:1]
    given = first[0].arg if first else ""
    has = f"{path} has evaluate({given}) and no reward, so"
    if SOME_TEXTS.search(given) or (given and "seed_candidate" in there):
        raise UserError(f"{has} texts evolve by it: {texts(path, there)}")
    program = f"write --task {path} --seed-program program.py, with the program to begin with"
    if given and not A_PROGRAM.search(given):
        raise UserError(
            f"{has} programs or texts evolve by it; if `{given}` is the path of a program: {program}; if texts are "
            f"what it gets: {texts(path, there)}"
        )
    refuse_async(path)
    raise UserError(f"{has} programs evolve by it: {program}")


def texts(path: Path, there: set[str]) -> str:
    """How a file is given that evaluates texts."""
    if "seed_candidate" in there:
        return f"write --task texts:{path}"
    return f"write --task texts:{path}:prompts.toml, with the texts to begin with, or add seed_candidate to the file"


def refuse_async(path: Path) -> None:
    """`UserError` for an evaluator of programs whose `evaluate` is async: nobody waits for it in the sandbox."""
    for node in read(path).body:
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "evaluate":
            raise UserError(
                f"{path} line {node.lineno}: evaluate is async, and of programs nobody waits for it; {PLAIN}"
            )


def read(path: Path) -> ast.Module:
    """The syntax tree of a file; an empty one for what cannot be read, which others refuse."""
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def names_of(tree: ast.Module) -> set[str]:
    """What a module defines, imports or assigns at its top level."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, FUNCTIONS | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {t.id for t in targets if isinstance(t, ast.Name)}
    return found
