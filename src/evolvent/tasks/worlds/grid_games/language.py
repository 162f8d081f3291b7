"""The language of grid games: a game is data, in JSON, that is read strictly and never executed.

    objects   name -> {"symbol": one character, "colour": text, "is": any of "player", "solid"}
    counters  name -> the number that it begins with
    rules     {"on": event, "who": object, "what": object, "if": [conditions], "do": [effects]}, tried in their order
    win, lose lists of conditions: all of `win` must hold, any of `lose`; without a player a game is lost
    levels    lists of rows of equal length; a dot is empty floor
    title, story, and a rule's `text` are for whoever plays

| event | when | effects beside those of all |
| --- | --- | --- |
| `bump` | who is about to enter a cell with what | `block`, `push` (what moves on, or who stays), `swap` |
| `enter` | who has entered a cell with what | `slide` (who moves on in its direction) |
| `act` | the player acts on what, in the cell it faces | |
| `turn` | the turn ends; for each who | `step` (a direction), `spread` (an object) |
| `near` | the turn ends; for each who beside a what | as `turn` |

Of all events: `remove` and `become` and `send` (of `who` or `what`: gone, another object, to the next cell with an
object), `drop` (an object, where who was), `count` and `set` (a counter, a number), `win`, `lose`. Directions are `up`,
`right`, `down`, `left`, `toward` and `away` (from the player), `along` and `against` (the way the player is to go).

Conditions: ["count", counter, op, number], ["none", a], ["some", a], ["all", a, b] and ["on", a, b]: every a (and there
is one), or some a, is in a cell with a b. In the spirit of PuzzleScript and VGDL; no code and no data of either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from evolvent.core.untrusted import read_json

SIDES = ("who", "what")
DIRECTIONS = ("up", "right", "down", "left", "toward", "away", "along", "against")
OPERATIONS = ("<", "<=", "==", ">=", ">")
EVENTS = {"bump": True, "enter": True, "act": True, "near": True, "turn": False}  # whether there is a `what`
EVERY = ("bump", "enter", "act", "turn", "near")
LATE = ("turn", "near")
EFFECTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # what follows the name; of which events
    "block": ((), ("bump",)),
    "push": ((), ("bump",)),
    "swap": ((), ("bump",)),
    "slide": ((), ("enter",)),
    "step": (("direction",), LATE),
    "spread": (("object",), LATE),
    "remove": (("side",), EVERY),
    "become": (("side", "object"), EVERY),
    "send": (("side", "object"), EVERY),
    "drop": (("object",), EVERY),
    "count": (("counter", "number"), EVERY),
    "set": (("counter", "number"), EVERY),
    "win": ((), EVERY),
    "lose": ((), EVERY),
}
CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "count": ("counter", "operation", "number"),
    "none": ("object",),
    "some": ("object",),
    "all": ("object", "object"),
    "on": ("object", "object"),
}
PROPERTIES = ("player", "solid")
EMPTY = "."
MOST = {"objects": 24, "counters": 12, "rules": 48, "win": 6, "lose": 6, "levels": 8}
LONGEST, WIDEST, LARGEST, TEXT = 6, 12, 999, 20_000  # effects of a rule, a side of a level, a number, a game's text


class GameError(ValueError):
    """A game that cannot be read or played: what is wrong, and where."""


@dataclass(frozen=True)
class Kind:
    """What there is to an object beside its name."""

    symbol: str
    colour: str = ""
    player: bool = False
    solid: bool = False


@dataclass(frozen=True)
class Rule:
    """When `who` does `on` to `what`, and all conditions hold, the effects follow. `what` is empty at `turn`."""

    on: str
    who: str
    what: str
    conditions: tuple[tuple[Any, ...], ...]
    effects: tuple[tuple[Any, ...], ...]
    text: str = ""


@dataclass(frozen=True)
class Game:
    """A game that has been read. Names in it may still be unknown; `check` says so."""

    title: str
    story: str
    objects: Mapping[str, Kind]
    counters: Mapping[str, int]
    rules: tuple[Rule, ...]
    win: tuple[tuple[Any, ...], ...]
    lose: tuple[tuple[Any, ...], ...]
    levels: tuple[tuple[str, ...], ...]


def read(text: str) -> Game:
    """The game of a text. `GameError` says what is wrong, and where."""
    if len(text) > TEXT:
        fail("game", f"a game has at most {TEXT} characters, this one {len(text)}")
    try:
        data = read_json(text, object_pairs_hook=once, parse_constant=no_number)
    except GameError:
        raise
    except ValueError as reason:
        fail("game", f"it is no JSON: {reason}")
    return game_of(data)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        fail("game", "a name is there twice in one object: " + ", ".join(k for k, _ in pairs))
    return found


def fail(where: str, what: str) -> NoReturn:
    """Raise a `GameError`."""
    raise GameError(f"{where}: {what}")


def no_number(name: str) -> NoReturn:
    """NaN and the infinities are JSON for Python only."""
    fail("game", f"{name} is no number")


def game_of(data: Any) -> Game:
    """The game of JSON data. `GameError` for anything that is not of the language's form."""
    parts = fields(
        data,
        "game",
        {"objects": dict, "rules": list, "win": list, "levels": list},
        {"title": str, "story": str, "counters": dict, "lose": list},
    )
    for name, most in MOST.items():
        if len(parts.get(name, ())) > most:
            fail(name, f"there are {len(parts[name])}, and at most {most} are allowed")
    objects = {named(n, "objects"): kind(v, f"objects.{n}") for n, v in parts["objects"].items()}
    symbols = [k.symbol for k in objects.values()]
    if len({*symbols}) < len(symbols):
        fail("objects", "two objects have the same symbol")
    counters = {named(n, "counters"): number(v, f"counters.{n}") for n, v in parts.get("counters", {}).items()}
    return Game(
        parts.get("title", ""),
        parts.get("story", ""),
        objects,
        counters,
        tuple(rule(v, f"rules[{i}]") for i, v in enumerate(parts["rules"])),
        tuple(condition(v, f"win[{i}]") for i, v in enumerate(parts["win"])),
        tuple(condition(v, f"lose[{i}]") for i, v in enumerate(parts.get("lose", []))),
        tuple(level(v, f"levels[{i}]") for i, v in enumerate(parts["levels"])),
    )


