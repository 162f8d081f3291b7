"""Tables of settings, nested as in TOML or flat as on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flatten(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested tables as dotted paths. What has other keys than texts is a value: steps, for instance."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{above}.{key}" if above else key
        if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
            found |= flatten(value, path)
        else:
            found[path] = value
    return found
