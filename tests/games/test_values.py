"""Values and best responses against hand, against all pure strategies, and against OpenSpiel."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.games import variants
from evolvent.games.named import load
from evolvent.games.regret import Minimiser
from evolvent.games.tree import Chance, Decision, End, Game, History, build, from_data
from evolvent.games.values import best_response, exploitability, gains, policy_of, reach, utilities

SPIEL: dict[str, Any] = json.loads((Path(__file__).parents[1] / "fixtures" / "openspiel.json").read_text())
SOLVERS = {
    "cfr": variants.cfr(),
    "cfr+": variants.cfr_plus(),
    "dcfr": variants.dcfr(),
    "linear": variants.linear_cfr(),
}


def uneven(game: Game) -> list[np.ndarray]:
    """The policy of tests/fixtures/make_openspiel.py."""
    found = []
    for side, keys in zip(game.sides, game.keys, strict=True):
        a = np.arange(side.shape[1])
        weights = np.array([1 + (a * a + 3 * a + sum(map(ord, key))) % 5 for key in keys]) * side.legal
        found.append(weights / weights.sum(axis=1, keepdims=True))
    return found


@pytest.mark.parametrize("name", SPIEL["policies"])
def test_policies_are_worth_what_they_are_in_openspiel(name: str) -> None:
    game, theirs = load(name), SPIEL["policies"][name]
    assert [side.shape[0] for side in game.sides] == theirs["sets"]
    assert exploitability(game, game.uniform()) == pytest.approx(theirs["uniform"], abs=1e-9)
    assert exploitability(game, uneven(game)) == pytest.approx(theirs["uneven"], abs=1e-9)
    assert utilities(game, uneven(game)) == pytest.approx(theirs["utilities"], abs=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", SPIEL["iterations"])
def test_iterations_are_those_of_openspiel(name: str, solver: str) -> None:
    game, theirs = load(name), SPIEL["iterations"][name][solver]
    run = Minimiser(game, SOLVERS[solver])
    for expected in theirs["exploitability"]:
        run.step()
        assert exploitability(game, run.average()) == pytest.approx(expected, abs=1e-9)
    rows = {key: (p, row) for p, keys in enumerate(game.keys) for row, key in enumerate(keys)}
    average = run.average()
    for key, expected in theirs["average"].items():
        p, row = rows[key]
        assert average[p][row][game.sides[p].legal[row]] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("solver", ["cfr", "cfr+"])
@pytest.mark.parametrize("name", SPIEL["long"])
def test_after_a_hundred_iterations_too(name: str, solver: str) -> None:
    run = Minimiser(load(name), SOLVERS[solver])
    for _ in range(100):
        run.step()
    assert exploitability(run.game, run.average()) == pytest.approx(SPIEL["long"][name][solver], abs=1e-9)


def test_an_equilibrium_of_kuhn_poker() -> None:
    game = load("kuhn")
    bets = [{"0": 1 / 6, "1": 0.0, "2": 1 / 2}, {"0": 1 / 3, "1": 0.0, "2": 1.0}]  # as first to bet
    calls = [{"0": 0.0, "1": 1 / 6 + 1 / 3, "2": 1.0}, {"0": 0.0, "1": 1 / 3, "2": 1.0}]
    profile = []
    for p, keys in enumerate(game.keys):
        rows = []
        for key in keys:
            history = key.split(".")
            chance = (calls if history[-1] == "1" and len(history) > 2 else bets)[p][history[p]]
            rows.append([1 - chance, chance])
        profile.append(np.array(rows))
    assert utilities(game, profile) == pytest.approx([-1 / 18, 1 / 18], abs=1e-15)
    assert gains(game, profile) == pytest.approx([0, 0], abs=1e-15)


@pytest.mark.parametrize("player", [0, 1])
def test_no_pure_strategy_is_better_than_the_best_response(player: int) -> None:
    game = load("kuhn")
    profile, side = uneven(game), game.sides[player]
    reaches = [reach(s, policy) for s, policy in zip(game.sides, profile, strict=True)]

    def worth(policy: np.ndarray) -> float:
        return utilities(game, [policy if p == player else x for p, x in enumerate(profile)])[player]

    pure = [np.eye(2)[list(choice)] for choice in itertools.product((0, 1), repeat=side.shape[0])]
    best = max(worth(policy) for policy in pure)
    assert worth(best_response(game, player, reaches)) == pytest.approx(best, abs=1e-15)
    assert gains(game, profile)[player] == pytest.approx(best - worth(profile[player]), abs=1e-15)


def test_actions_that_are_equally_good_share_in_the_response() -> None:
    game = load("kuhn")
    silent = [np.tile([1.0, 0.0], (6, 1)) for _ in range(2)]  # nobody ever bets: answers to a bet do not matter
    answer = best_response(game, 0, [reach(s, x) for s, x in zip(game.sides, silent, strict=True)])
    unreached = [row for row, key in enumerate(game.keys[0]) if key.count(".") == 3]
    assert (answer[unreached] == 0.5).all()


def test_a_mixture_of_policies_is_one_policy() -> None:
    game = load("leduc")
    side, rng = game.sides[0], np.random.default_rng(0)
    policies = [rng.random(side.shape) * side.legal for _ in range(2)]
    policies = [x / x.sum(axis=1, keepdims=True) for x in policies]
    both = policy_of(side, 0.3 * reach(side, policies[0]) + 0.7 * reach(side, policies[1]))
    values = [utilities(game, [x, game.uniform()[1]])[0] for x in (*policies, both)]
    assert values[2] == pytest.approx(0.3 * values[0] + 0.7 * values[1], abs=1e-12)
    assert policy_of(side, reach(side, policies[0])) == pytest.approx(policies[0], abs=1e-12)


def test_a_game_comes_back_from_its_data() -> None:
    game = load("goofspiel-4")
    again = from_data(json.loads(json.dumps(game.data())))
    assert gains(again, uneven(game)) == gains(game, uneven(game))


def test_who_forgets_is_refused() -> None:
    def rules(history: History) -> Chance | Decision | End:
        return End([0.0]) if len(history) == 2 else Decision(0, "always the same", (0, 1))

    with pytest.raises(ValueError, match="player 0 sees the same at  and 0, which differ for it"):
        build(rules, 1)


@pytest.mark.parametrize(
    ("name", "told"), [("chess", "unknown game"), ("leduc-9", "from 2 to 3"), ("kuhn-1", "2 to 5")]
)
def test_games_that_there_are_not(name: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        load(name)
