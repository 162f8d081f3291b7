"""The scripted player: it reads what it sees and the guidance it was given, and remembers its last few commands.

It takes what lies about, opens what is closed, unlocks what it has a key for, and else walks on at random, preferably
where it was not lately. Guidance makes it a planner: it walks the known ways to points, tools and exits nobody tried,
keeps away from what kills, and leaves out what is of no use. Like an actor model with a short memory, it knows of
earlier steps only what guidance says.
"""

from __future__ import annotations

import re
from collections import deque

import numpy as np

from evolvent.tasks.worlds.text_games.game import SWORD
from evolvent.tasks.worlds.text_games.notes import Notes, read

MEMORY = 5  # commands that it remembers
SEEN = re.compile(
    r"<< (?P<room>.+?) >>\nExits: (?P<exits>.*)\.\nHere: (?P<here>.*)\.(?:\nA (?P<guard>.+) watches you\.)?\n"
    r"You carry: (?P<carry>.*)\."
)


class Player:
    """One episode of a player with this guidance. `rng` draws where it walks when it does not know better."""

    def __init__(self, guidance: str, rng: np.random.Generator) -> None:
        self.notes, self.rng = read(guidance), rng
        self.recent: deque[tuple[str, str]] = deque(maxlen=MEMORY)
        self.route = deque(self.notes.route)
        self.done: set[tuple[str, str]] = set()  # lines of the guidance that were carried out
        self.habits: list[str] = []
        self.room = ""
        self.ways: dict[str, list[tuple[str, str]]] = {}  # room -> (direction, where it leads)
        for (room, way), to in self.notes.ways.items():
            self.ways.setdefault(room, []).append((way, to))

    def command(self, seen: str) -> str:
        """The next command."""
        match = SEEN.fullmatch(seen)
        assert match is not None, seen
        if match["room"] != self.room:
            self.room, self.habits = match["room"], list(self.notes.habits)
        carried = set(_items(match["carry"]))
        chosen = self._choose(match, carried)
        self.recent.append((self.room, chosen))
        self.done.add((self.room, chosen))
        return chosen

    def _choose(self, seen: re.Match[str], carried: set[str]) -> str:
        if self.habits:
            return self.habits.pop(0)
        if self.route:
            return self.route.popleft()
        if seen["guard"] and SWORD in carried:
            return f"attack {seen['guard']}"
        for item in _items(seen["here"]):
            command = f"open {item.removesuffix(' (closed)')}" if item.endswith(" (closed)") else f"take {item}"
            if self._may(command, carried) and (self.room, command) not in self.recent:
                return command
        exits: dict[str, str] = {}
        for item in _items(seen["exits"]):
            way, _, mark = item.partition(" (")
            exits[way] = key = mark.removeprefix("locked, ").rstrip(")") if mark.startswith("locked, ") else ""
            if key and key in carried:
                return f"unlock {way}"
        return self._walk([way for way, key in exits.items() if not key], carried)

    def _may(self, command: str, carried: set[str], room: str = "") -> bool:
        """Whether guidance says nothing against a command in a room."""
        place, notes = (room or self.room, command), self.notes
        tool = notes.needs.get(place)
        if tool is not None:
            return tool in carried
        return place not in notes.deadly and place not in notes.vain

    def _walk(self, ways: list[str], carried: set[str]) -> str:
        """Towards what guidance knows of; else at random, not where it went lately or what guidance warns of."""
        way = self._planned(carried)
        if way in ways:
            return f"go {way}"
        notes = self.notes
        good = [w for w in ways if self._may(f"go {w}", carried) and notes.ways.get((self.room, w)) not in notes.empty]
        fresh = [w for w in good if (self.room, f"go {w}") not in self.recent]
        pool = fresh or good or ways
        return f"go {pool[int(self.rng.integers(len(pool)))]}" if pool else "look"

    def _planned(self, carried: set[str]) -> str:
        """The first step on the shortest known way to the nearest target; empty if there is none."""
        notes = self.notes
        self.done |= {place for place in notes.points if place[0] == self.room}  # there is nothing left of them here
        self.done |= {(room, f"take {tool}") for tool, room in notes.lies.items() if room == self.room}
        targets = self._targets(carried)
        first: dict[str, str] = {self.room: ""}
        found: dict[str, str] = {}  # kind of target -> first step
        queue = deque([self.room])
        while queue and len(found) < len(targets):
            room = queue.popleft()
            for kind, rooms in targets.items():
                if room in rooms and kind not in found and (first[room] or rooms[room]):
                    found[kind] = first[room] or rooms[room]
            for way, to in self.ways.get(room, ()):
                if to not in first and to not in notes.empty and self._may(f"go {way}", carried, room):
                    first[to] = first[room] or way
                    queue.append(to)
        wanted = [kind for kind in (notes.order, *found) if kind in found]
        return found[wanted[0]] if wanted else ""

    def _targets(self, carried: set[str]) -> dict[str, dict[str, str]]:
        """Of each kind of target the rooms, and the way to take there."""
        notes: Notes = self.notes
        points = {
            room: ""
            for room, command in notes.points
            if (room, command) not in self.done and self._may(command, carried, room)
        }
        points |= {
            room: ""
            for tool, room in notes.lies.items()
            if tool not in carried and (room, f"take {tool}") not in self.done
        }
        untried = {
            room: way
            for room, way in notes.untried
            if (room, f"go {way}") not in self.done and self._may(f"go {way}", carried, room)
        }
        barred = {  # behind what was closed there is more to see
            room: command.removeprefix("go ")
            for (room, command), tool in notes.needs.items()
            if tool in carried and (room, command) not in self.done and command.startswith("go ")
        }
        return {"points": points, "untried": {**untried, **barred}}


def _items(text: str) -> list[str]:
    return [] if text == "nothing" else text.split("; ")
