"""The scripted adviser: it reads the log of an episode and writes guidance, as the strategy section of its prompt says.

A strategy is a list of directives; `DIRECTIVES` is the library of those that it understands. Some are useful, some
useless, some do harm, and since a player reads `LINES` lines only, their order counts. Other sentences change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evolvent.tasks.worlds.text_games import notes as n

DIRECTIVES: Mapping[str, str] = {
    "ways": "List the passages that were walked, room by room.",
    "points": "List what brought points, and where.",
    "deadly": "List what the actor died of, and where.",
    "needs": "List locked doors and dangers with the tool or key that was missing, and where tools and keys lie.",
    "vain": "List commands that failed, and where.",
    "untried": "List exits that were seen and never tried.",
    "keep": "Keep what earlier guidance said, and correct it by the new episode.",
    "points first": "Tell the actor to collect known points first, and to explore with the steps that are left.",
    "untried first": "Tell the actor to explore first, and to collect afterwards.",
    "route": "Give the commands of the episode up to the last points, as a route to repeat.",
    "brief": "Give five lines at most.",
    "retell": "Retell the episode step by step.",
    "praise": "Encourage the actor, and remind it to think step by step.",
    "inventory": "Tell the actor to check its inventory in every room.",
    "look": "Tell the actor to look around in every room before it does anything.",
    "caution": "Warn of every exit that was never tried; it may be dangerous.",
    "empty": "Tell the actor to stay away from rooms in which nothing was found.",
}
REFLEXION = ("deadly", "vain", "points", "route")  # what went wrong, what was wasted, what went well, and a plan
BRIEF = 5  # lines
LOG = re.compile(
    r"\[OBS\] (.*?)\n\[ACTION\] (.*?)\n\[REPLY\] (.*?)\n\[REWARD\] (-?\d+)\n\[CUM_REWARD\] (-?\d+)\n", re.DOTALL
)
SEEN = re.compile(r"<< (.+?) >>\nExits: (.*)\.\nHere: (.*)\.")
LACKING = re.compile(r"without the ([\w ]+)")
FACTS = ("ways", "deadly", "needs", "vain", "points", "lies", "untried")


@dataclass(frozen=True)
class Moment:
    """One step of a log."""

    room: str
    exits: tuple[str, ...]
    here: tuple[str, ...]
    command: str
    reply: str
    reward: int


@dataclass
class Found:
    """What one episode shows: facts as `notes.Notes` has them, and what was left without anything in it."""

    notes: n.Notes = field(default_factory=n.Notes)
    seen: dict[n.Place, None] = field(default_factory=dict)  # exits
    rich: set[str] = field(default_factory=set)  # rooms with something in them


def moments(log: str) -> list[Moment]:
    """The steps of an episode."""
    found = []
    for seen, command, reply, reward, _ in LOG.findall(log):
        match = SEEN.match(seen)
        if match:
            exits, here = (tuple(text.split("; ")) if text != "nothing" else () for text in match.groups()[1:])
            found.append(Moment(match[1], exits, here, command, reply, int(reward)))
    return found


def examined(log: str) -> Found:
    """What a log shows."""
    found, steps = Found(), moments(log)
    notes = found.notes
    for i, m in enumerate(steps):
        place = (m.room, m.command)
        verb, _, rest = m.command.partition(" ")
        found.rich |= {m.room} if m.here else set()
        for item in m.exits:
            way, _, mark = item.partition(" (")
            found.seen[m.room, way] = None
            if mark.startswith("locked"):
                notes.needs[m.room, f"go {way}"] = mark.removeprefix("locked, ").rstrip(")")
        lacking = LACKING.search(m.reply)
        if m.reply.endswith("You are dead."):
            notes.deadly[place] = None
            if lacking:
                notes.needs[place] = lacking[1]
        elif m.reply.startswith("You can't") and not lacking:
            notes.vain[place] = None
        elif verb == "go" and i + 1 < len(steps):
            notes.ways[m.room, rest] = steps[i + 1].room
        elif verb == "take" and not m.reward:
            notes.lies[rest] = m.room
        if m.reward:
            notes.points[place] = m.reward
    last = max((i for i, m in enumerate(steps) if m.reward), default=-1)
    notes.route = [m.command for m in steps[: last + 1]]
    return found


def advise(strategy: Sequence[str], log: str, before: str) -> str:
    """The guidance for the next episode, from the log of the latest one and the guidance that it had."""
    names = [name for line in strategy for name, text in DIRECTIVES.items() if text == line.strip()]
    found = examined(log)
    notes = found.notes
    if "keep" in names:
        old = n.read(before)
        for kind in FACTS:
            setattr(notes, kind, {**getattr(old, kind), **getattr(notes, kind)})
        gone = {**notes.deadly, **dict.fromkeys((room, f"go {way}") for room, way in notes.ways)}
        notes.untried |= found.seen
    else:
        gone = {**notes.deadly, **dict.fromkeys((room, f"go {way}") for room, way in notes.ways)}
        notes.untried = dict(found.seen)
    untried = [p for p in notes.untried if (p[0], f"go {p[1]}") not in gone and (p[0], f"go {p[1]}") not in notes.needs]
    notes.untried = dict.fromkeys(untried)
    rooms = {room for room, _ in found.seen}
    notes.empty = dict.fromkeys(sorted(rooms - found.rich))
    lines: list[str] = []
    for name in names:
        lines += written(name, notes, log)
    return "\n".join(dict.fromkeys(lines[:BRIEF] if "brief" in names else lines))


def written(name: str, notes: n.Notes, log: str) -> list[str]:
    """The lines that a directive leads to."""
    forms = {
        "ways": n.ways_lines, "points": n.points_lines, "deadly": n.deadly_lines, "needs": n.needs_lines,
        "vain": n.vain_lines, "untried": n.untried_lines, "route": n.route_lines, "empty": n.empty_lines,
    }  # fmt: skip
    if name in forms:
        return forms[name](notes)
    if name.endswith(" first"):
        return [n.ORDERS[name.removesuffix(" first")]]
    if name in ("inventory", "look"):
        return [n.HABIT.format(name)]
    if name == "caution":
        return [f"Never go {way} in {room}: it kills." for room, way in notes.untried]
    if name == "retell":
        return [f"In {m.room} you gave the command {m.command}; {m.reply}" for m in moments(log)]
    if name == "praise":
        return ["You are doing well.", "Think step by step.", "Take a deep breath."]
    return []  # keep and brief are no lines
