"""Named texts as a Python module, so that whatever varies, compares and merges programs does so with texts.

    texts = {}

    # EVOLVE-BLOCK-START
    texts["system_prompt"] = \"\"\"\\
    You are ...\"\"\"
    # EVOLVE-BLOCK-END

The module is read, never run. Each text is a block of its own: recipes that vary one part at a time take turns.
Models write a module between ```python and ```, so a line of a text that is nothing but ``` ends in an escaped newline
instead of a real one: ```\\n\\
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping

HEAD = '"""Texts by name. Nothing here is run; what may change is what the strings say."""\n\ntexts = {}\n'
START, END = "# EVOLVE-BLOCK-START", "# EVOLVE-BLOCK-END"
NAME = "texts"
MARK = "EVOLVE-BLOCK"
FENCE = re.compile(r"^([ \t]*```[ \t]*)\n", re.MULTILINE)


def written(texts: Mapping[str, str]) -> str:
    """The module that holds these texts; `read` gives them back as they were."""
    parts = [f"\n{START}\n{NAME}[{name!r}] = {literal(text)}\n{END}\n" for name, text in texts.items()]
    return HEAD + "".join(parts)


def literal(text: str) -> str:
    """A string constant over as many lines as the text has; what is not printable is escaped."""
    head, last = (text[:-1], '\\"') if text.endswith('"') else (text, "")
    escaped = head.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') + last
    shown = "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in escaped)
    return '"""\\\n' + FENCE.sub(r"\1\\n\\\n", shown) + '"""'


def read(source: str, names: Collection[str] | None = None) -> dict[str, str]:
    """The texts of a module, by name, in the order of `names`, if there are any that it should have.

    Raises `SyntaxError` for what is no Python, and `ValueError` for a module that holds anything but strings, or other
    names than these; both are fit to be shown to the model that wrote it.
    """
    found: dict[str, str] = {}
    for number, node in enumerate(ast.parse(source).body):
        if (number == 0 and _is_text(node)) or ast.unparse(node) == f"{NAME} = {{}}":
            continue
        name, value = _entry(node)
        if names is not None and name not in names:
            raise ValueError(f"line {node.lineno}: there is no text {name!r}; the texts are {', '.join(names)}")
        if problem := unfit(value):
            raise ValueError(f"the text {name!r} {problem}")
        found[name] = value
    if names is None:
        return found
    if missing := [name for name in names if name not in found]:
        raise ValueError(f"the text {missing[0]!r} is missing; keep all of {', '.join(names)}")
    return {name: found[name] for name in names}


def unfit(text: str) -> str:
    """Why this can be no text of a candidate; empty if it can."""
    if MARK in text:
        return "has EVOLVE-BLOCK marks; each text is a block already"
    if any("\ud800" <= c <= "\udfff" for c in text):
        return "has half of a surrogate pair, which is no character"
    return ""


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _entry(node: ast.stmt) -> tuple[str, str]:
    """Name and text of a line `texts["name"] = "..."`."""
    match node:
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(name)))],
            value=ast.Constant(value=str(text)),
        ) if owner == NAME:
            return name, text
    raise ValueError(
        f'line {node.lineno}: `{ast.unparse(node)[:60]}` is no text; write {NAME}["name"] = """...""", '
        "one plain string for each name"
    )
