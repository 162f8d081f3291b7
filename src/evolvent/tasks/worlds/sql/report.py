"""What an agent's report says of a database, as the scripted writer reads it: a line for each fact.

    table T                  column T.C                join T.C = U.D
    meaning T.C: words       unit T.C: cents           date T.C: %d.%m.%Y
    values T.C: ["a", "b"]   missing T.C: "N/A"

Anything else is left to models to read. Of facts that contradict each other the first one counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from evolvent.core.untrusted import read_json

PLACE = re.compile(r"(\w+)\.(\w+)")
Place = tuple[str, str]  # table, column


@dataclass
class Report:
    """The facts, by table and column as they are called in SQL."""

    columns: dict[str, list[str]] = field(default_factory=dict)
    joins: list[tuple[Place, Place]] = field(default_factory=list)
    meanings: dict[Place, str] = field(default_factory=dict)
    units: dict[Place, str] = field(default_factory=dict)
    dates: dict[Place, str] = field(default_factory=dict)
    values: dict[Place, list[Any]] = field(default_factory=dict)
    missing: dict[Place, list[Any]] = field(default_factory=dict)


def read_report(text: str) -> Report:
    """The facts of a report; lines that are none are skipped, as is one that was cut."""
    found = Report()
    named = {"meaning": found.meanings, "unit": found.units, "date": found.dates}
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        where, _, what = rest.partition(": ")
        place = PLACE.fullmatch(where)
        if word == "table" and rest.isidentifier():
            found.columns.setdefault(rest, [])
        elif word == "column" and place:
            found.columns.setdefault(place[1], []).append(place[2])
        elif word == "join" and (ends := re.fullmatch(r"(\w+)\.(\w+) = (\w+)\.(\w+)", rest)):
            found.joins.append(((ends[1], ends[2]), (ends[3], ends[4])))
        elif word in named and place and what:
            named[word].setdefault((place[1], place[2]), what)
        elif word in ("values", "missing") and place:
            try:
                data = read_json(what)
            except ValueError:
                continue
            if word == "values" and isinstance(data, list):
                found.values.setdefault((place[1], place[2]), data)
            elif word == "missing" and isinstance(data, str | int | float):
                found.missing.setdefault((place[1], place[2]), []).append(data)
    return found
