"""What was changed between two programs, as lines taken away and lines put there, and how alike two changes are."""

from __future__ import annotations

import difflib
from functools import lru_cache

Change = frozenset[str]


@lru_cache(10_000)
def change(before: str, after: str) -> Change:
    """The lines that went ("- ...") and that came ("+ ..."), without their indentation, empty lines and comments.

    Where they stand does not count: the same line put elsewhere is the same change.
    """
    old, new = _lines(before), _lines(after)
    found: set[str] = set()
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            found |= {f"- {line}" for line in old[i:j]} | {f"+ {line}" for line in new[k:m]}
    return frozenset(found)


def shown(lines: Change) -> str:
    """The lines as a text, those that went before those that came; `no change` without any."""
    return "\n".join(sorted(lines, reverse=True)) or "no change"


def overlap(one: Change, other: Change) -> float:
    """How alike two sets are, from 0 to 1: the share of what is in either that is in both; 1 for two empty ones."""
    either = len(one | other)
    return len(one & other) / either if either else 1.0


def _lines(source: str) -> list[str]:
    stripped = (line.strip() for line in source.split("\n"))
    return [line for line in stripped if line and not line.startswith("#")]
