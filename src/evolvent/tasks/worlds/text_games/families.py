"""Families of text games: what their games have in common; each game is drawn from its name alone."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from evolvent.core.random import stream
from evolvent.tasks.worlds.text_games.game import LAMP, SWORD, Exit, Layout

MOVES = {
    "north": (0, 1, 0), "south": (0, -1, 0), "east": (1, 0, 0), "west": (-1, 0, 0), "up": (0, 0, 1), "down": (0, 0, -1)
}  # fmt: skip
BACK = {"north": "south", "south": "north", "east": "west", "west": "east", "up": "down", "down": "up"}
POINTS = (2, 3, 5, 8)  # that a treasure may be worth


@dataclass(frozen=True)
class Family:
    """How many of what a game of the family has. `straight` is the chance that a new room goes on from the latest one,
    `loops` that of a passage between neighbours; `levels` allows stairs."""

    names: str
    treasures: str
    scenery: str
    rooms: int = 13
    straight: float = 0.3
    loops: float = 0.0
    levels: bool = False
    locks: int = 0
    darks: int = 0
    chasms: int = 0
    guards: int = 0
    poisons: int = 0
    chests: int = 2
    fixed: int = 4
    wealth: int = 7  # treasures


FAMILIES: Mapping[str, Family] = {
    # learned from
    "manor": Family(
        "hall cellar attic library kitchen pantry parlour study gallery nursery stable garden porch landing",
        "ring goblet necklace candlestick coin brooch mirror crown", "portrait fireplace piano carpet statue clock",
        locks=2, fixed=5, chests=3,
    ),
    "caves": Family(
        "grotto tunnel ledge shaft cavern crevice pool chamber burrow passage hollow den vein dome",
        "ruby opal nugget emerald pearl sapphire garnet topaz", "stalagmite boulder puddle column waterfall moss",
        loops=0.35, darks=1, chasms=3, fixed=3, chests=1,
    ),
    "village": Family(
        "square mill forge tavern chapel barn well bakery market bridge gate orchard smithy inn",
        "purse medal flute lantern-glass vase bracelet bell spoon", "cart trough signpost fence haystack anvil",
        straight=0.1, guards=1, poisons=2, fixed=4, chests=2,
    ),
    # met in the end only
    "temple": Family(
        "nave crypt altar cloister sanctum vestry shrine ossuary courtyard choir apse portico vault cell",
        "chalice relic idol censer scroll sceptre icon mask", "pillar mosaic font pew tomb lectern",
        straight=0.8, locks=2, poisons=1, guards=1, fixed=4, chests=3,
    ),
    "forest": Family(
        "glade thicket brook fen hill ravine grove meadow hut spring clearing marsh hedge oak",
        "feather amber acorn-gold antler honey charm fossil tooth", "stump bush log nest rock fern",
        loops=0.5, chasms=3, poisons=3, fixed=4, chests=1, straight=0.2,
    ),
    "tower": Family(
        "armoury dungeon solar turret battlement stair chapel guardroom kitchen loft library lab roof moat",
        "orb tiara dagger-hilt wand tome ring seal gem", "suit-of-armour tapestry throne table banner bell",
        straight=0.5, levels=True, locks=1, darks=1, chasms=2, guards=1, fixed=3, chests=2,
    ),
}  # fmt: skip
LEARNED, UNSEEN = ("manor", "caves", "village"), ("temple", "forest", "tower")
COLOURS = ("red", "blue", "green")
WHO = ("troll", "wolf")
BOXES = ("chest", "box", "urn", "crate")
POISONS = ("mushroom", "nettle", "viper")


@functools.lru_cache(maxsize=4096)
def layout(name: str) -> Layout:
    """The game of a name such as `manor-3`. Every treasure can be had, if not within every limit of steps."""
    kind, _, number = name.partition("-")
    family, rng = FAMILIES[kind], stream(0, "text-games", kind, int(number))
    rooms, order = _rooms(family, rng)
    start = order[0]
    spots = [room for room in order if room != start]
    things: dict[str, list[str]] = {room: [] for room in order}
    closed: dict[str, dict[str, list[str]]] = {}
    guards: dict[str, str] = {}
    for who in WHO[: family.guards]:
        inner = [r for r in spots if len(rooms[r]) > 1 and not guards]
        if inner:
            guards[_pick(inner, rng)] = who
    _bar(rooms, start, family, things, guards, rng)
    for box in BOXES[: family.chests]:
        closed.setdefault(_pick(spots, rng), {})[box] = []
    worth: dict[str, int] = {}
    boxes = [(room, box) for room, found in closed.items() for box in found]
    for i, treasure in enumerate(rng.permutation(family.treasures.split())[: family.wealth].tolist()):
        worth[treasure] = int(rng.choice(POINTS))
        if i < len(boxes):
            closed[boxes[i][0]][boxes[i][1]].append(treasure)
        else:
            things[_pick(spots, rng)].append(treasure)
    worth |= dict.fromkeys(guards.values(), 2)
    for thing in rng.permutation(family.scenery.split())[: family.fixed].tolist():
        things[_pick(order, rng)].append(thing)
    for thing in POISONS[: family.poisons]:
        things[_pick(spots, rng)].append(thing)
    for _ in range(family.chasms):
        room = _pick(order, rng)
        ways = [way for way in ("north", "south", "east", "west") if way not in rooms[room]]
        if ways:
            rooms[room][_pick(ways, rng)] = Exit("nowhere", deadly=True)
    return Layout(
        start,
        {room: {way: found[way] for way in rng.permutation(sorted(found)).tolist()} for room, found in rooms.items()},
        {room: tuple(rng.permutation(found).tolist()) for room, found in things.items()},
        {room: {box: tuple(inside) for box, inside in found.items()} for room, found in closed.items()},
        worth,
        frozenset(POISONS[: family.poisons]),
        frozenset(family.scenery.split()),
        guards,
    )


def _pick(names: Collection[str], rng: np.random.Generator) -> str:
    return list(names)[int(rng.integers(len(names)))]


def _rooms(family: Family, rng: np.random.Generator) -> tuple[dict[str, dict[str, Exit]], list[str]]:
    """Rooms on a lattice, each beside one that was there before, and their order."""
    names = rng.permutation(family.names.split())[: family.rooms].tolist()
    ways = [way for way in MOVES if family.levels or way not in ("up", "down")]
    place, at = {names[0]: (0, 0, 0)}, {(0, 0, 0): names[0]}
    rooms: dict[str, dict[str, Exit]] = {names[0]: {}}
    for name in names[1:]:
        free: list[str] = []
        while not free:
            beside = list(rooms)[-1] if rng.random() < family.straight else _pick(rooms, rng)
            free = [way for way in ways if _beyond(place[beside], way) not in at]
        way = _pick(free, rng)
        place[name] = _beyond(place[beside], way)
        at[place[name]], rooms[name] = name, {BACK[way]: Exit(beside)}
        rooms[beside][way] = Exit(name)
    for room in names:
        for way in ways:
            other = at.get(_beyond(place[room], way))
            if other and way not in rooms[room] and rng.random() < family.loops / 2:
                rooms[room][way] = Exit(other)  # one way, unless its other end is drawn as well
    return rooms, names


def _beyond(place: tuple[int, int, int], way: str) -> tuple[int, int, int]:
    x, y, z = (a + b for a, b in zip(place, MOVES[way], strict=True))
    return x, y, z


def _bar(
    rooms: dict[str, dict[str, Exit]],
    start: str,
    family: Family,
    things: dict[str, list[str]],
    guards: Mapping[str, str],
    rng: np.random.Generator,
) -> None:
    """Lock passages and make them dark. What opens them lies where one can be without it."""
    keys = [f"{colour} key" for colour in COLOURS[: family.locks]] + [LAMP] * family.darks
    barred: list[tuple[str, str]] = []
    for key in keys:
        ways = [(r, w) for r, found in rooms.items() for w in found if (r, w) not in barred and found[w].to != start]
        inner = [(r, w) for r, w in ways if 2 <= len(rooms) - len(_reached(rooms, start, {*barred, (r, w)})) <= 7]
        if not inner:
            continue
        room, way = inner[int(rng.integers(len(inner)))]
        barred.append((room, way))
        rooms[room][way] = Exit(rooms[room][way].to, "" if key == LAMP else key, key == LAMP)
        # all passages barred so far are closed when it is looked for: no two keys wait for each other
        near = _reached(rooms, start, set(barred), guards)
        things[_pick(sorted(near), rng)].append(key)
    if guards:
        things[_pick(sorted(_reached(rooms, start, set(barred), guards) - set(guards)), rng)].append(SWORD)


def _reached(
    rooms: Mapping[str, Mapping[str, Exit]],
    start: str,
    barred: Collection[tuple[str, str]],
    guards: Collection[str] = (),
) -> set[str]:
    """The rooms that one comes to without passages that are barred, and without going past a guard."""
    found, left = {start}, [start]
    while left:
        room = left.pop()
        for way, exit in rooms[room].items():
            if (room, way) not in barred and not exit.deadly and exit.to not in found and room not in guards:
                found.add(exit.to)
                left.append(exit.to)
    return found
