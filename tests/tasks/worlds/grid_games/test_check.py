"""The checker on games with one mistake each, and its score."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tasks.worlds.grid_games.small import OBJECTS, game, rule

from evolvent.tasks.worlds.grid_games.check import findings, score
from evolvent.tasks.worlds.grid_games.world import game as read
from evolvent.tasks.worlds.grid_games.world import seeds

CLEAN = {"counters": {}}
COUNT = rule("turn", "me", "", ["count", "n", 1])


@pytest.mark.parametrize(
    ("level", "rules", "more", "codes"),
    [
        (["@x"], [], CLEAN, []),
        (["x."], [], CLEAN, ["player missing"]),
        (["@@x"], [], CLEAN, ["two players"]),
        (["@?x"], [], CLEAN, ["unknown symbol"]),
        (["@x"], [], {**CLEAN, "win": []}, ["no goal"]),
        (["@x"], [rule("turn", "me", "", ["win"])], {**CLEAN, "win": []}, []),
        (["@x"], [rule("enter", "me", "ghost", ["win"])], CLEAN, ["unknown object"]),
        (["@x"], [rule("turn", "me", "", ["drop", "ghost"])], CLEAN, ["unknown object"]),
        (["@x"], [rule("turn", "me", "", ["count", "gold", 1])], CLEAN, ["unknown counter"]),
        (["@x"], [], {**CLEAN, "lose": [["count", "gold", "<", 1]]}, ["unknown counter"]),
        (["@fx"], [rule("act", "foe", "me", ["win"])], CLEAN, ["not a player"]),
        (["@x"], [rule("enter", "me", "ice", ["win"])], CLEAN, ["never there"]),
        (["@x"], [rule("enter", "me", "ice", ["win"]), rule("turn", "me", "", ["drop", "ice"])], CLEAN, []),
        (["@x"], [COUNT], {}, ["never read"]),
        (["@x"], [], {"lose": [["count", "n", ">", 9]]}, ["never changed"]),
        (["@x"], [COUNT], {"lose": [["count", "n", ">", 9]]}, []),
        (["@x"], [], {**CLEAN, "objects": {"wall": OBJECTS["wall"], "spot": OBJECTS["spot"], "me": {"symbol": "@"}}},
         ["no player"]),
        (["@x"], [], {**CLEAN, "levels": []}, ["no level"]),
    ],
)  # fmt: skip
def test_findings(level: list[str], rules: list[Any], more: dict[str, Any], codes: list[str]) -> None:
    assert [f.code for f in findings(game(level, *rules, **more))] == codes


def test_the_score() -> None:
    found = findings(game(["@x"], COUNT, rule("enter", "me", "ghost", ["win"]), rule("enter", "me", "ice", ["win"])))
    assert [f.error for f in found] == [True, False, False]
    assert score(found) == pytest.approx(1 - 0.20 - 2 * 0.05)
    assert "there is no object `ghost`" in found[0].text
    assert score(found * 6) == 0.0


def test_the_seed_games_are_clean() -> None:
    assert {name: findings(read(text)) for name, text in seeds().items()} == {name: [] for name in seeds()}
