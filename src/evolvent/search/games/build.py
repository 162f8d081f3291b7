"""Writing games without a model: stages that carry out a plan, refinements, and repairs, by rules on a game's data.

What goes wrong follows from what is drawn: an entry of the archive that is broken, objects that a mechanic is bound to
and does not suit, places on the level that block the way, numbers that are too small.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from evolvent.core.untrusted import read_json
from evolvent.search.games.plan import PLAYER, Entry, Plan, settled
from evolvent.tasks.worlds.grid_games.bot import Report, rearranged
from evolvent.tasks.worlds.grid_games.check import Finding
from evolvent.tasks.worlds.grid_games.differ import parts
from evolvent.tasks.worlds.grid_games.language import EFFECTS, EMPTY, EVENTS, GameError, game_of, rule, text_of

Data = dict[str, Any]
SYMBOLS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!?+*/\\|-_~^=<>%&$,:;'\"`(){}[]"
TRIES = 20  # draws of an effect that fits
SETTINGS = ("at dusk", "under the old mill", "in the sunken library", "beyond the glass desert", "of the clockmaker",
    "in a garden of whispers", "below the frozen harbour", "where lanterns hum")  # fmt: skip
STORIES = ("Nobody remembers who built this place.", "Every step leaves an echo that someone will hear.",
    "A letter without a sender asks you to hurry.", "The map is wrong in one place only.",
    "Silver moths gather wherever something is about to change.", "Your grandmother drew this maze from memory.",
    "Distant bells count the moves that remain.", "Beneath the tiles an ancient engine dreams.")  # fmt: skip
COLOURS = ("white", "grey", "red", "crimson", "orange", "amber", "gold", "yellow", "olive", "green", "teal", "cyan",
    "blue", "indigo", "purple", "magenta", "pink", "brown", "black", "silver")  # fmt: skip


def data_of(text: str) -> Data:
    """The data of a game's text, with every field there. `GameError` where it is none."""
    try:
        data = read_json(text)
    except ValueError as reason:
        raise GameError(f"game: it is no JSON: {reason}") from None
    game_of(data)
    empty = {"title": "", "story": "", "objects": {}, "counters": {}, "rules": [], "win": [], "lose": [], "levels": []}
    return {name: copy.deepcopy(data.get(name, value)) for name, value in empty.items()}


def player_of(data: Data) -> str:
    """The name of the player."""
    return next((n for n, o in data["objects"].items() if "player" in o.get("is", ())), PLAYER)


# --- stages


def skeleton(data: Data, plan: Plan, rng: np.random.Generator) -> None:
    """What the planned mechanics need: their objects, on the levels, and counters; and what changes or goes."""
    change, drop = {*plan.change}, {*plan.drop}
    game = game_of(data)
    doomed: dict[str, set[int]] = {"rules": set(), "win": set(), "lose": set()}
    for (kind, i), mechanic in parts(game, exact=False):
        if str(mechanic) in drop:
            doomed[kind].add(i)
        elif str(mechanic) in change and kind == "rules":
            data["rules"][i] = altered(data["rules"][i], data, rng)
    for kind, places in doomed.items():
        data[kind] = [x for i, x in enumerate(data[kind]) if i not in places]
    for entry in plan.add:
        declare(data, entry, rng)


def declare(data: Data, entry: Entry, rng: np.random.Generator) -> None:
    """An entry's objects, as many on each level as it says, and its counters."""
    for name, value in entry.counters.items():
        data["counters"].setdefault(name, value)
    for name, what in entry.objects.items():
        count, made = what.get("place", 0), {k: v for k, v in what.items() if k != "place"}
        if name not in data["objects"]:
            taken = {o["symbol"] for o in data["objects"].values()}
            made["symbol"] = next(s for s in (made["symbol"], *SYMBOLS) if s not in taken)
            data["objects"][name] = made
        place(data, name, count, rng)


