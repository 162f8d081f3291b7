"""What the scripted adviser writes and the scripted player understands: facts about a game, one sentence each.

Sentences are plain enough for a language model to read as well. What is in no form that stands here is a line of prose,
which the scripted player passes over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

LINES = 20  # of guidance that a player reads; what follows is left out

Place = tuple[str, str]  # a room, and a command given there


@dataclass
class Notes:
    """Facts about a game, in the order in which they were found.

    ways    (room, direction) -> the room that it leads to
    deadly  (room, command) that killed
    needs   (room, command) -> the tool or key without which it fails or kills
    vain    (room, command) that brought nothing
    points  (room, command) -> points that it brought
    lies    tool or key -> the room where it lies
    untried (room, direction) that was seen and never taken
    empty   rooms that are to be avoided
    route   commands to repeat from the start
    habits  commands to give in every room first
    order   `points` or `untried`: what comes first; empty: what is nearest
    """

    ways: dict[Place, str] = field(default_factory=dict)
    deadly: dict[Place, None] = field(default_factory=dict)
    needs: dict[Place, str] = field(default_factory=dict)
    vain: dict[Place, None] = field(default_factory=dict)
    points: dict[Place, int] = field(default_factory=dict)
    lies: dict[str, str] = field(default_factory=dict)
    untried: dict[Place, None] = field(default_factory=dict)
    empty: dict[str, None] = field(default_factory=dict)
    route: list[str] = field(default_factory=list)
    habits: list[str] = field(default_factory=list)
    order: str = ""


def ways_lines(notes: Notes) -> list[str]:
    """A line for each room."""
    rooms: dict[str, list[str]] = {}
    for (room, way), to in notes.ways.items():
        rooms.setdefault(room, []).append(f"{way} to {to}")
    return [f"From {room}: {', '.join(found)}." for room, found in rooms.items()]


def deadly_lines(notes: Notes) -> list[str]:
    """What kills."""
    return [f"Never {command} in {room}: it kills." for room, command in notes.deadly]


def needs_lines(notes: Notes) -> list[str]:
    """What is to be done with a tool only, and where the tool lies."""
    lies = [f"The {tool} lies in {room}." for tool, room in notes.lies.items()]
    return [f"Only with the {tool}: {command} in {room}." for (room, command), tool in notes.needs.items()] + lies


def vain_lines(notes: Notes) -> list[str]:
    """What is of no use; a line for each room."""
    return [f"It is no use in {room} to {', '.join(found)}." for room, found in _by_room(notes.vain).items()]


def points_lines(notes: Notes) -> list[str]:
    """What brings points, the most first."""
    found = sorted(notes.points.items(), key=lambda item: -item[1])
    return [f"Worth {points}: {command} in {room}." for (room, command), points in found]


def untried_lines(notes: Notes) -> list[str]:
    """Ways that nobody took; a line for each room."""
    return [f"Not tried in {room}: {', '.join(found)}." for room, found in _by_room(notes.untried).items()]


def _by_room(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """What belongs to each room, in order."""
    rooms: dict[str, list[str]] = {}
    for room, what in pairs:
        rooms.setdefault(room, []).append(what)
    return rooms


def empty_lines(notes: Notes) -> list[str]:
    """Rooms to avoid."""
    return [f"Stay away from {room}." for room in notes.empty]


def route_lines(notes: Notes) -> list[str]:
    """Commands to repeat."""
    return [f"Repeat from the start: {'; '.join(notes.route)}."] if notes.route else []


ORDERS = {
    "points": "Collect what is known to be worth points first, then explore.",
    "untried": "Explore first, then collect.",
}
HABIT = "In every room first: {}."
FORMS = {
    "ways": re.compile(r"From ([\w-]+): (.+)\."),
    "deadly": re.compile(r"Never (.+) in ([\w-]+): it kills\."),
    "needs": re.compile(r"Only with the (.+?): (.+) in ([\w-]+)\."),
    "lies": re.compile(r"The (.+) lies in ([\w-]+)\."),
    "vain": re.compile(r"It is no use in ([\w-]+) to (.+)\."),
    "points": re.compile(r"Worth (\d+): (.+) in ([\w-]+)\."),
    "untried": re.compile(r"Not tried in ([\w-]+): (.+)\."),
    "empty": re.compile(r"Stay away from ([\w-]+)\."),
    "route": re.compile(r"Repeat from the start: (.+)\."),
    "habits": re.compile(r"In every room first: (.+)\."),
}


def read(guidance: str, most: int = LINES) -> Notes:
    """The facts in the first `most` lines of a guidance; prose is passed over."""
    notes = Notes()
    for line in [line.strip() for line in guidance.splitlines() if line.strip()][:most]:
        kind, groups = next(((k, m.groups()) for k, form in FORMS.items() if (m := form.fullmatch(line))), ("", ()))
        if kind == "ways":
            for piece in groups[1].split(", "):
                way, _, to = piece.partition(" to ")
                notes.ways[groups[0], way] = to
        elif kind == "deadly":
            notes.deadly[groups[1], groups[0]] = None
        elif kind == "needs":
            notes.needs[groups[2], groups[1]] = groups[0]
        elif kind == "lies":
            notes.lies[groups[0]] = groups[1]
        elif kind == "vain":
            notes.vain |= {(groups[0], command): None for command in groups[1].split(", ")}
        elif kind == "points":
            notes.points[groups[2], groups[1]] = int(groups[0])
        elif kind == "untried":
            notes.untried |= {(groups[0], way): None for way in groups[1].split(", ")}
        elif kind == "empty":
            notes.empty[groups[0]] = None
        elif kind == "route":
            notes.route = groups[0].split("; ")
        elif kind == "habits":
            notes.habits.append(groups[0])
        else:
            notes.order = next((name for name, text in ORDERS.items() if text == line), notes.order)
    return notes
