"""Plans: what they are made of, how they are drawn, and what came of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.tasks.worlds.grid_games.small import game, rule

from evolvent.search.games.memory import Memory, Tried, begun
from evolvent.search.games.plan import Plan, Realised, compared, entry_of, kept, plan_of, settled
from evolvent.search.games.planner import chosen, forbidden, planned, replanned
from evolvent.tasks.worlds.grid_games.differ import difference, mechanics
from evolvent.tasks.worlds.grid_games.language import GameError
from evolvent.tasks.worlds.grid_games.world import game as read
from evolvent.tasks.worlds.grid_games.world import seeds

PUSH = rule("bump", "me", "box", ["push"])
SLIDE = rule("enter", "me", "ice", ["slide"])
HUNT = rule("turn", "foe", "", ["step", "toward"])
ENTRIES = {e.name: e for e in begun()}
COINS = read(seeds()["coins"])
KNOWN = {*mechanics(COINS)}


def rng(i: int = 0) -> np.random.Generator:
    return np.random.default_rng(i)


def test_what_an_entry_stands_for() -> None:
    assert [str(m) for m in ENTRIES["energy"].forms] == ["turn player: count a -", "lose: count a <= 0"]
    assert [str(m) for m in ENTRIES["heave"].forms] == ["bump player A: push"]
    made = settled(ENTRIES["wind"], rng())
    assert made.rules[0]["do"][0][1] in ("up", "right", "down", "left")
    drawn = {settled(ENTRIES["energy"], rng(i)).counters["energy"] for i in range(60)}
    assert min(drawn) >= 6
    assert max(drawn) <= 40
    assert len(drawn) > 20


def test_plans_as_data() -> None:
    plan = Plan((ENTRIES["pit"],), ("bump player A: push",), ("win: none A",), ())
    assert plan_of(json.loads(json.dumps(plan.as_dict()))) == plan
    wrong: list[Any] = [
        {"add": "pit"},
        {"add": ["pit"]},
        {"add": [{"name": "x", "rules": [{"on": "hit"}]}]},
        {"add": [{"rules": {}}]},
    ]
    for data in wrong:
        with pytest.raises(GameError):
            plan_of(data)


def test_what_nobody_speaks_of_is_kept() -> None:
    one = game(["@ox"], PUSH, SLIDE)
    plan = kept(Plan(change=("bump player A: push",)), one)
    assert plan.keep == ("enter player A: slide", "win: on player A")


def test_planned_against_realised() -> None:
    before = game(["@of.x"], PUSH, SLIDE)
    hunter = entry_of({"name": "h", "rules": [HUNT, rule("near", "foe", "player", ["lose"])]})
    plan = kept(Plan((hunter,), ("enter player A: slide",)), before)
    swap = rule("enter", "me", "ice", ["slide"], ["remove", "what"])
    after = game(["@of.x"], PUSH, swap, HUNT)
    found = difference(before, after)
    made = compared(plan, before, after, found, [0, 1, 2])
    assert made == Realised((0.5,), (True,), (), (True, True))
    assert made.share == 0.75
    never = compared(plan, before, after, found, [0, 1])  # the hunter has not moved in any play
    assert never.add == (0.0,)
    lost = compared(plan, before, game(["@x"], swap, HUNT), difference(before, game(["@x"], swap, HUNT)), [0, 1])
    assert lost.keep == (False, True)
    assert lost.share == pytest.approx(0.5 * (0.5 + 1.0) / 2)
    assert compared(plan, before, None, found, []).share == 0
    assert Realised().share == 0
    there = entry_of({"name": "p", "rules": [rule("bump", "player", "box", ["push"])]})
    assert compared(Plan((there,)), before, before, difference(before, before), [0, 1]).add == (0.0,)  # it was there


def test_nothing_is_planned_that_is_there_or_has_failed() -> None:
    memory = Memory()
    assert "coins-to-win" in forbidden(KNOWN, memory, "coins")
    assert "pit" not in forbidden(KNOWN, memory, "coins")
    memory.learn("coins", "pit", ENTRIES["pit"].words, 0.1, failed=True)
    memory.tried(Tried(("hunter", "clock"), (0.0, 0.5), 0.2))
    assert {"pit", "hunter"} <= forbidden(KNOWN, memory, "coins")
    assert "clock" not in forbidden(KNOWN, memory, "coins")
    assert "pit" not in forbidden(KNOWN, memory, "keys")  # another lineage


def test_what_was_worth_more_is_drawn_more_often() -> None:
    def share(memory: Memory) -> float:
        return float(np.mean([chosen(1, COINS, KNOWN, memory, "coins", rng(i), 0.1, set())[0].name == "heave"
            for i in range(300)]))  # fmt: skip

    memory, worse = Memory(), Memory()
    for value, one in ((0.9, memory), (-0.9, worse)):
        for _ in range(5):
            one.learn("coins", "heave", ENTRIES["heave"].words, value, failed=False)
    assert share(memory) > 2 * share(Memory())
    assert share(worse) < 0.5 * share(Memory())
    assert not {"heave"} & {e.name for e in chosen(99, COINS, KNOWN, memory, "coins", rng(), 0.1, {"heave"})}


def test_a_plan_and_its_revision() -> None:
    memory = Memory()
    plan = planned(COINS, KNOWN, memory, "coins", rng(), 2, 1.0, 0.1)
    assert len({e.name for e in plan.add}) == 2
    assert plan.change == ("enter player A: remove what",)
    assert plan.keep == ("win: none A",)
    one, two = plan.add
    again = replanned(plan, Tried((one.name, two.name), (0.5, 0.0), 0.1), COINS, KNOWN, memory, "coins", rng(1), 0.1)
    assert again.add[0] is one
    assert len(again.add) == 2
    assert again.add[1].name not in (one.name, two.name)
    more = replanned(plan, Tried((one.name, two.name), (0.5, 1.0), 0.1), COINS, KNOWN, memory, "coins", rng(1), 0.1)
    assert more.add[:2] == plan.add
    assert len(more.add) == 3
