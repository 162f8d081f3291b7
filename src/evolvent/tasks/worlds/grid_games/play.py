"""The interpreter of grid games: a turn of a game, as its rules say. Nothing of a game is executed as code.

A turn: the player moves or acts, then rules on `turn` and `near` are tried in their order, each at all its places from
the top left. One cell holds one object of a name, and at most one solid one; what cannot enter stays where it is. Then
the game is lost, if any condition of `lose` holds or nobody is left to play, or else won, if all of `win` do.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from evolvent.tasks.worlds.grid_games.language import EMPTY, Game, GameError

ACTIONS = ("up", "right", "down", "left", "act")
WON, LOST = 1, -1
MOST_EVENTS = 300  # of one turn; a game that needs more hangs
LARGEST = 9999  # of a counter
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": int.__lt__, "<=": int.__le__, "==": int.__eq__, ">=": int.__ge__, ">": int.__gt__
}  # fmt: skip


class State(NamedTuple):
    """A position: a bit for each object in each cell, the counters, the way the player faces."""

    cells: tuple[int, ...]
    counters: tuple[int, ...]
    facing: int = 0


@dataclass
class Fault(Exception):
    """A game that went wrong while it was played, and the place of the rule that did it (-1: none)."""

    what: str
    rule: int = -1


@dataclass(frozen=True)
class Bound:
    """A rule with bits for names."""

    place: int
    who: int
    what: int
    conditions: tuple[tuple, ...]
    effects: tuple[tuple, ...]


class Machine:
    """A game, ready to be played. `GameError` where it names what is not there."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.bits = {name: 1 << i for i, name in enumerate(game.objects)}
        self.slots = {name: i for i, name in enumerate(game.counters)}
        self.symbols = {k.symbol: self.bits[n] for n, k in game.objects.items()}
        self.solid = sum(self.bits[n] for n, k in game.objects.items() if k.solid)
        self.player = sum(self.bits[n] for n, k in game.objects.items() if k.player)
        rules = [
            (r.on, Bound(i, self._bit(r.who), self._bit(r.what or r.who), *self._bound(r.conditions, r.effects)))
            for i, r in enumerate(game.rules)
        ]
        self.bump = {bit: [b for on, b in rules if on == "bump" and b.who == bit] for bit in self.bits.values()}
        self.enter = {bit: [b for on, b in rules if on == "enter" and b.who == bit] for bit in self.bits.values()}
        self.act = [b for on, b in rules if on == "act"]
        self.late = [(on == "near", b) for on, b in rules if on in ("turn", "near")]
        self.win, _ = self._bound(game.win, ())
        self.lose, _ = self._bound(game.lose, ())
        self.size = (0, 0)
        self.beside: list[tuple[int, int, int, int]] = []

    def _bit(self, name: str) -> int:
        if name not in self.bits:
            raise GameError(f"there is no object `{name}`")
        return self.bits[name]

    def _bound(self, conditions: tuple, effects: tuple) -> tuple[tuple, tuple]:
        """With bits of objects and places of counters for names."""
        first = [
            (c[0], self._slot(c[1]), COMPARE[c[2]], c[3]) if c[0] == "count" else (c[0], *map(self._bit, c[1:]))
            for c in conditions
        ]
        second = []
        for name, *rest in effects:
            if name in ("count", "set"):
                rest[0] = self._slot(rest[0])
            elif name in ("become", "send"):
                rest[1] = self._bit(rest[1])
            elif name in ("drop", "spread"):
                rest[0] = self._bit(rest[0])
            second.append((name, *rest))
        return tuple(first), tuple(second)

    def _slot(self, name: str) -> int:
        if name not in self.slots:
            raise GameError(f"there is no counter `{name}`")
        return self.slots[name]

    def begin(self, rows: tuple[str, ...]) -> State:
        """The first position of a level. `GameError` for a symbol that is no object's."""
        cells = []
        for symbol in "".join(rows):
            if symbol != EMPTY and symbol not in self.symbols:
                raise GameError(f"no object has the symbol `{symbol}`")
            cells.append(self.symbols.get(symbol, 0))
        if self.size != (size := (len(rows), len(rows[0]))):
            self.size, self.beside = size, neighbours(*size)
        return State(tuple(cells), tuple(self.game.counters.values()), 0)

    def step(self, state: State, action: int) -> tuple[State, int, int]:
        """The next position, whether it is won or lost (0: neither), and the rules that fired, as bits of their places.

        `Fault` where the game hangs, sends somebody nowhere, or a counter runs away.
        """
        return Turn(self, state, action).result()

    def outcome(self, cells: list[int], counters: list[int]) -> int:
        """What the conditions say of a position."""
        if not functools.reduce(operator.or_, cells) & self.player:
            return LOST
        for c in self.lose:
            if holds(c, cells, counters):
                return LOST
        for c in self.win:
            if not holds(c, cells, counters):
                return 0
        return WON if self.win else 0


