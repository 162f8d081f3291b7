"""A bot that plays grid games: whether a game runs, can be won, can be lost, and which of its rules ever fire.

On every level it searches for a way to win, best first: by the number of turns so far plus what of `win` is open yet,
which is more than breadth first where `win` says how far it is, and the same where it does not. It looks at up to
`limit` positions; then it plays at random, `plays` times and up to `length` turns. What it does is a function of the
game, the levels and the seed.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evolvent.tasks.worlds.grid_games.differ import Mechanic, mechanics, without
from evolvent.tasks.worlds.grid_games.language import EMPTY, Game, GameError
from evolvent.tasks.worlds.grid_games.play import ACTIONS, LOST, WON, Fault, Machine, State

Level = tuple[str, ...]


@dataclass(frozen=True)
class Effort:
    """How hard the bot tries on one level."""

    limit: int = 150  # positions that a search looks at from
    plays: int = 3  # at random
    length: int = 24  # turns of each


@dataclass
class Played:
    """What the bot found out about one level.

    way      actions of the way to win that the search found; None if it found none
    at_once  won or lost before anybody has moved
    lost     whether some play was lost
    luck     share of random plays that were won
    moved    whether any action changes the position at the beginning
    fired    places of rules
    fault    what went wrong, and the place of the rule
    plays    the actions of all plays, the way to win among them
    """

    way: tuple[int, ...] | None = None
    at_once: bool = False
    lost: bool = False
    luck: float = 0.0
    moved: bool = False
    fired: set[int] = field(default_factory=set)
    fault: Fault | None = None
    plays: list[tuple[int, ...]] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """What the bot found out about a game on some levels. `problem` is what keeps it from being played at all."""

    levels: tuple[Played, ...] = ()
    problem: str = ""

    @property
    def fault(self) -> Fault | None:
        """The first thing that went wrong."""
        return next((p.fault for p in self.levels if p.fault), None)

    @property
    def won(self) -> float:
        """Share of levels that can be won, by the bot, and were not won at once."""
        return sum(p.way is not None and not p.at_once for p in self.levels) / max(1, len(self.levels))

    @property
    def runs(self) -> bool:
        """Whether nothing went wrong and some level can be won."""
        return not self.problem and self.fault is None and self.won > 0

    @property
    def losable(self) -> bool:
        """Whether some play was lost."""
        return any(p.lost for p in self.levels)

    @property
    def fired(self) -> set[int]:
        """Places of the rules that ever fired."""
        return {place for p in self.levels for place in p.fired}

    @property
    def luck(self) -> float:
        """Share of random plays that were won."""
        return sum(p.luck for p in self.levels) / max(1, len(self.levels))

    @property
    def moved(self) -> bool:
        """Whether the player can do anything, on every level."""
        return all(p.moved for p in self.levels) and bool(self.levels)


def play(game: Game, levels: Sequence[Level], rng: np.random.Generator, effort: Effort) -> Report:
    """Play a game on some levels."""
    try:
        machine = Machine(game)
        return Report(tuple(play_level(machine, level, rng, effort) for level in levels))
    except GameError as reason:
        return Report(problem=str(reason))


def play_level(machine: Machine, level: Level, rng: np.random.Generator, effort: Effort) -> Played:
    """Play one level."""
    start, found = machine.begin(level), Played()
    random = rng.integers(len(ACTIONS), size=(effort.plays, effort.length)).tolist()
    found.at_once = machine.outcome(list(start.cells), list(start.counters)) != 0
    if found.at_once:
        return found
    fired = 0
    try:
        fired |= search(machine, start, effort.limit, found)
        for actions in random:
            fired |= at_random(machine, start, actions, found)
    except Fault as fault:
        found.fault = fault
        if fault.rule >= 0:
            fired |= 1 << fault.rule
    found.luck /= max(1, effort.plays)
    found.fired = {i for i in range(len(machine.game.rules)) if fired >> i & 1}
    return found


def search(machine: Machine, start: State, limit: int, found: Played) -> int:
    """Look for a way to win; the rules that fired."""
    came: dict[State, tuple[State, int] | None] = {start: None}
    queue = [(open_goals(machine, start), 0, 0, start)]
    fired, number, depth = 0, 0, {start: 0}
    actions = range(5 if machine.act else 4)
    for _ in range(limit):
        if not queue:
            break
        *_, state = heapq.heappop(queue)
        for action in (*actions, 4) if machine.late and not machine.act else actions:
            after, outcome, now = machine.step(state, action)
            fired |= now
            found.moved = found.moved or (state is start and (after.cells != start.cells or outcome != 0))
            if outcome == WON:
                found.way = (*path(came, state), action)
                found.plays.append(found.way)
                return fired
            if outcome == LOST:
                if not found.lost:
                    found.plays.append((*path(came, state), action))
                found.lost = True
            elif after not in came:
                came[after], depth[after] = (state, action), depth[state] + 1
                number += 1
                heapq.heappush(queue, (open_goals(machine, after) + depth[after], depth[after], number, after))
    return fired


def path(came: dict[State, tuple[State, int] | None], state: State) -> list[int]:
    """The actions that led to a position."""
    found: list[int] = []
    while (step := came[state]) is not None:
        state, action = step
        found.append(action)
    return found[::-1]


def open_goals(machine: Machine, state: State) -> float:
    """How much of `win` is open yet, in steps: objects that are left and the way to the nearest, those off their places
    or away from their goal, and what counters lack."""
    total, cells, columns = 0.0, state.cells, machine.size[1]
    for name, a, *rest in machine.win:
        if name == "count":
            total += 3 * min(9, abs(state.counters[a] - rest[1]))
            continue
        mine = [i for i, c in enumerate(cells) if c & a]
        if name == "some":
            total += 3 * (not mine)
            continue
        if name == "none":
            me = next((i for i, c in enumerate(cells) if c & machine.player), 0)
            near = [abs(me // columns - j // columns) + abs(me % columns - j % columns) for j in mine]
            total += 4 * len(mine) + min(near, default=0)
            continue
        goals = [i for i, c in enumerate(cells) if c & rest[0]]
        away = [
            min((abs(i // columns - j // columns) + abs(i % columns - j % columns) for j in goals), default=9)
            for i in mine
        ]
        total += sum(2 * d for d in away) if name == "all" else min(away, default=9)
    return total


def at_random(machine: Machine, start: State, actions: Sequence[int], found: Played) -> int:
    """One play by chance; the rules that fired."""
    state, fired, taken = start, 0, list[int]()
    for action in actions:
        taken.append(action)
        state, outcome, now = machine.step(state, action)
        fired |= now
        if outcome:
            found.lost |= outcome == LOST
            found.luck += outcome == WON
            break
    found.plays.append(tuple(taken))
    return fired


def trace(machine: Machine, level: Level, actions: Sequence[int]) -> tuple[object, ...]:
    """The boards of a play and how it ends."""
    state = machine.begin(level)
    boards: list[object] = []
    for action in actions:
        try:
            state, outcome, _ = machine.step(state, action)
        except Fault as fault:
            return (*boards, fault.what)
        boards.append(state.cells)
        if outcome:
            return (*boards, outcome)
    return tuple(boards)


def working(game: Game, levels: Sequence[Level], report: Report) -> list[Mechanic]:
    """The mechanics that work, in a game that runs: left out, some play of the bot takes another course.

    The course is the boards and how the play ends: a rule that counts what nothing reads changes neither.
    """
    if not report.runs:
        return []
    machine, found = Machine(game), []
    plays = [(level, actions) for level, p in zip(levels, report.levels, strict=True) for actions in p.plays]
    traces = [trace(machine, level, actions) for level, actions in plays]
    for mechanic, places in mechanics(game).items():
        rules = [i for kind, i in places if kind == "rules"]
        if rules and not report.fired & set(rules):
            continue
        other = Machine(without(game, places))
        if any(trace(other, level, actions) != seen for (level, actions), seen in zip(plays, traces, strict=True)):
            found.append(mechanic)
    return found


def rearranged(level: Level, rng: np.random.Generator) -> Level:
    """A level with all that is not on its border in other places."""
    inner = [c for row in level[1:-1] for c in row[1:-1]]
    drawn = iter([inner[i] for i in rng.permutation(len(inner)).tolist()])
    rows = [row[0] + "".join(next(drawn) for _ in row[1:-1]) + (row[-1] if len(row) > 1 else "") for row in level[1:-1]]
    return (level[0], *rows, level[-1]) if len(level) > 1 else level


def disturbed(level: Level, rng: np.random.Generator, count: int) -> Level:
    """A level in which so many things that are not on its border have gone elsewhere, each to a cell that is empty."""
    rows = [[*row] for row in level]
    inner = [(r, c) for r in range(1, len(rows) - 1) for c in range(1, len(rows[0]) - 1)]
    for _ in range(count):
        full = [(r, c) for r, c in inner if rows[r][c] != EMPTY]
        free = [(r, c) for r, c in inner if rows[r][c] == EMPTY]
        if full and free:
            (a, b), (x, y) = full[int(rng.integers(len(full)))], free[int(rng.integers(len(free)))]
            rows[a][b], rows[x][y] = EMPTY, rows[a][b]
    return tuple("".join(row) for row in rows)
