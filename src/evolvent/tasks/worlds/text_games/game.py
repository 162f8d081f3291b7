"""The rules of a text game: rooms, things, doors and dangers; text in, text out, an end after so many steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LAMP, SWORD = "lamp", "sword"
DIRECTIONS = ("north", "south", "east", "west", "up", "down")
COMMANDS = "go DIRECTION, take THING, open THING, unlock DIRECTION, attack CREATURE, look, inventory"


@dataclass(frozen=True)
class Exit:
    """A way out of a room. `key` is what unlocks it, if it is locked; a `dark` one kills who has no lamp, a `deadly`
    one everybody."""

    to: str
    key: str = ""
    dark: bool = False
    deadly: bool = False


@dataclass(frozen=True)
class Layout:
    """A game as it begins.

    exits     room -> direction -> exit
    things    room -> what lies there
    closed    room -> container -> what is in it
    worth     points of each treasure, and of each guard that is overcome
    poison    things that kill who takes them
    fixed     things that nobody can take
    guards    room -> who stands there; with a sword it can be attacked, and who walks past it is dead
    """

    start: str
    exits: Mapping[str, Mapping[str, Exit]]
    things: Mapping[str, tuple[str, ...]]
    closed: Mapping[str, Mapping[str, tuple[str, ...]]]
    worth: Mapping[str, int]
    poison: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    guards: Mapping[str, str] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """All points that there are."""
        return sum(self.worth.values())


class Game:
    """One episode. `step` gives the reply and the points that it brought; `over` says that it has come to its end."""

    def __init__(self, layout: Layout, limit: int) -> None:
        self.layout, self.left, self.room = layout, limit, layout.start
        self.things = {room: list(found) for room, found in layout.things.items()}
        self.closed = {room: dict(found) for room, found in layout.closed.items()}
        self.guards = dict(layout.guards)
        self.carried: list[str] = []
        self.unlocked: set[tuple[str, str]] = set()
        self.came = ""  # where from
        self.score, self.over = 0, False

    def see(self) -> str:
        """What the player sees."""
        exits = []
        for way, exit in self.layout.exits[self.room].items():
            locked = exit.key and (self.room, way) not in self.unlocked
            exits.append(f"{way} (locked, {exit.key})" if locked else f"{way} (dark)" if exit.dark else way)
        here = [*self.things.get(self.room, []), *(f"{name} (closed)" for name in self.closed.get(self.room, {}))]
        guard = f"\nA {self.guards[self.room]} watches you." if self.room in self.guards else ""
        return (
            f"<< {self.room} >>\nExits: {'; '.join(exits)}.\nHere: {'; '.join(here) or 'nothing'}.{guard}\n"
            f"You carry: {'; '.join(self.carried) or 'nothing'}."
        )

    def step(self, command: str) -> tuple[str, int]:
        """What a command leads to: the reply, and points. What is no command costs a step as well."""
        if self.over:
            raise ValueError("the game is over")
        verb, _, rest = command.strip().lower().partition(" ")
        if verb in DIRECTIONS:
            verb, rest = "go", verb
        act = {"go": self._go, "take": self._take, "open": self._open, "unlock": self._unlock, "attack": self._attack}
        before = self.score
        if verb in act:
            reply = act[verb](rest.strip())
        elif verb in ("look", "inventory"):
            reply = "You see what you saw."
        else:
            reply = "You can't do that here."
        self.left -= 1
        self.over = self.over or self.left <= 0 or self.score == self.layout.most
        return reply, self.score - before

    def _dead(self, why: str) -> str:
        self.over = True
        return f"{why} You are dead."

    def _go(self, way: str) -> str:
        exit = self.layout.exits[self.room].get(way)
        if exit is None:
            return "You can't go there."
        if exit.key and (self.room, way) not in self.unlocked:
            return f"You can't go there without the {exit.key}."
        if self.room in self.guards and exit.to != self.came:
            return self._dead(f"The {self.guards[self.room]} strikes you, who are without the {SWORD}.")
        if exit.deadly:
            return self._dead("The ground gives way.")
        if exit.dark and LAMP not in self.carried:
            return self._dead(f"You stumble in the dark, without the {LAMP}.")
        self.came, self.room = self.room, exit.to
        return "You walk on."

    def _take(self, thing: str) -> str:
        here = self.things.get(self.room, [])
        if thing not in here:
            return f"You can't see any {thing}."
        if thing in self.layout.fixed:
            return f"You can't move the {thing}."
        if thing in self.layout.poison:
            return self._dead(f"The {thing} burns your skin.")
        here.remove(thing)
        self.carried.append(thing)
        self.score += self.layout.worth.get(thing, 0)
        return "Taken."

    def _open(self, name: str) -> str:
        found = self.closed.get(self.room, {}).pop(name, None)
        if found is None:
            return f"You can't open any {name}."
        self.things.setdefault(self.room, []).extend(found)
        return f"The {name} has {', '.join(found) or 'nothing'} in it."

    def _unlock(self, way: str) -> str:
        exit = self.layout.exits[self.room].get(way)
        if exit is None or not exit.key or exit.key not in self.carried:
            return "You can't unlock that."
        self.unlocked.add((self.room, way))
        return "It opens."

    def _attack(self, name: str) -> str:
        if self.guards.get(self.room) != name:
            return f"You can't see any {name}."
        if SWORD not in self.carried:
            return self._dead(f"The {name} strikes you, who are without the {SWORD}.")
        del self.guards[self.room]
        self.score += self.layout.worth.get(name, 0)
        return f"The {name} runs away."