def place(data: Data, name: str, count: int, rng: np.random.Generator) -> None:
    """Put an object into so many empty cells of every level, as far as there are any."""
    symbol = data["objects"][name]["symbol"]
    for i, rows in enumerate(data["levels"]):
        free = [(r, c) for r, row in enumerate(rows) for c, s in enumerate(row) if s == EMPTY]
        cells = {free[j] for j in rng.permutation(len(free))[:count].tolist()}
        data["levels"][i] = [
            "".join(symbol if (r, c) in cells else s for c, s in enumerate(row)) for r, row in enumerate(rows)
        ]


def feature(data: Data, plan: Plan, rng: np.random.Generator) -> None:
    """The rules and goals of the planned mechanics, bound to objects of the game."""
    for entry in plan.add:
        bound = binding(data, entry, rng)
        for r in entry.rules:
            made = {k: bound.get(v, v) if isinstance(v, str) else v for k, v in r.items() if k != "text"}
            made["do"] = [[bound.get(v, v) if isinstance(v, str) else v for v in e] for e in r["do"]]
            made |= {"text": r["text"]} if "text" in r else {}
            if made not in data["rules"]:
                data["rules"].append(made)
        for kind, goals in (("win", entry.win), ("lose", entry.lose)):
            data[kind] += [[*g] for g in goals if [*g] not in data[kind]]


def binding(data: Data, entry: Entry, rng: np.random.Generator) -> dict[str, str]:
    """Objects of the game for those that an entry leaves open, and the player's name."""
    others = [n for n, o in data["objects"].items() if "player" not in o.get("is", ()) and n not in entry.objects]
    solid = [n for n in others if "solid" in data["objects"][n].get("is", ())]
    pools = {"$solid": solid, "$item": [n for n in others if n not in solid], "$any": others}
    drawn = {name: pool[int(rng.integers(len(pool)))] for name, pool in pools.items() if pool}
    return {PLAYER: player_of(data), **drawn}


def visual(data: Data, rng: np.random.Generator) -> None:
    """What is for the eye and the ear: words and colours; up to three of them change."""
    for _ in range(int(rng.integers(4))):
        kind = int(rng.integers(3))
        if kind == 0:
            data["title"] = f"{data['title'].partition(' ')[0]} {SETTINGS[int(rng.integers(len(SETTINGS)))]}".strip()
        elif kind == 1:
            new = STORIES[int(rng.integers(len(STORIES)))]
            data["story"] = data["story"] if new in data["story"] else f"{data['story']} {new}".strip()
        elif data["objects"]:
            names = list(data["objects"])
            name, colour = names[int(rng.integers(len(names)))], COLOURS[int(rng.integers(len(COLOURS)))]
            data["objects"][name] = {**data["objects"][name], "colour": colour}


def altered(one: Any, data: Data, rng: np.random.Generator) -> Any:
    """A rule with another effect, or another number, in the place of one of its own; itself if nothing fits."""
    on, names, counters = one["on"], list(data["objects"]), list(data["counters"])
    for _ in range(TRIES):
        made = copy.deepcopy(one)
        i = int(rng.integers(len(made["do"])))
        numbers = [j for j, v in enumerate(made["do"][i]) if isinstance(v, int)]
        if numbers and rng.random() < 0.5:
            made["do"][i][numbers[0]] *= int(rng.choice([2, -1]))
        else:
            possible = [n for n, (_, events) in EFFECTS.items() if on in events]
            name = possible[int(rng.integers(len(possible)))]
            options = {
                "object": names, "counter": counters, "number": [1, -1, 2], "side": ["who", "what"][: 1 + EVENTS[on]],
                "direction": ["up", "right", "down", "left", "toward", "away", "along", "against"],
            }  # fmt: skip
            kinds = EFFECTS[name][0]
            if any(not options[k] for k in kinds):
                continue
            made["do"][i] = [name, *(options[k][int(rng.integers(len(options[k])))] for k in kinds)]
        if made != one:
            rule(made, "rule")
            return made
    return one


# --- whole versions


