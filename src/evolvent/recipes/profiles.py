"""Profiles: what small scale forces, one named table for all recipes.

A profile maps a part's class to values of its fields. It applies wherever that part ends up, over what recipes put
there and under what the user sets; `evolvent show` prints it beside the paper's value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evolvent.core import places

Profile = Mapping[Any, Mapping[str, Any]]

PAPER: Profile = {}

PROFILES: dict[str, Profile | str] = {"paper": PAPER, "tiny": "evolvent.recipes.tiny:TINY"}  # or where it is


def profile_of(name: str) -> Profile:
    """A profile by name. One that names classes of learners is imported only when it is asked for."""
    found = PROFILES[name]
    return places.at(found) if isinstance(found, str) else found
