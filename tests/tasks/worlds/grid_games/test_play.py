"""Turns of small games, against boards that are worked out by hand."""

from __future__ import annotations

import pytest
from tests.tasks.worlds.grid_games.small import after, data, game, rule

from evolvent.tasks.worlds.grid_games.language import GameError, game_of
from evolvent.tasks.worlds.grid_games.play import LOST, MOST_EVENTS, WON, Fault, Machine

PUSH = rule("bump", "me", "box", ["push"])


def test_walking_and_walls() -> None:
    one = game(["@#x", "..."])
    assert after(one, "right")[0] == ["@#x", "..."]
    assert after(one, "up")[0] == ["@#x", "..."]
    assert after(one, "down", "right")[0] == [".#x", ".@."]
    assert after(one, "down", "right", "right", "up")[2] == WON


@pytest.mark.parametrize(
    ("level", "moved"),
    [("@o..x", ".@o.x"), ("@oo.x", ".@oox"), ("@o#.x", "@o#.x"), ("@o", "@o"), ("@oo#x", "@oo#x")],
)
def test_pushing(level: str, moved: str) -> None:
    one = game([level], PUSH, rule("bump", "box", "box", ["push"]))
    assert after(one, "right")[0] == [moved]


def test_a_solid_thing_without_a_rule_stops() -> None:
    assert after(game(["@o.x"]), "right")[0] == ["@o.x"]


def test_sliding_goes_on_until_the_ice_ends() -> None:
    slide = rule("enter", "me", "ice", ["slide"])
    assert after(game(["@~~~..x"], slide), "right")[0] == [".~~~@.x"]
    assert after(game(["@~~#..x"], slide), "right")[1].cells[2] == 0b1 | 0b1000  # on the ice before the wall


def test_conditions_and_counters() -> None:
    take = rule("enter", "me", "ice", ["count", "n", 1], ["remove", "what"])
    door = rule("bump", "me", "box", ["count", "n", -1], ["remove", "what"], when=[["count", "n", ">=", 1]])
    assert after(game(["@o.x"], take, door), "right")[0] == ["@o.x"]
    board, state, _ = after(game(["@~ox".replace(" ", "")], take, door), "right", "right")
    assert board == ["..@x"]
    assert state.counters == (0,)


def test_things_that_move_by_themselves() -> None:
    hunt = rule("turn", "foe", "", ["step", "toward"])
    catch = rule("near", "foe", "me", ["lose"])
    board, _, outcome = after(game(["@...f", "....x"], hunt), "wait")
    assert (board, outcome) == (["@..f.", "....x"], 0)
    assert after(game(["@..f", "...x"], hunt, catch), "wait", "wait")[2] == LOST
    flee = rule("turn", "foe", "", ["step", "away"])
    assert after(game(["@.f..x"], flee), "wait")[0] == ["@..f.x"]
    along, against = (rule("turn", "foe", "", ["step", w]) for w in ("along", "against"))
    assert after(game(["@.f..x"], along), "right")[0] == [".@.f.x"]
    assert after(game(["@..f.x"], against), "right")[0] == [".@f..x"]
    down = rule("turn", "foe", "", ["step", "down"])
    assert after(game(["f@x", "...", "..."], down), "wait", "wait", "wait")[0] == [".@x", "...", "f.."]


def test_effects() -> None:
    board = after(game(["@ox"], rule("bump", "me", "box", ["swap"])), "right")[0]
    assert board == ["o@x"]
    board = after(game(["@ox"], rule("bump", "me", "box", ["become", "what", "ice"])), "right")[0]
    assert board == [".@x"]  # ice is no obstacle
    board = after(game(["@.x"], rule("turn", "me", "", ["drop", "ice"])), "right")[1].cells
    assert board == (0, 0b1001, 0b10000)
    left = after(game(["@~.x"], rule("enter", "me", "ice", ["drop", "box"])), "right")[0]
    assert left == ["o@.x"]
    spread = after(game(["..@", ".~.", "#.x"], rule("turn", "ice", "", ["spread", "ice"])), "wait")[0]
    assert spread == [".~@", "~~~", "#~x"]
    portal = rule("enter", "me", "ice", ["send", "who", "ice"])
    assert after(game(["@~..~x"], portal), "right")[1].cells[4] == 0b1001
    dig = rule("act", "me", "wall", ["remove", "what"])
    assert after(game(["@#x"], dig), "right", "act")[0] == ["@.x"]
    assert after(game(["@ox"], rule("bump", "me", "box", ["block"], ["remove", "what"])), "right")[0] == ["@.x"]
    assert after(game(["@.x"], rule("turn", "me", "", ["set", "n", 7])), "wait")[1].counters == (7,)


def test_goals() -> None:
    boxes = [["all", "box", "spot"]]
    assert after(game(["@o.x"], PUSH, win=boxes), "right")[2] == 0
    assert after(game(["@o.x"], PUSH, win=boxes), "right", "right")[2] == WON
    assert after(game(["@..x"], PUSH, win=boxes), "right")[2] == 0  # there is no box
    both = [["none", "ice"], ["on", "me", "spot"]]
    take = rule("enter", "me", "ice", ["remove", "what"])
    assert after(game(["@~x"], take, win=both), "right", "right")[2] == WON
    assert after(game(["~@x"], take, win=both), "right")[2] == 0
    tick = rule("turn", "me", "", ["count", "n", -1])
    assert after(game(["@..x"], tick, lose=[["count", "n", "<=", -2]]), "right", "right", "right")[2] == LOST
    gone = rule("enter", "me", "ice", ["remove", "who"])
    assert after(game(["@~x"], gone), "right")[2] == LOST  # nobody is left
    assert after(game(["@~x"], rule("enter", "me", "ice", ["win"]), lose=[["some", "foe"]]), "right")[2] == WON


def test_what_goes_wrong_is_a_fault() -> None:
    with pytest.raises(Fault, match="sent to where there is nothing") as fault:
        after(game(["@~x"], PUSH, rule("enter", "me", "ice", ["send", "who", "foe"])), "right")
    assert fault.value.rule == 1
    with pytest.raises(Fault, match="runs away"):
        after(game(["@.x"], rule("turn", "me", "", ["count", "n", 900])), *["wait"] * 12)
    whirl = [rule("bump", "me", "box", ["push"]), rule("bump", "box", "me", ["push"])]
    assert after(game(["@ox"], *whirl), "right")[2] in (0, WON)  # this one ends
    many = game([".".join("f" * 6)] * 12 + [], *[rule("turn", "foe", "", ["set", "n", 1])] * 5)
    machine = Machine(many)
    assert MOST_EVENTS < 72 * 5
    with pytest.raises(Fault, match="no end"):
        machine.step(machine.begin(many.levels[0]), 4)


def test_names_that_are_not_there() -> None:
    with pytest.raises(GameError, match="no object `ghost`"):
        Machine(game(["@x"], rule("enter", "me", "ghost", ["win"])))
    with pytest.raises(GameError, match="no counter `gold`"):
        Machine(game(["@x"], rule("turn", "me", "", ["count", "gold", 1])))
    with pytest.raises(GameError, match="no object has the symbol"):
        Machine(game_of(data(["@?x"]))).begin(("@?x",))
