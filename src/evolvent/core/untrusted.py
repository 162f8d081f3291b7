"""Texts that somebody else has written: a model, a program, a service."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 100  # levels of JSON: what copies or writes the data goes down several calls for each


def read_json(text: str, **how: Any) -> Any:
    """The data of a JSON text, `how` as for `json.loads`. `ValueError` for what is none, or is nested too deeply."""
    try:
        data = json.loads(text, **how)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level, deep = [[data]], 0
    while level := [x for part in level for x in parts(part)]:
        deep += 1
        if deep > DEEPEST:
            raise ValueError("it is nested too deeply")
    return data


def parts(data: Any) -> list[Any]:
    """The lists and objects in a list or an object."""
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [x for x in inner if isinstance(x, dict | list)]