def fields(data: Any, where: str, needed: Mapping[str, type], others: Mapping[str, type]) -> dict[str, Any]:
    """An object with just these fields, each of its type."""
    if not isinstance(data, dict):
        fail(where, "this must be an object")
    for name in needed:
        if name not in data:
            fail(where, f"`{name}` is missing")
    for name, value in data.items():
        kinds = {**needed, **others}
        if name not in kinds:
            fail(where, f"there is no field `{name}`, only {', '.join(kinds)}")
        if not isinstance(value, kinds[name]):
            fail(f"{where}.{name}", f"this must be a {kinds[name].__name__}")
    return data


def named(name: str, where: str) -> str:
    """A name: letters, digits, hyphens, not longer than a word."""
    if not name.replace("-", "").replace("_", "").isalnum() or len(name) > 24:
        fail(where, f"`{name[:30]}` is no name; take up to 24 letters, digits and hyphens")
    return name


def kind(data: Any, where: str) -> Kind:
    """What an object is."""
    parts = fields(data, where, {"symbol": str}, {"colour": str, "is": list})
    symbol, what = parts["symbol"], parts.get("is", [])
    if len(symbol) != 1 or symbol.isspace() or symbol == EMPTY:
        fail(f"{where}.symbol", f"this must be one character, and no blank or `{EMPTY}`")
    for p in what:
        if p not in PROPERTIES:
            fail(f"{where}.is", f"there is no property {p!r}, only {', '.join(PROPERTIES)}")
    return Kind(symbol, parts.get("colour", ""), "player" in what, "solid" in what)


