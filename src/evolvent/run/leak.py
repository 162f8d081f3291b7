"""A target value that stands in a prompt: a model that reads it can write towards it, or write it down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evolvent.run.assemble import Assembled

NUMBER = re.compile(r"(?<![\w.])\d+\.\d+")
NAMED = re.compile(
    r"\w*(?:target|best[ _]known|known[ _]best|sota|state[ _-]of[ _-]the[ _-]art|record|optimum|optimal)\w*"
    r"[^\n\d]{0,40}?(?<![\w.])\d+\.\d+",
    re.IGNORECASE,
)
DIGITS = 3  # significant ones that a number has to have: 0.5 may be anything
CLOSE = 1e-3  # relative; a known value that was rounded is the same


def warnings(assembled: Assembled) -> list[str]:
    """What to say before a model searches: a sentence for each text that it would read a target in."""
    world = getattr(assembled.task, "world", None)
    if world is None or assembled.spec.model == "none":
        return []
    known = [value for value, _, _ in world.known]
    return [
        f"{where} says `{found}`, which looks like the value to reach; a model that reads it can aim at it, or write "
        "it down as its answer. Leave it out, or trust no result that just reaches it"
        for where, text in texts(assembled)
        for found in leaks(text, known)
    ]


def texts(assembled: Assembled) -> Iterator[tuple[str, str]]:
    """What models read that the search did not write: the goal, with a user's evaluator in it, and a user's prompts."""
    world = assembled.task.world  # type: ignore[attr-defined]
    yield f"the goal of {world.name}, which is in every prompt,", world.goal
    folders = {part.prompts for part in assembled.system.parts.values() if isinstance(getattr(part, "prompts", 0), str)}
    for folder in sorted(folders - {""}):
        for path in sorted(Path(folder).glob("*.md")):
            yield f"the prompt {path}", path.read_text(errors="replace")


def leaks(text: str, known: Sequence[float]) -> list[str]:
    """Passages with one of the known values, or with a number that is called a target, a record or the like."""
    found: Mapping[int, str] = {m.end(): m[0] for m in NAMED.finditer(text) if _significant(m[0])}
    plain = {
        m.end(): m[0]
        for m in NUMBER.finditer(text)
        if _significant(m[0]) and any(abs(float(m[0]) - abs(v)) <= CLOSE * abs(v) for v in known)
    }
    return [passage for _, passage in sorted({**plain, **found}.items())]


def _significant(passage: str) -> bool:
    """Whether the number that a passage ends in has enough digits to be somebody's result."""
    return len(NUMBER.findall(passage)[-1].replace(".", "").lstrip("0")) >= DIGITS
