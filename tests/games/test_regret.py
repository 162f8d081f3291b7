"""Variants of CFR against an oracle that goes through the game history by history."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.games import slow_cfr

from evolvent.games import vad, variants
from evolvent.games.bidding import goofspiel
from evolvent.games.named import load
from evolvent.games.poker import kuhn
from evolvent.games.regret import Memory, Minimiser, Rules, matched, solve
from evolvent.games.tree import Rules as GameRules
from evolvent.games.values import exploitability

GAMES: dict[str, tuple[GameRules, int]] = {
    "kuhn": (kuhn(), 2),
    "kuhn-3": (kuhn(3), 3),
    "goofspiel-3": (goofspiel(3), 2),
}
ITERATIONS = 8


def same(name: str, rules: Rules, update: slow_cfr.Update, iterations: int = ITERATIONS) -> None:
    """Regrets, policies and sums of both are the same."""
    run = Minimiser(load(name), rules)
    for _ in range(iterations):
        run.step()
    oracle = slow_cfr.run(*GAMES[name], update, iterations)
    for p, side in enumerate(run.game.sides):
        for row, key in enumerate(run.game.keys[p]):
            node, legal = oracle[p][key], side.legal[row]
            for ours, theirs in ((run.regret, node.regret), (run.policies, node.policy), (run.total, node.total)):
                assert ours[p][row][legal] == pytest.approx(list(theirs.values()), rel=1e-9, abs=1e-12)
                assert not ours[p][row][~legal].any()


@pytest.mark.parametrize("name", GAMES)
def test_predictive_variants(name: str) -> None:
    same(name, variants.predictive_cfr_plus(), slow_cfr.predictive)
    same(name, variants.discounted_predictive_cfr_plus(), slow_cfr.discounted_predictive)


@pytest.mark.parametrize("name", GAMES)
def test_vad_cfr(name: str) -> None:
    same(name, vad.vad_cfr(warmup=5), slow_cfr.vad(warmup=5))


@pytest.mark.parametrize("mechanism", vad.ABLATIONS)
def test_each_mechanism_of_vad_cfr_can_be_switched_off_and_does_something(mechanism: str) -> None:
    settings: dict[str, Any] = {"warmup": 3, "floor": -0.05}  # a floor that is reached
    without = {**settings, **vad.ABLATIONS[mechanism]}
    same("kuhn", vad.vad_cfr(**without), slow_cfr.vad(**without))
    whole, part = (solve(load("kuhn"), vad.vad_cfr(**s), ITERATIONS) for s in (settings, without))
    assert any(np.abs(a - b).max() > 1e-6 for a, b in zip(whole, part, strict=True))


def test_one_volatility_for_all_information_sets_goes_over_them_in_order() -> None:
    memory: Memory = {}
    first, second = np.array([[1.0], [3.0]]), np.array([[2.0], [0.5]])
    assert vad.smoothed(first, 1, memory, True).tolist() == first.tolist()
    a = 0.1 * 2.0 + 0.9 * 3.0
    assert vad.smoothed(second, 2, memory, True)[:, 0] == pytest.approx([a, 0.1 * 0.5 + 0.9 * a])
    assert memory["e"] == pytest.approx(0.1 * 0.5 + 0.9 * a)


def test_nothing_is_averaged_before_the_warm_start_ends() -> None:
    run = Minimiser(load("kuhn"), vad.vad_cfr(warmup=3))
    for t in range(1, 5):
        run.step()
        assert bool(run.total[0].any()) == (t > 3)


def test_what_is_not_positive_counts_as_nothing() -> None:
    side = load("goofspiel-3").sides[0]
    weights = np.full(side.shape, -1.0)
    weights[0] = [1.0, 3.0, -2.0]
    policy = matched(side, weights)
    assert policy[0].tolist() == [0.25, 0.75, 0.0]
    assert np.array_equal(policy[1:], side.uniform()[1:])


def test_variants_approach_an_equilibrium() -> None:
    game = load("liars-dice-3")
    found = {
        name: exploitability(game, solve(game, rules, 200))
        for name, rules in (("cfr", variants.cfr()), ("cfr+", variants.cfr_plus()), ("dcfr", variants.dcfr()))
    }
    assert found["cfr"] < 0.03
    assert max(found["cfr+"], found["dcfr"]) < 0.2 * found["cfr"]
    assert exploitability(game, solve(game, vad.vad_cfr(warmup=100), 200)) < 0.2 * found["cfr+"]


@pytest.mark.parametrize(
    ("wrong", "told"), [(np.zeros(3), r"\(3,\) in iteration 1, not"), (np.full((6, 2), np.nan), "numbers")]
)
def test_rules_that_give_something_else_are_refused(wrong: Any, told: str) -> None:
    rules = Rules(lambda regret, r, t, memory: wrong, variants.matching, variants.averaging(0))
    with pytest.raises(ValueError, match=f"accumulate_regret gave {told}"):
        Minimiser(load("kuhn"), rules).step()


def test_rules_may_change_what_they_are_given() -> None:
    def spoil(regret: np.ndarray, r: np.ndarray, t: int, memory: Memory) -> np.ndarray:
        regret += r
        r[:] = np.nan
        return regret

    plain = variants.cfr()
    spoiled = Rules(spoil, plain.policy_from_regret, plain.accumulate_policy)
    for a, b in zip(solve(load("kuhn"), spoiled, 5), solve(load("kuhn"), plain, 5), strict=True):
        assert np.array_equal(a, b)