def first(text: str, plan: Plan, rng: np.random.Generator) -> str:
    """A new version: skeleton, feature, visual."""
    data = data_of(text)
    plan = Plan(tuple(settled(e, rng) for e in plan.add), plan.change, plan.keep, plan.drop)
    skeleton(data, plan, rng)
    feature(data, plan, rng)
    visual(data, rng)
    return text_of(data)


def refined(text: str, plan: Plan, missing: Sequence[str], won: bool, rng: np.random.Generator) -> str:
    """A refinement: what is planned and not there yet is built, what is there and never happens gets more objects, and
    a level that cannot be won is rearranged."""
    data = data_of(text)
    there = {m for _, m in parts(game_of(data), exact=False)}
    absent = tuple(settled(e, rng) for e in plan.add if not {*e.forms} <= there)
    todo = Plan(absent)
    skeleton(data, todo, rng)
    feature(data, todo, rng)
    for entry in plan.add:
        if entry.name in missing and entry not in plan.add[len(plan.add) - len(absent) :]:
            for name, what in entry.objects.items():
                if name in data["objects"] and what.get("place"):
                    place(data, name, 1, rng)
    if not won:
        data["levels"] = [list(rearranged(tuple(rows), rng)) for rows in data["levels"]]
    visual(data, rng)
    return text_of(data)


# --- repairs


def repaired(text: str, before: str, findings: Sequence[Finding], report: Report, rng: np.random.Generator) -> str:
    """A version with its errors mended, or, if it has none, without what keeps it from running.

    Rules with names that are unknown go; so does the rule that was at fault. Where no level can be won what is on them
    is rearranged, or a goal or rule goes that the version before did not have, or its levels come back.
    """
    data, old = data_of(text), data_of(before)
    errors = [f for f in findings if f.error]
    unknown = {f.name for f in errors if f.code.startswith("unknown")}
    if errors:
        for kind in ("rules", "win", "lose"):
            data[kind] = [x for x in data[kind] if not unknown & names_in(x)]
        if any(f.code in ("no goal", "no level", "player missing", "two players", "no player") for f in errors):
            for part in ("win", "levels", "objects"):
                data[part] = {**old[part], **data[part]} if part == "objects" else old[part]
        if any(f.code == "not a player" for f in errors):
            data["rules"] = [r for r in data["rules"] if r["on"] != "act" or r["who"] == player_of(data)]
        known = {o["symbol"] for o in data["objects"].values()} | {EMPTY}
        data["levels"] = [["".join(c if c in known else EMPTY for c in row) for row in rows] for rows in data["levels"]]
    elif (fault := report.fault) is not None:
        place_of = fault.rule if fault.rule >= 0 else len(data["rules"]) - 1
        del data["rules"][place_of]
    else:
        unsettle(data, old, report, rng)
    return text_of(data)


def unsettle(data: Data, old: Data, report: Report, rng: np.random.Generator) -> None:
    """A change to a version in which no level can be won."""
    added = [(kind, x) for kind in ("rules", "win", "lose") for x in data[kind] if x not in old[kind]]
    at_once = any(p.at_once for p in report.levels)
    ways = [*(["drop"] if added else ["levels"]), *([] if at_once else ["rearrange"])]
    way = ways[int(rng.integers(len(ways)))]
    if way == "drop":
        if at_once:
            added = [a for a in added if a[0] != "rules"] or added
        kind, x = added[int(rng.integers(len(added)))]
        data[kind].remove(x)
    elif way == "rearrange":
        data["levels"] = [list(rearranged(tuple(rows), rng)) for rows in data["levels"]]
    else:
        known = {o["symbol"] for o in data["objects"].values()} | {EMPTY}
        if all(c in known for rows in old["levels"] for row in rows for c in row):
            data["levels"] = old["levels"]


def names_in(x: Any) -> set[str]:
    """All texts in a piece of data."""
    if isinstance(x, str):
        return {x}
    if isinstance(x, dict):
        return {n for k, v in x.items() if k != "text" for n in names_in(v)}
    return {n for v in x for n in names_in(v)} if isinstance(x, list | tuple) else set()
