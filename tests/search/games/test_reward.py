"""The proxy reward against figures worked out by hand from equations 10 and 11, and its signals."""

from __future__ import annotations

import pytest
from tests.tasks.worlds.grid_games.small import game, rule

from evolvent.core.errors import UserError
from evolvent.search.games.reward import (
    Signals,
    Weights,
    abilities,
    creative,
    novelty,
    playable,
    regression,
    sanity,
    structural,
    surface_score,
)
from evolvent.tasks.worlds.grid_games.bot import Played, Report
from evolvent.tasks.worlds.grid_games.differ import Difference, Mechanic
from evolvent.tasks.worlds.grid_games.play import Fault

A, B, C = (Mechanic("turn A", (f"step {way}",)) for way in ("up", "down", "left"))
GOOD = Signals(1, 1, 1, 1, 1, 0, 0, sanity=1, runs=1)


@pytest.mark.parametrize(
    ("signals", "wanted"),
    [
        (GOOD, 0.25 + 0.20 + 0.20 + 0.15 + 0.10),
        (Signals(sanity=1, runs=1, cosmetic=1, regression=0.5), -0.15 - 0.05),
        (Signals(0.5, 0.25, 0.75, 0.4, 0.9, 0, 0.2, 0.8, 1), 0.125 + 0.05 + 0.15 + 0.06 + 0.09 - 0.02),
        (Signals(1, 1, 1, 1, 1, sanity=0.59, runs=1), 0.9 * 0.25),
        (Signals(1, 1, 1, 1, 1, sanity=0.6, runs=1), 0.9),
        (Signals(1, 1, 1, 1, 1, sanity=0.6, runs=0), 0.9 * 0.5),
        (Signals(1, 1, 1, 1, 1, sanity=0.2, runs=0), 0.9 * 0.125),
        (Signals(cosmetic=1, sanity=0.2, runs=0), -0.15 * 0.125),
    ],
)
def test_the_formula(signals: Signals, wanted: float) -> None:
    assert Weights()(signals) == pytest.approx(wanted)


def test_weights_and_gates_can_be_switched_off() -> None:
    alone = Weights(0, 0, 0, 1, 0, 0, 0, sane=0, failed=1)
    assert alone(Signals(1, 1, 1, 0.4, 1, 1, 1, 0, 0)) == pytest.approx(0.4)
    with pytest.raises(UserError, match="judge.weights.novel must be at least 0"):
        Weights(novel=-1).check(None)


def test_structural_change_and_novelty() -> None:
    assert structural(Difference()) == 0
    assert structural(Difference(new=(A,), changed=((B, C),), dropped=(B,))) == pytest.approx((1 + 0.5 + 0.25) / 6)
    assert structural(Difference(new=(A,) * 9)) == 1
    assert novelty(Difference(), [A]) == 0
    assert novelty(Difference(new=(A,)), []) == 1
    assert novelty(Difference(new=(A,)), [A, C]) == 0
    # of trigger, event, effect, its name: three are shared, five there are in all
    assert novelty(Difference(new=(A,), changed=((B, B),)), [C]) == pytest.approx(1 - 3 / 5)


def test_scores() -> None:
    assert [creative(x) for x in (1, 3, 10, 6.5)] == [0, 0, 1, 0.5]
    assert surface_score("") == 1
    assert surface_score(" ".join(f"word{i}" for i in range(900))) == 10
    assert surface_score("a b a b") == pytest.approx(1 + 9 * (2 / 120 + 7 / 4000) / 2)


def report(**more: object) -> Report:
    return Report((Played(**{"way": (1,), "moved": True, "fired": {0}, "lost": True, **more}),))  # type: ignore[arg-type]


def test_what_the_validator_says() -> None:
    assert playable(0.95, report()) == pytest.approx(0.95)
    assert playable(0.95, report(way=None)) == pytest.approx(0.75)
    assert playable(0.3, report(way=None, fault=Fault("x"))) == 0
    one = game(["@~x"], rule("enter", "me", "ice", ["slide"]), rule("bump", "me", "box", ["push"]))
    assert sanity(one, report()) == 1  # one of two rules is half
    assert sanity(one, report(fired=set())) == 0.8
    assert sanity(one, report(luck=1.0)) == 0.8
    assert sanity(one, report(way=None)) == 0.8
    assert sanity(one, report(at_once=True, way=None, moved=False, fired=set(), luck=0)) == 0.2
    assert sanity(one, Report(problem="x")) == sanity(None, report()) == 0


def test_regression_is_about_what_the_parent_could_do() -> None:
    one = game(["@~x"])
    before, after = abilities(one, report()), abilities(one, report(lost=False, way=None))
    assert regression(before, after) == 2 / 5
    assert regression(after, before) == 0
    assert regression(before, abilities(None, Report(problem="x"))) == 1
