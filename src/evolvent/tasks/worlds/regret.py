"""Regret minimisation: the rules of a CFR variant, as a program, on games with hidden information.

    value = mean over games of -log10 max(exploitability of the average policies after K iterations, 0.01 / K)

Digits, not exploitabilities: these differ a hundredfold between games, and a mean of them would be that of the game
with the largest payoffs. (arXiv 2602.16928, section 3.4, takes minus the mean; it is the metric `exploitability`.)
Below 0.01 / K a game counts as solved, or it would outweigh the others. Searches without a model tend to give up
averaging for the last policies, which suits two of the games: look at the gate games before a program is believed. The
paper's rules, seed program (CFR+) and kinds of games, but Leduc poker is held out.

The loop runs beside the program in the sandbox; what comes back are the average policies, and their exploitability is
computed here. A program that reaches for the loop, or for anything but NumPy, is not run: it could iterate more often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from evolvent.games import regret, tree, values
from evolvent.games.tree import Game
from evolvent.guard.sandbox import Limits
from evolvent.tasks.base import Split
from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.program import World
from evolvent.tasks.worlds import games
from evolvent.tasks.worlds.sized import read_size

GAMES: Mapping[Split, tuple[str, ...]] = {
    "train": ("kuhn", "kuhn-3", "goofspiel-4", "liars-dice-4"),
    "gate": ("kuhn-4", "liars-dice-3"),
    "test": ("leduc", "goofspiel-5", "liars-dice-5"),
}
TOLERANCE = 1e-9  # of a row's sum; it is normalised here

GOAL = """Improve a variant of counterfactual regret minimisation: after {n} iterations its average policies should have
an exploitability as small as possible, in games that differ in size, number of players and payoffs. The three functions
are called for each player in each iteration t = 1 ... {n}, accumulate_policy first and policy_from_regret last, with
arrays of [information sets, actions]; where an information set has no such action there are zeros. r: instantaneous
counterfactual regrets of the current policy; regret: what accumulate_regret gave last; total: what accumulate_policy
gave last; reach: [information sets, 1], the player's own probability of getting there; memory: a dict of each function
and player, empty at first, that stays. They return an array like their first argument. The next policy is in proportion
to the positive weights, the average policy to what is positive of total. A program may compute with NumPy, and assign
to no attributes."""

SEED = '''"""The rules of a variant of counterfactual regret minimisation."""

import numpy as np


# EVOLVE-BLOCK-START
def accumulate_regret(regret, r, t, memory):
    """The cumulative regrets, with those of this iteration."""
    regret = regret + r
    regret = np.maximum(regret, 0.0)
    return regret


def policy_from_regret(regret, r, policy, t, memory):
    """The weights of the next policy."""
    weights = 1.0 * regret
    return weights


def accumulate_policy(total, policy, r, reach, t, memory):
    """The sum of policies, with that of this iteration."""
    weight = 1.0 * t
    total = total + weight * reach * policy
    return total
# EVOLVE-BLOCK-END
'''

COMPONENTS = (
    "regret = regret * t / (t + 1.0)",
    "regret = np.where(regret > 0, regret * t / (t + 1.0), 0.5 * regret)",
    "regret = np.maximum(regret, -5.0)",
    "r = np.where(r > 0, 1.5 * r, r)",
    "r = r * t",
    "size = np.abs(r).max(axis=1, keepdims=True)",
    "size = memory['size'] = 0.8 * memory.get('size', 0.0) + 0.2 * np.abs(r).max(axis=1, keepdims=True)",
    "regret = regret / (1.0 + 0.5 * size)",
    "weights = weights + r",
    "weights = weights + r / (1.0 + t / 50.0)",
    "weights = weights + r - memory.get('r', 0.0)",
    "memory['r'] = 1.0 * r",
    "weights = np.maximum(weights, 0.0) ** 2.0",
    "weights = 0.9 * weights / (1e-9 + weights.sum(axis=1, keepdims=True)) + 0.1 * policy",
    "weight = weight * t",
    "weight = weight * (t > 20)",
    "weight = weight / (1.0 + size)",
    "total = total * (t & (t - 1) != 0)",
    "t**1.5 / (t**1.5 + 1.0)",
    "np.maximum(regret, 0.0)",
    "np.abs(r).max(axis=1, keepdims=True)",
)

RUN = """
import numpy as np
from evolvent.games.regret import Rules, solve
from evolvent.games.tree import from_data


def refused(reason):
    return reason


def run(games, iterations):
    import program

    rules = Rules(program.accumulate_regret, program.policy_from_regret, program.accumulate_policy)
    with np.errstate(all="ignore"):
        return {name: solve(from_data(data), rules, iterations) for name, data in games.items()}
"""


@lru_cache(maxsize=1)
def beside() -> dict[str, str]:
    """The files that the program runs with."""
    return games.beside(RUN, regret, tree, values)


def read(game: Game, value: Any) -> list[np.ndarray] | str:
    """The policies of a game, normalised, or what is wrong with them."""
    if not isinstance(value, list) or len(value) != len(game.sides):
        return f"there should be policies of {len(game.sides)} players"
    found = []
    for side, rows in zip(game.sides, value, strict=True):
        try:
            policy = np.array(rows)
        except ValueError:
            policy = np.zeros(0)
        if policy.shape != side.shape or policy.dtype.kind not in "fi":
            return f"a policy should be numbers, {side.shape[0]} rows of {side.shape[1]}"
        policy = policy.astype(float)
        if not np.isfinite(policy).all() or (policy < 0).any() or policy[~side.legal].any():
            return "probabilities should be finite, not negative, and 0 where there is no action"
        sums = policy.sum(axis=1, keepdims=True)
        if np.abs(sums - 1).max() > TOLERANCE:
            return "the probabilities of an information set should sum to 1"
        found.append(policy / sums)
    return found


def judge(value: Any, names: Sequence[str], iterations: int) -> Evaluation:
    """The verdict on policies of the games after so many iterations."""
    return games.judge(value, "policies", read, names, iterations)


def world(size: str = "100") -> World:
    """The world of so many iterations. `UserError` for a number out of range."""
    n = read_size("regret", size, 1, 10_000, "iterations")
    return World(
        name=f"program:regret:{n}",
        goal=GOAL.format(n=n),
        seed=SEED,
        call=lambda text, names: games.call(beside(), text, names, n),
        judge=lambda value, names: judge(value, names, n),
        instances=GAMES,
        limits=Limits(seconds=10.0 + 0.1 * n, output=2**24),
        components=COMPONENTS,
    )
