"""Mechanic plans: what a version is to add, change, keep and drop, before it is written; and what came of that.

arXiv 2604.19926, section 3.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from evolvent.tasks.worlds.grid_games.differ import Difference, Mechanic, mechanics, parts
from evolvent.tasks.worlds.grid_games.language import DIRECTIONS, Game, GameError, Kind, condition, rule

PLAYER = "player"  # as entries of the archive call it, whatever a game does
PARTS = ("objects", "counters", "rules", "win", "lose")


@dataclass(frozen=True)
class Entry:
    """A mechanic that can be planned, as data of the game language (see `world.library`)."""

    name: str
    about: str = ""
    tags: tuple[str, ...] = ()
    objects: Mapping[str, Any] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Mapping[str, Any], ...] = ()
    win: tuple[Any, ...] = ()
    lose: tuple[Any, ...] = ()

    @cached_property
    def forms(self) -> tuple[Mechanic, ...]:
        """The mechanics it stands for. `GameError` where it is not of the language."""
        kinds = {name: Kind("?") for name in self.objects} | {PLAYER: Kind("@", player=True)}
        one = Game(
            "", "", kinds, {},
            tuple(rule(plain(r), f"{self.name}.rules[{i}]") for i, r in enumerate(self.rules)),
            tuple(condition(plain(c), f"{self.name}.win[{i}]") for i, c in enumerate(self.win)),
            tuple(condition(plain(c), f"{self.name}.lose[{i}]") for i, c in enumerate(self.lose)), (),
        )  # fmt: skip
        return tuple(dict.fromkeys(m for _, m in parts(one, exact=False)))

    @cached_property
    def words(self) -> frozenset[str]:
        """What it is compared by: its tags, its objects and counters, and what its mechanics are made of."""
        made = {w for m in self.forms for w in m.tokens}
        return frozenset(made | {*self.tags, *self.objects, *self.counters})

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name, "about": self.about, "tags": list(self.tags), "objects": dict(self.objects),
            "counters": dict(self.counters), "rules": [dict(r) for r in self.rules],
            "win": list(self.win), "lose": list(self.lose),
        }  # fmt: skip


def entry_of(data: Mapping[str, Any]) -> Entry:
    """An entry of plain data. `GameError` where it is not of the language."""
    for name, kind in (("objects", dict), ("counters", dict), ("rules", list), ("win", list), ("lose", list)):
        if not isinstance(data.get(name, kind()), kind):
            raise GameError(f"{name} of a mechanic must be a {kind.__name__}")
    made = Entry(
        str(data.get("name", "")), str(data.get("about", "")), tuple(map(str, data.get("tags", ()))),
        dict(data.get("objects", {})), dict(data.get("counters", {})), tuple(data.get("rules", ())),
        tuple(data.get("win", ())), tuple(data.get("lose", ())),
    )  # fmt: skip
    _ = made.forms
    return made


def plain(data: Any) -> Any:
    """Data in which numbers that are still to be drawn are 1."""
    if isinstance(data, Mapping):
        return {k: plain(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [plain(v) for v in data]
    if isinstance(data, str) and data.startswith("$"):
        return 1 if data[1:2].isdigit() else "right" if data == "$way" else data
    return data


def drawn(data: Any, rng: np.random.Generator) -> Any:
    """Data with numbers and directions drawn where it leaves them open."""
    if isinstance(data, Mapping):
        return {k: drawn(v, rng) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [drawn(v, rng) for v in data]
    if isinstance(data, str) and data == "$way":
        return DIRECTIONS[int(rng.integers(4))]
    if isinstance(data, str) and data[:1] == "$" and data[1:2].isdigit():
        low, high = data[1:].split(":")
        return int(rng.integers(int(low), int(high) + 1))
    return data


def settled(entry: Entry, rng: np.random.Generator) -> Entry:
    """An entry with all numbers and directions drawn; objects of the game it is for stay open."""
    return entry_of(drawn(entry.as_dict(), rng))


@dataclass(frozen=True)
class Plan:
    """What a version is to do to the mechanics of its parent. `planned` is False where nobody has planned."""

    add: tuple[Entry, ...] = ()
    change: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    planned: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "add": [e.as_dict() for e in self.add], "change": list(self.change), "keep": list(self.keep),
            "drop": list(self.drop), "planned": self.planned,
        }  # fmt: skip


def plan_of(data: Mapping[str, Any]) -> Plan:
    """A plan of plain data. `GameError` where it is of another form."""
    for name in ("add", "change", "keep", "drop"):
        if not isinstance(data.get(name, []), list | tuple):
            raise GameError(f"`{name}` of a plan must be a list")
    entries = []
    for e in data.get("add", ()):
        if not isinstance(e, Mapping):
            raise GameError("every entry of `add` must be an object")
        entries.append(entry_of(e))
    texts = {name: tuple(map(str, data.get(name, ()))) for name in ("change", "keep", "drop")}
    return Plan(tuple(entries), **texts, planned=bool(data.get("planned", True)))


def kept(plan: Plan, before: Game) -> Plan:
    """The plan with all mechanics of the parent kept that it says nothing else of."""
    other = {*plan.change, *plan.drop}
    return replace(plan, keep=tuple(str(m) for m in mechanics(before) if str(m) not in other))


@dataclass(frozen=True)
class Realised:
    """What came of a plan: of each entry of `add` the share of its mechanics that are there, and whether what was to
    change, to be dropped and to be kept was."""

    add: tuple[float, ...] = ()
    change: tuple[bool, ...] = ()
    drop: tuple[bool, ...] = ()
    keep: tuple[bool, ...] = ()

    @property
    def share(self) -> float:
        """Mean over what was to be added, changed and dropped, times the share of what was to be kept that is there;
        0 where nothing was to be done."""
        done = [*self.add, *map(float, self.change), *map(float, self.drop)]
        there = sum(self.keep) / len(self.keep) if self.keep else 1.0
        return there * sum(done) / len(done) if done else 0.0


def compared(plan: Plan, before: Game, after: Game | None, found: Difference, fired: Iterable[int]) -> Realised:
    """Planned mechanics against realised ones.

    A planned one is realised if the version has it, its parent had not, and the bot has seen it fire; a goal fires
    always. In a version that nobody can read nothing is realised.
    """
    if after is None:
        none: Sequence[bool] = (False,)
        return Realised(
            (0.0,) * len(plan.add), (*none,) * len(plan.change), (*none,) * len(plan.drop), (*none,) * len(plan.keep)
        )
    seen = {*fired}
    there = {
        m for m, places in mechanics(after).items() if any(kind != "rules" or place in seen for kind, place in places)
    }
    had, have = {*mechanics(before)}, {str(m) for m in mechanics(after)}
    adds = []
    for e in plan.add:
        wanted = [m for m in e.forms if m not in had]
        adds.append(sum(m in there for m in wanted) / len(wanted) if wanted else 0.0)
    changed = {str(a) for a, _ in found.changed}
    return Realised(
        tuple(adds),
        tuple(text in changed for text in plan.change),
        tuple(text not in have for text in plan.drop),
        tuple(text in have or text in changed for text in plan.keep),
    )
