"""What can be said of a grid game without playing it: errors, and warnings of what will never matter.

Each error costs 0.20 of the score and each warning 0.05, as in the static tier of CreativeGame's validator (arXiv
2604.19926, section 6.2); its nine checks are of HTML and JavaScript, these are of the language of grid games.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evolvent.tasks.worlds.grid_games.language import CONDITIONS, EFFECTS, EMPTY, Game

ERROR, WARNING = 0.20, 0.05


@dataclass(frozen=True)
class Finding:
    """What is wrong: `code` for whoever mends it, where, and the name it is about."""

    code: str
    where: str
    name: str = ""
    error: bool = True

    @property
    def text(self) -> str:
        """For whoever reads it."""
        return f"{self.where}: {SAID[self.code].format(name=self.name)}"


SAID = {
    "no player": "no object is the player",
    "player missing": "there is no player in this level",
    "two players": "there are several players in this level",
    "unknown object": "there is no object `{name}`",
    "unknown counter": "there is no counter `{name}`",
    "unknown symbol": "no object has the symbol `{name}`",
    "no goal": "nothing says how the game is won",
    "no level": "there is no level",
    "never there": "`{name}` is in no level, and nothing makes it, so this never happens",
    "never read": "nothing depends on the counter `{name}`",
    "never changed": "the counter `{name}` never changes",
    "not a player": "only the player acts",
}


def findings(game: Game) -> list[Finding]:
    """All that is wrong with a game, errors first."""
    found = [*errors(game), *warnings(game)]
    return [*(f for f in found if f.error), *(f for f in found if not f.error)]


def score(found: list[Finding]) -> float:
    """1, less what the findings cost, and at least 0."""
    return max(0.0, 1.0 - sum(ERROR if f.error else WARNING for f in found))


def uses(game: Game) -> Iterator[tuple[str, str, str, str]]:
    """Every name that a game's rules use: (where, `object` or `counter`, name, how: reads, makes or changes)."""
    for i, r in enumerate(game.rules):
        yield f"rules[{i}]", "object", r.who, "reads"
        if r.what:
            yield f"rules[{i}]", "object", r.what, "reads"
        for name, *rest in r.effects:
            for kind, value in zip(EFFECTS[name][0], rest, strict=True):
                if kind in ("object", "counter"):
                    how = "changes" if kind == "counter" else "reads" if name == "send" else "makes"
                    yield f"rules[{i}]", kind, value, how
    places = [(f"rules[{i}].if", r.conditions) for i, r in enumerate(game.rules)]
    for where, conditions in [*places, ("win", game.win), ("lose", game.lose)]:
        for name, *rest in conditions:
            for kind, value in zip(CONDITIONS[name], rest, strict=True):
                if kind in ("object", "counter"):
                    yield where, kind, value, "reads"


def errors(game: Game) -> Iterator[Finding]:
    """What keeps a game from being played."""
    players = {k.symbol for k in game.objects.values() if k.player}
    if not players:
        yield Finding("no player", "objects")
    for place, (where, kind, name, _) in enumerate(every := [*uses(game)]):
        known = game.objects if kind == "object" else game.counters
        if name not in known and (where, kind, name) not in {e[:3] for e in every[:place]}:
            yield Finding(f"unknown {kind}", where, name)
    for i, r in enumerate(game.rules):
        if r.on == "act" and r.who in game.objects and not game.objects[r.who].player:
            yield Finding("not a player", f"rules[{i}]")
    if not game.win and not any(e[0] == "win" for r in game.rules for e in r.effects):
        yield Finding("no goal", "win")
    if not game.levels:
        yield Finding("no level", "levels")
    symbols = {k.symbol for k in game.objects.values()}
    for i, rows in enumerate(game.levels):
        text = "".join(rows)
        for symbol in sorted({*text} - symbols - {EMPTY}):
            yield Finding("unknown symbol", f"levels[{i}]", symbol)
        count = sum(text.count(s) for s in players)
        if players and count != 1:
            yield Finding("two players" if count else "player missing", f"levels[{i}]")


def warnings(game: Game) -> Iterator[Finding]:
    """What will never matter."""
    every = [*uses(game)]
    there = {n for n, k in game.objects.items() if any(k.symbol in row for rows in game.levels for row in rows)}
    there |= {name for _, kind, name, how in every if kind == "object" and how == "makes"}
    for i, r in enumerate(game.rules):
        for name in dict.fromkeys(n for n in (r.who, r.what) if n in game.objects and n not in there):
            yield Finding("never there", f"rules[{i}]", name, error=False)
    for name in game.counters:
        how = {h for _, kind, n, h in every if kind == "counter" and n == name}
        if "reads" not in how:
            yield Finding("never read", "counters", name, error=False)
        elif "changes" not in how:
            yield Finding("never changed", "counters", name, error=False)
