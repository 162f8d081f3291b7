"""The bot on games whose ways to win are known, and what it takes for a mechanic to work."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from tests.tasks.worlds.grid_games.small import after, game, rule

from evolvent.tasks.worlds.grid_games.bot import Effort, disturbed, play, rearranged, working
from evolvent.tasks.worlds.grid_games.play import ACTIONS, WON

EFFORT = Effort(limit=200, plays=4, length=12)
PUSH = rule("bump", "me", "box", ["push"])
COUNT = rule("turn", "me", "", ["count", "n", 1])


def report(one, seed: int = 0):  # type: ignore[no-untyped-def]
    return play(one, list(one.levels), np.random.default_rng(seed), EFFORT)


def test_the_way_to_win_wins_and_is_no_longer_than_need_be() -> None:
    one = game(["@.#x", "....", "..#."])
    [played] = report(one).levels
    assert played.way is not None
    assert after(one, *(ACTIONS[i] for i in played.way))[2] == WON
    every = itertools.product(range(4), repeat=4)
    assert not any(after(one, *(ACTIONS[i] for i in way))[2] == WON for way in every)
    assert len(played.way) == 5


def test_boxes_have_to_be_pushed_the_right_way() -> None:
    one = game(["#######", "#.....#", "#.@o.x#", "#.....#", "#######"], PUSH, win=[["all", "box", "spot"]])
    found = report(one)
    assert found.runs
    assert found.levels[0].way == (1, 1)
    corner = game(["####", "#o.#", "#@x#", "####"], PUSH, win=[["all", "box", "spot"]])
    stuck = report(corner)
    assert stuck.won == 0
    assert not stuck.runs
    assert not stuck.losable
    assert stuck.moved


def test_losing_and_firing() -> None:
    one = game(["@~x"], rule("enter", "me", "ice", ["lose"]))
    found = report(one)
    assert found.losable
    assert found.won == 0
    assert found.fired == {0}
    never = game(["@.x", "~#.", "##."], PUSH, rule("enter", "me", "ice", ["remove", "what"]), COUNT)
    assert 0 not in report(never).fired
    assert 2 in report(never).fired


def test_what_is_over_at_once_is_no_game() -> None:
    found = report(game(["@.x"], win=[["none", "ice"]]))
    assert found.levels[0].at_once
    assert found.won == 0
    assert not found.runs
    assert not found.moved


def test_faults_and_what_cannot_be_played() -> None:
    found = report(game(["@~x"], PUSH, rule("enter", "me", "ice", ["send", "who", "foe"])))
    assert found.fault is not None
    assert found.fault.rule == 1
    assert not found.runs
    assert "ghost" in report(game(["@x"], rule("enter", "me", "ghost", ["win"]))).problem


def test_the_same_seed_plays_the_same() -> None:
    one = game(["@..~", "...x", "~..."], rule("enter", "me", "ice", ["remove", "what"]))
    assert report(one) == report(one)
    assert report(one, 0).levels[0].plays[1:] != report(one, 1).levels[0].plays[1:]


@pytest.mark.parametrize(
    ("rules", "more", "wanted"),
    [
        ([PUSH, COUNT], {}, ["bump player A: push", "win: on player A"]),  # nothing reads the counter
        ([PUSH, COUNT], {"lose": [["count", "n", ">", 6]]},
         ["bump player A: push", "turn player: count a +", "win: on player A", "lose: count a > +"]),
        ([PUSH, COUNT], {"lose": [["count", "n", ">", 900]]}, ["bump player A: push", "win: on player A"]),  # never
        ([PUSH, rule("enter", "me", "ice", ["remove", "what"])], {}, ["bump player A: push", "win: on player A"]),
    ],
)  # fmt: skip
def test_a_mechanic_works_if_play_takes_another_course_without_it(rules, more, wanted) -> None:  # type: ignore[no-untyped-def]
    one = game(["@o..", ".#.x", "...."], *rules, **more)
    assert [str(m) for m in working(one, list(one.levels), report(one))] == wanted


def test_nothing_works_in_a_game_that_does_not_run() -> None:
    one = game(["@o#x"], PUSH, rule("turn", "box", "", ["step", "left"]))
    assert working(one, list(one.levels), report(one)) == []


def test_rearranged_levels_have_the_same_things_and_border() -> None:
    level = ("#####", "#@.o#", "#x..#", "#####")
    found = {rearranged(level, np.random.default_rng(i)) for i in range(20)}
    assert len(found) > 10
    for other in found:
        assert Counter("".join(other)) == Counter("".join(level))
        assert (other[0], other[-1]) == (level[0], level[-1])
        assert all(row[0] == row[-1] == "#" for row in other)


def test_disturbed_levels_have_a_few_things_elsewhere() -> None:
    level, moved = ("######", "#@.o.#", "#x..##", "######"), 0
    for i in range(20):
        other = disturbed(level, np.random.default_rng(i), 2)
        assert Counter("".join(other)) == Counter("".join(level))
        places = [(a, b) for one, two in zip(level, other, strict=True) for a, b in zip(one, two, strict=True)]
        gone = sum(a != b and a != "." for a, b in places)
        assert gone <= 2
        moved += gone > 0
        assert (other[0], other[-1]) == (level[0], level[-1])
    assert moved > 15  # now and then a thing goes back to where it was
