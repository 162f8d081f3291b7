"""What an evaluator of the user's gave, as data that can leave its process: numbers and texts by name.

Runs where the evaluator runs, in the sandbox or in a process of its own. Standard library only.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Mapping
from typing import Any

SCORES = ("combined_score", "score")
LONGEST = 20_000  # characters of a text


def call(module: str, function: str, path: str) -> Any:
    """What a function of a module says of the program at a path; it gets the whole path, as in OpenEvolve."""
    return data(getattr(importlib.import_module(module), function)(os.path.abspath(path)))


def data(given: Any) -> Any:
    """The numbers and texts of a mapping, and of `metrics` and `artifacts` in it; a number as Python's own; else what
    was given. OpenEvolve's `EvaluationResult` is the mapping that says the same.

    What is neither number nor text stays behind, as pictures and lists that an evaluator gives for its own ends. A
    score in whose place there is something else is told as text, so that the verdict can name it.
    """
    metrics, artifacts = getattr(given, "metrics", None), getattr(given, "artifacts", None)
    if isinstance(metrics, Mapping) and isinstance(artifacts, Mapping | None):
        given = {"metrics": metrics, "artifacts": artifacts or {}}
    if not isinstance(given, Mapping):
        found = number(given)
        return given if found is None else found
    inner = {name: entries(given[name]) for name in ("metrics", "artifacts") if isinstance(given.get(name), Mapping)}
    return {**entries(given), **inner}


def entries(given: Mapping[Any, Any]) -> dict[str, Any]:
    """The numbers and texts of a mapping, by name."""
    found = {}  # type: dict[str, Any]
    for key, value in given.items():
        name = text(str(key))
        kept = text(value) if isinstance(value, str) else number(value)
        if kept is not None:
            found[name] = kept
        elif name in SCORES:
            found[name] = None if value is None else text(repr(value))[:80]
    return found


def number(value: Any) -> bool | int | float | None:
    """A number as Python's own, also one of NumPy, torch, `decimal` or `fractions`; None for what is none."""
    with contextlib.suppress(Exception):
        value = value.item()
    try:
        as_float = float(value) if hasattr(type(value), "__float__") else None
    except Exception:  # an array of several, a whole number of hundreds of digits
        return None
    return value if isinstance(value, bool | int | float) else as_float


def text(whole: str) -> str:
    """A text without halves of characters, which cannot be stored; of a very long one its beginning and its end."""
    if len(whole) > LONGEST:
        half = LONGEST // 2
        whole = f"{whole[:half]}\n[{len(whole) - 2 * half:,} characters are left out]\n{whole[-half:]}"
    return whole.encode(errors="replace").decode()
