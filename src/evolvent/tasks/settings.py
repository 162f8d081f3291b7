"""Settings inside of a name: `landscape:k=3,seed=1`, `simulated:skill=0.5`, read into a dataclass."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, TypeVar

from evolvent.core.build import check_type
from evolvent.core.errors import UserError, unknown

Settings = TypeVar("Settings")


def read_settings(kind: type[Settings], text: str, name: str) -> Settings:
    """`a=1,b=2` as an instance of the dataclass `kind`; what is left out has its default.

    `name` is what the settings belong to, for messages. `UserError` for unknown names, names that come twice, values
    of another type, and whatever `kind` itself refuses.
    """
    assert dataclasses.is_dataclass(kind)
    types = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]
    given: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in item.partition("="))
        if not equals:
            raise UserError(f"{name}: `{item}` is no setting; write for example {name}:{known[-1]}=1")
        if key not in known:
            raise unknown("setting", key, known, f"{name} has {', '.join(known)}")
        if key in given:
            raise UserError(f"{name}: {key} is set twice; leave one of them out")
        given[key] = check_type(f"{name}: {key}", value, types[key])
    return kind(**given)
