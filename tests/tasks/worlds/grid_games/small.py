"""Small games for tests, written by hand."""

from __future__ import annotations

import copy
from typing import Any

from evolvent.tasks.worlds.grid_games.language import Game, game_of
from evolvent.tasks.worlds.grid_games.play import ACTIONS, Machine, State

OBJECTS: dict[str, Any] = {
    "me": {"symbol": "@", "is": ["player"]},
    "wall": {"symbol": "#", "is": ["solid"]},
    "box": {"symbol": "o", "is": ["solid"]},
    "ice": {"symbol": "~"},
    "spot": {"symbol": "x"},
    "foe": {"symbol": "f", "is": ["solid"]},
}


def rule(on: str, who: str, what: str, *effects: list[Any], when: list[Any] | None = None) -> dict[str, Any]:
    """A rule as data."""
    return {
        "on": on, "who": who, **({"what": what} if what else {}), **({"if": when} if when else {}),
        "do": list(effects),
    }  # fmt: skip


def data(level: list[str], *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A game as data; it is won on the spot."""
    base = {
        "objects": OBJECTS, "counters": {"n": 0}, "rules": list(rules), "win": [["on", "me", "spot"]], "lose": [],
        "levels": [level],
    }  # fmt: skip
    return copy.deepcopy({**base, **more})


def game(level: list[str], *rules: dict[str, Any], **more: Any) -> Game:
    """A game."""
    return game_of(data(level, *rules, **more))


def after(one: Game, *actions: str) -> tuple[list[str], State, int]:
    """The board after some actions, by the symbol of the first object in each cell; the position; how it ended."""
    machine = Machine(one)
    state, outcome = machine.begin(one.levels[0]), 0
    for action in actions:
        number = 4 if action == "wait" else ACTIONS.index(action)
        state, outcome, _ = machine.step(state, number)
        if outcome:
            break
    symbols = {machine.bits[n]: k.symbol for n, k in one.objects.items()}
    columns = len(one.levels[0][0])
    text = "".join(next((symbols[b] for b in symbols if c & b), ".") for c in state.cells)
    return [text[i : i + columns] for i in range(0, len(text), columns)], state, outcome
