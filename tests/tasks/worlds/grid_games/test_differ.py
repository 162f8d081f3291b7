"""What differs between versions: cosmetic changes are none, and every structural one is found."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from tests.tasks.worlds.grid_games.small import data, rule

from evolvent.search.games.build import data_of, visual
from evolvent.tasks.worlds.grid_games.differ import Mechanic, difference, mechanics, similarity, without
from evolvent.tasks.worlds.grid_games.language import game_of
from evolvent.tasks.worlds.grid_games.world import seeds

PUSH = rule("bump", "me", "box", ["push"])
TAKE = rule("enter", "me", "ice", ["count", "n", 1], ["remove", "what"])
GATE = rule("bump", "me", "box", ["remove", "what"], when=[["count", "n", ">=", 2]])
LEVEL = ["@o~x"]


def made(*rules: dict[str, Any], **more: Any) -> Any:
    return game_of(data(LEVEL, *rules, **more))


def test_the_form_of_a_mechanic() -> None:
    assert [str(m) for m in mechanics(made(PUSH, TAKE, GATE))] == [
        "bump player A: push",
        "enter player A: count a +, remove what",
        "bump player A: if count a >= +, remove what",
        "win: on player A",
    ]


def renamed(one: Any, names: dict[str, str]) -> Any:
    """Data with other names, and the objects in another order."""
    if isinstance(one, dict):
        return {names.get(k, k): v if k == "is" else renamed(v, names) for k, v in reversed(one.items())}
    if isinstance(one, list):
        return [renamed(v, names) for v in one]
    return names.get(one, one) if isinstance(one, str) else one


@pytest.mark.parametrize("name", sorted(seeds()))
def test_names_colours_and_layout_are_cosmetic(name: str) -> None:
    before = data_of(seeds()[name])
    new = {n: f"thing-{i}" for i, n in enumerate([*before["objects"], *before["counters"]])}
    after = renamed(before, new)
    after["levels"] = [rows[::-1] for rows in after["levels"]]
    visual(after, np.random.default_rng(0))
    after["title"] = "Another"
    found = difference(game_of(before), game_of(after))
    assert found.cosmetic
    assert {*found.kept} == {*mechanics(game_of(before))}
    swapped = {"player": "wall", "wall": "player"}  # names trade places: still the same game
    assert difference(game_of(before), game_of(renamed(before, swapped))).cosmetic


def test_new_changed_kept_dropped() -> None:
    before = made(PUSH, TAKE, GATE)
    hunt = rule("turn", "foe", "", ["step", "toward"])
    found = difference(before, made(PUSH, TAKE, hunt))
    assert [str(m) for m in found.new] == ["turn A: step toward"]
    assert [str(m) for m in found.dropped] == ["bump player A: if count a >= +, remove what"]
    assert len(found.kept) == 3
    more = copy.deepcopy(TAKE)
    more["do"][0][2] = 5
    other = difference(before, made(PUSH, more, GATE))
    assert [(str(a), str(b)) for a, b in other.changed] == [("enter player A: count a +, remove what",) * 2]
    assert not other.new
    effect = rule("enter", "me", "ice", ["count", "n", 1], ["become", "what", "foe"])
    [(a, b)] = difference(before, made(PUSH, effect, GATE)).changed
    assert str(a) != str(b) == "enter player A: count a +, become what B"
    start = difference(before, made(PUSH, TAKE, GATE, counters={"n": 4}))
    assert len(start.changed) == 2  # both rules that use the counter
    minus = copy.deepcopy(TAKE)
    minus["do"][0][2] = -1
    assert difference(before, made(PUSH, minus, GATE)).changed[0][1] != difference(before, before).kept[1]


def test_a_second_object_with_the_same_rule_is_no_second_mechanic() -> None:
    again = rule("bump", "me", "foe", ["push"])
    assert difference(made(PUSH), made(PUSH, again)).cosmetic


def test_goals_are_mechanics() -> None:
    found = difference(made(PUSH), made(PUSH, win=[["on", "me", "spot"], ["none", "ice"]], lose=[["none", "box"]]))
    assert [str(m) for m in found.new] == ["win: none A", "lose: none A"]


def test_similarity() -> None:
    a, b = Mechanic("bump player A", ("push",)), Mechanic("bump player A", ("swap",))
    assert similarity(a, a) == 1
    assert similarity(a, b) == pytest.approx(2 / 4)  # trigger, event; push, swap
    assert similarity(a, Mechanic("turn A", ("step up",))) == 0


def test_without() -> None:
    one = made(PUSH, TAKE, lose=[["none", "box"]])
    less = without(one, [("rules", 0), ("lose", 0)])
    assert [str(m) for m in mechanics(less)] == ["enter player A: count a +, remove what", "win: on player A"]
    assert less.levels == one.levels
