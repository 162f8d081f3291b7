"""Games by name: `leduc`, `kuhn-3` (players), `liars-dice-5` (sides), `goofspiel-4` (cards)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from evolvent.core.errors import UserError, unknown
from evolvent.games.bidding import goofspiel, liars_dice
from evolvent.games.poker import kuhn, leduc
from evolvent.games.tree import Game, Rules, build

FAMILIES: dict[str, tuple[Callable[[int], Rules], int, int, int | None]] = {  # name -> rules; number: default, most;
    "kuhn": (kuhn, 2, 5, None),  # players, None where the number is theirs
    "leduc": (leduc, 2, 3, None),
    "liars-dice": (liars_dice, 5, 6, 2),
    "goofspiel": (goofspiel, 4, 5, 2),
}


@lru_cache(maxsize=32)
def load(name: str) -> Game:
    """The game of a name. `UserError` for what is none, or would be too large."""
    match = re.fullmatch(r"(.+?)(?:-(\d+))?", name)
    family, number = (match[1], match[2]) if match else (name, None)
    if family not in FAMILIES:
        raise unknown("game", name, FAMILIES, "a number may follow, as in kuhn-3 or liars-dice-5")
    rules, default, most, players = FAMILIES[family]
    size = int(number) if number else default
    if not 2 <= size <= most:
        raise UserError(f"the game {name}: the number after {family}- goes from 2 to {most}")
    return build(rules(size), players or size)
