"""Mechanics of grid games, and which of them are new, changed, kept or dropped between two versions.

A mechanic is a local rule structure (arXiv 2604.19926, section 2.3): here a rule, or a condition of `win` or `lose`,
less all that is cosmetic. Names become `player`, or letters in the order in which a rule has them; texts, colours,
symbols and levels are left out, so that a game with other names and another layout has the same mechanics, and a second
object that is pushed is no second mechanic. Numbers are left out of a mechanic's form, but for their signs; they are in
its exact form, together with what its counters begin with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evolvent.tasks.worlds.grid_games.language import CONDITIONS, EFFECTS, Game

GOALS = ("win", "lose")
LETTERS = "ABCDEFGHIJKLMNOP"
SIMILAR = 0.5  # of two mechanics with the same trigger, from where on one is a change of the other


@dataclass(frozen=True, order=True)
class Mechanic:
    """A mechanic: what sets it off (event and who meets whom, or `win`, `lose`), and its conditions and effects."""

    trigger: str
    body: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.trigger}: {', '.join(self.body)}"

    @property
    def tokens(self) -> frozenset[str]:
        """What it is made of, to compare mechanics by: event, trigger and each part of the body, with and without
        names."""
        words = {self.trigger, self.trigger.split()[0]}
        return frozenset(words | {*self.body} | {part.split()[0] for part in self.body})


@dataclass(frozen=True)
class Difference:
    """The mechanics of a version against those of the one before it; `changed` has pairs (before, after)."""

    new: tuple[Mechanic, ...] = ()
    changed: tuple[tuple[Mechanic, Mechanic], ...] = ()
    kept: tuple[Mechanic, ...] = ()
    dropped: tuple[Mechanic, ...] = ()

    @property
    def cosmetic(self) -> bool:
        """Whether nothing differs but what is cosmetic."""
        return not (self.new or self.changed or self.dropped)


class Naming:
    """Letters for the names of one rule, in the order in which they come up."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.seen: dict[tuple[str, str], str] = {}

    def __call__(self, kind: str, name: str) -> str:
        """`player`, or a letter: capital for objects, small for counters."""
        if kind == "object" and name in self.game.objects and self.game.objects[name].player:
            return "player"
        if (kind, name) not in self.seen:
            count = sum(k == kind for k, _ in self.seen)
            letter = LETTERS[count % len(LETTERS)]
            self.seen[kind, name] = letter if kind == "object" else letter.lower()
        return self.seen[kind, name]

    def part(self, data: tuple[Any, ...], kinds: tuple[str, ...], exact: bool) -> str:
        """A condition or an effect as words."""
        words = [str(data[0])]
        for value, kind in zip(data[1:], kinds, strict=True):
            if kind in ("object", "counter"):
                words.append(self(kind, value))
            elif kind == "number" and not exact:
                words.append("+" if value > 0 else "-" if value < 0 else "0")
            else:
                words.append(str(value))
            if kind == "counter" and exact:
                words.append(f"({self.game.counters.get(value, 0)})")
        return " ".join(words)


def parts(game: Game, exact: bool) -> Iterator[tuple[tuple[str, int], Mechanic]]:
    """Every rule and goal of a game as a mechanic, with its place: (`rules`, `win` or `lose`, number)."""
    for i, r in enumerate(game.rules):
        name = Naming(game)
        trigger = " ".join([r.on, name("object", r.who), *([name("object", r.what)] if r.what else [])])
        effects = [name.part(e, EFFECTS[e[0]][0], exact) for e in r.effects]
        conditions = sorted("if " + name.part(c, CONDITIONS[c[0]], exact) for c in r.conditions)
        yield ("rules", i), Mechanic(trigger, (*conditions, *effects))
    for goal in GOALS:
        for i, c in enumerate(getattr(game, goal)):
            yield (goal, i), Mechanic(goal, (Naming(game).part(c, CONDITIONS[c[0]], exact),))


def mechanics(game: Game) -> dict[Mechanic, list[tuple[str, int]]]:
    """The mechanics of a game, in order, and where each of them is."""
    found: dict[Mechanic, list[tuple[str, int]]] = {}
    for place, mechanic in parts(game, exact=False):
        found.setdefault(mechanic, []).append(place)
    return found


def exact_forms(game: Game) -> dict[Mechanic, set[Mechanic]]:
    """Of each mechanic the forms with numbers that the game has."""
    found: dict[Mechanic, set[Mechanic]] = {}
    for (_, plain), (_, exact) in zip(parts(game, exact=False), parts(game, exact=True), strict=True):
        found.setdefault(plain, set()).add(exact)
    return found


def similarity(a: Mechanic, b: Mechanic) -> float:
    """Jaccard index of what two mechanics are made of."""
    return len(a.tokens & b.tokens) / len(a.tokens | b.tokens)


def difference(before: Game, after: Game) -> Difference:
    """What differs in the mechanics of two versions.

    One that only one of them has is a change of one that only the other has where the trigger is the same and the
    similarity at least `SIMILAR`; the most similar pairs first. So is one that differs in its numbers.
    """
    old, new = exact_forms(before), exact_forms(after)
    changed = [(m, m) for m in new if m in old and old[m] != new[m]]
    kept = tuple(m for m in new if m in old and old[m] == new[m])
    gone, come = [m for m in old if m not in new], [m for m in new if m not in old]
    pairs = sorted(
        ((-similarity(a, b), i, j) for i, a in enumerate(gone) for j, b in enumerate(come) if a.trigger == b.trigger)
    )
    for minus, i, j in pairs:
        free = all(gone[i] is not a and come[j] is not b for a, b in changed)
        if -minus >= SIMILAR and free:
            changed.append((gone[i], come[j]))
    before_of, after_of = {a for a, _ in changed}, {b for _, b in changed}
    return Difference(
        tuple(m for m in come if m not in after_of),
        tuple(changed),
        kept,
        tuple(m for m in gone if m not in before_of),
    )


def without(game: Game, places: list[tuple[str, int]]) -> Game:
    """A game less some of its rules and goals."""
    gone: Mapping[str, set[int]] = {kind: {i for k, i in places if k == kind} for kind in ("rules", *GOALS)}
    return replace(
        game,
        rules=tuple(r for i, r in enumerate(game.rules) if i not in gone["rules"]),
        win=tuple(c for i, c in enumerate(game.win) if i not in gone["win"]),
        lose=tuple(c for i, c in enumerate(game.lose) if i not in gone["lose"]),
    )