def neighbours(rows: int, columns: int) -> list[tuple[int, int, int, int]]:
    """Of each cell those above, right, below and left; -1 where there is none."""
    found = []
    for i in range(rows * columns):
        r, c = divmod(i, columns)
        found.append((
            i - columns if r else -1,
            i + 1 if c < columns - 1 else -1,
            i + columns if r < rows - 1 else -1,
            i - 1 if c else -1,
        ))  # fmt: skip
    return found


def holds(condition: tuple, cells: list[int], counters: list[int]) -> bool:
    """Whether a condition holds."""
    name, a, *rest = condition
    if name == "count":
        return bool(rest[0](counters[a], rest[1]))
    if name == "none":
        return not any(c & a for c in cells)
    if name == "some":
        return any(c & a for c in cells)
    both = [c & rest[0] for c in cells if c & a]
    return any(both) if name == "on" else bool(both) and all(both)


class Turn:
    """One turn under way."""

    def __init__(self, machine: Machine, state: State, action: int) -> None:
        self.m, self.cells, self.counters = machine, list(state.cells), list(state.counters)
        self.facing, self.action, self.fired, self.flag, self.events = state.facing, action, 0, 0, 0

    def result(self) -> tuple[State, int, int]:
        """Play it."""
        m = self.m
        at = self.player()
        if at >= 0:
            bit = self.cells[at] & m.player
            if self.action < 4:
                self.facing = self.action if m.act else 0
                self.move(at, bit & -bit, self.action)
            elif m.act and (to := m.beside[at][self.facing]) >= 0:
                for rule in m.act:
                    if self.cells[at] & rule.who and self.cells[to] & rule.what and self.ready(rule):
                        self.run(rule, at, to, rule.who, self.facing)
        for near, rule in m.late:
            if not self.flag:
                self.all_of(near, rule)
        outcome = self.flag or m.outcome(self.cells, self.counters)
        return State(tuple(self.cells), tuple(self.counters), self.facing), outcome, self.fired

    def player(self) -> int:
        """The player's cell; -1 if there is none."""
        player = self.m.player
        for i, c in enumerate(self.cells):
            if c & player:
                return i
        return -1

    def ready(self, rule: Bound) -> bool:
        """Whether all conditions of a rule hold."""
        return not rule.conditions or all(holds(c, self.cells, self.counters) for c in rule.conditions)

    def all_of(self, near: bool, rule: Bound) -> None:
        """A rule at the end of the turn, at each place where there was a `who` when it began."""
        for at in [i for i, c in enumerate(self.cells) if c & rule.who]:
            to = at
            if near:
                to = next((n for n in self.m.beside[at] if n >= 0 and self.cells[n] & rule.what), -1)
            if to >= 0 and self.cells[at] & rule.who and not self.flag and self.ready(rule):
                self.run(rule, at, to, rule.who, self.action if self.action < 4 else -1)

    def move(self, at: int, bit: int, way: int) -> int:
        """Move an object one cell, and what follows from it; the cell where it is then."""
        self.events += 1
        if self.events > MOST_EVENTS:
            raise Fault("a turn has no end")
        to = self.m.beside[at][way]
        if to < 0:
            return at
        for rule in self.m.bump[bit]:
            if self.cells[to] & rule.what and self.ready(rule) and not self.run(rule, at, to, bit, way):
                return at
        if not self.cells[at] & bit or self.cells[to] & (self.m.solid | bit) or self.flag:
            return at
        self.cells[at] &= ~bit
        self.cells[to] |= bit
        for rule in self.m.enter[bit]:
            here = to
            if self.cells[here] & bit and self.cells[here] & rule.what and rule.what != bit and self.ready(rule):
                self.run(rule, here, here, bit, way, came=at)
                if any(e[0] == "slide" for e in rule.effects) and self.cells[here] & bit and not self.flag:
                    return self.move(here, bit, way)
        return to

    def run(self, rule: Bound, at: int, to: int, bit: int, way: int, came: int = -1) -> bool:
        """The effects of a rule; whether who may go on (of rules on `bump`)."""
        self.events += 1
        if self.events > MOST_EVENTS:
            raise Fault("a turn has no end", rule.place)
        self.fired |= 1 << rule.place
        goes, cells = True, self.cells
        for name, *rest in rule.effects:
            side, mine = (at, bit) if rest and rest[0] == "who" else (to, rule.what)
            if name == "block":
                goes = False
            elif name == "push":
                goes = goes and self.move(to, rule.what, way) != to
            elif name == "swap":
                cells[at], cells[to] = cells[at] & ~bit | rule.what, cells[to] & ~rule.what | bit
                goes = False
            elif name == "remove":
                cells[side] &= ~mine
            elif name == "become":
                cells[side] = cells[side] & ~mine | rest[1] if cells[side] & mine else cells[side]
            elif name == "drop":
                cells[came if came >= 0 else at] |= rest[0]
            elif name == "count":
                self.counters[rest[0]] += rest[1]
                if abs(self.counters[rest[0]]) > LARGEST:
                    raise Fault("a counter runs away", rule.place)
            elif name == "set":
                self.counters[rest[0]] = rest[1]
            elif name == "send":
                self.send(side, mine, rest[1], rule.place)
            elif name == "step":
                self.step(at, bit, rest[0], way)
            elif name == "spread":
                for n in self.m.beside[at]:
                    if n >= 0 and not cells[n] & self.m.solid:
                        cells[n] |= rest[0]
            elif name in ("win", "lose"):
                self.flag = WON if name == "win" else LOST
        return goes

    def send(self, at: int, bit: int, goal: int, place: int) -> None:
        """Move an object to the next cell with a goal, from its own on; a fault if there is none but its own."""
        if not self.cells[at] & bit:
            return
        size = len(self.cells)
        for i in range(1, size):
            to = (at + i) % size
            if self.cells[to] & goal:
                if not self.cells[to] & (self.m.solid | bit) & ~goal:
                    self.cells[at] &= ~bit
                    self.cells[to] |= bit
                return
        raise Fault("somebody is sent to where there is nothing", place)

    def step(self, at: int, bit: int, where: str, way: int) -> None:
        """Move an object by itself."""
        names = ("up", "right", "down", "left")
        if where in names:
            way = names.index(where)
        elif where in ("toward", "away"):
            other, columns = self.player(), self.m.size[1]
            if other < 0 or other == at:
                return
            down, right = other // columns - at // columns, other % columns - at % columns
            way = (2 if down > 0 else 0) if abs(down) >= abs(right) else (1 if right > 0 else 3)
            way = way if where == "toward" else (way + 2) % 4
        elif way >= 0 and where == "against":
            way = (way + 2) % 4
        if way >= 0 and self.cells[at] & bit:
            self.move(at, bit, way)
