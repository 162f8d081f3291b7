"""Things by the place where they are: `module:name`."""

from __future__ import annotations

import importlib
from typing import Any


def at(place: str) -> Any:
    """What stands at `module:name`. Raises ImportError, AttributeError or ValueError."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