def number(value: Any, where: str) -> int:
    """A whole number that is not too large."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST:
        fail(where, f"this must be a whole number from -{LARGEST} to {LARGEST}")
    return value


def rule(data: Any, where: str) -> Rule:
    """A rule."""
    parts = fields(data, where, {"on": str, "who": str, "do": list}, {"what": str, "if": list, "text": str})
    on, what = parts["on"], parts.get("what", "")
    if on not in EVENTS:
        fail(f"{where}.on", f"there is no event `{on}`, only {', '.join(EVENTS)}")
    if EVENTS[on] != bool(what):
        fail(f"{where}.what", f"a rule on `{on}` {'needs' if EVENTS[on] else 'has'} {'one' if EVENTS[on] else 'none'}")
    if not 1 <= len(parts["do"]) <= LONGEST:
        fail(f"{where}.do", f"a rule has 1 to {LONGEST} effects")
    forms = {name: follows for name, (follows, _) in EFFECTS.items()}
    made = tuple(form(v, f"{where}.do[{i}]", forms) for i, v in enumerate(parts["do"]))
    for i, (name, *rest) in enumerate(made):
        if on not in EFFECTS[name][1]:
            fail(f"{where}.do[{i}]", f"`{name}` is for rules on {', '.join(EFFECTS[name][1])}")
        if not what and "what" in rest[:1] and EFFECTS[name][0][:1] == ("side",):
            fail(f"{where}.do[{i}]", "a rule on `turn` has no `what`")
    conditions = tuple(condition(v, f"{where}.if[{i}]") for i, v in enumerate(parts.get("if", [])))
    return Rule(on, parts["who"], what, conditions, made, parts.get("text", ""))


def condition(data: Any, where: str) -> tuple[Any, ...]:
    """A condition."""
    return form(data, where, CONDITIONS)


def form(data: Any, where: str, forms: Mapping[str, tuple[str, ...]]) -> tuple[Any, ...]:
    """A list whose first entry names one of the forms, and the others are of the kinds that this one has."""
    if not isinstance(data, list) or not data or not isinstance(data[0], str) or data[0] not in forms:
        fail(where, f"this must be a list that begins with one of {', '.join(forms)}")
    name, *rest = data
    if len(rest) != len(forms[name]):
        fail(where, f"`{name}` is followed by {len(forms[name])} entries: {', '.join(forms[name]) or 'none'}")
    allowed = {"side": SIDES, "direction": DIRECTIONS, "operation": OPERATIONS}
    for value, what in zip(rest, forms[name], strict=True):
        if what == "number":
            number(value, where)
        elif not isinstance(value, str):
            fail(where, f"the {what} must be a text")
        elif what in allowed and value not in allowed[what]:
            fail(where, f"there is no {what} `{value}`, only {', '.join(allowed[what])}")
    return (name, *rest)


def level(data: Any, where: str) -> tuple[str, ...]:
    """The rows of a level."""
    if not isinstance(data, list) or not data or not all(isinstance(row, str) and row for row in data):
        fail(where, "this must be a list of rows")
    if len({len(row) for row in data}) > 1:
        fail(where, "its rows differ in length")
    if max(len(data), len(data[0])) > WIDEST:
        fail(where, f"it is larger than {WIDEST} by {WIDEST}")
    return tuple(data)


def text_of(data: Mapping[str, Any]) -> str:
    """A game's data as text, a line for each object, rule and row."""
    parts = []
    for name, value in data.items():
        if isinstance(value, dict) and value:
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            parts.append(f" {json.dumps(name)}: {{\n{inner}\n }}")
        elif isinstance(value, list) and value and name != "levels":
            inner = ",\n".join(f"  {json.dumps(v)}" for v in value)
            parts.append(f" {json.dumps(name)}: [\n{inner}\n ]")
        elif name == "levels":
            rows = [",\n".join(f"   {json.dumps(row)}" for row in one) for one in value]
            inner = ",\n".join(f"  [\n{one}\n  ]" for one in rows)
            parts.append(f" {json.dumps(name)}: [\n{inner}\n ]")
        else:
            parts.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
