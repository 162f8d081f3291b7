"""What a model writes, read where a program is named texts (`tasks.texts.module`): only what it has changed counts.

Nothing is run: strings are read as literals.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from evolvent.core.python import parses
from evolvent.search.variation.edits import EditError, fenced, within
from evolvent.tasks.texts.module import NAME, literal, read, unfit


def names_of(source: str) -> list[str]:
    """The names of the texts, in their order; none of a program that is no module of texts."""
    if f"\n{NAME}[" not in source or not parses(source):
        return []
    try:
        return list(read(source))
    except ValueError:
        return []


def with_texts(source: str, answer: str, asked: Sequence[str]) -> str:
    """The module with those texts that the answer has; the others stay as they are. An answer without a line
    `texts["name"] = ...` is the text itself, or the only code block is, where one alone was `asked` for. Raises
    EditError for anything else."""
    names, found = names_of(source), assigned(answer)
    if not found and len(asked) == 1:
        found = {asked[0]: bare(answer)}
    if not found:
        raise EditError(f'the answer holds no text; write {NAME}["{names[0]}"] = """...""" between ```python and ```')
    for name, text in found.items():
        if name not in names:
            raise EditError(f"there is no text {name!r}; the texts are {', '.join(names)}")
        if problem := unfit(text):
            raise EditError(f"the text {name!r} {problem}")
    lines, old = source.split("\n"), read(source)
    for node in reversed(ast.parse(source).body):
        for name, text in found.items():
            if text != old[name] and ast.unparse(node).startswith(f"{NAME}[{name!r}]"):
                lines[node.lineno - 1 : node.end_lineno] = [f"{NAME}[{name!r}] = {literal(text)}"]
    return within(source, "\n".join(lines))


def assigned(answer: str) -> dict[str, str]:
    """The texts of all lines `texts["name"] = ...` of an answer, whatever stands around them; of a name the last."""
    lines, found, at = answer.split("\n"), dict[str, str](), 0
    while at < len(lines):
        end = at + 1
        if lines[at].startswith(f"{NAME}["):
            ends = (i + 1 for i in range(at, len(lines)) if '"' in lines[i] or "'" in lines[i] or ")" in lines[i])
            end = next((i for i in ends if parses("\n".join(lines[at:i]))), 0)
            if not end:
                raise EditError(f"the text that line {at + 1} of the answer begins is no string, or does not end")
            try:
                found |= read("\n".join(lines[at:end]))
            except ValueError as reason:
                raise EditError(str(reason)) from None
        at = end
    return found


def bare(answer: str) -> str:
    """The text of an answer that is nothing else: its only code block, or all of it; a string is what it says."""
    marks = [line for line in answer.split("\n") if line.lstrip().startswith("```")]
    blocks = fenced(answer)
    if marks and (len(marks) > 2 or len(blocks) != 1):
        raise EditError("the answer should have one code block, with the text; lines of a text may be no fences")
    text = (blocks[0][1] if blocks else answer).strip("\r\n")
    if parses(text):
        match ast.parse(text).body:
            case [ast.Expr(value=ast.Constant(value=str(said)))] | [ast.Assign(value=ast.Constant(value=str(said)))]:
                text = said
    if not text.strip():
        raise EditError("the answer is empty; write the text between ```python and ```")
    return text
