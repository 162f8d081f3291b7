"""Populations of policies: the two meta-strategy solvers of PSRO, as a program, on games with hidden information.

    value = mean over games of -log10 max(exploitability of the last mixtures after K iterations, 0.01 / K)

Digits, and solved below 0.01 / K, as in `regret` and for its reasons: with exact responses a small game can be solved
exactly, long before iteration K. (arXiv 2602.16928, section 3.4, takes minus the mean; it is the metric
`exploitability`.) The paper's pair of solvers (listing 2), exact responses and seed program (section 4.3: uniform
mixtures; here by a rate of 0, which operators can raise), but K = 20 instead of 100, and policies are known by their
payoffs alone: neither the game nor the policies are handed out. Of the paper's games for the search Leduc poker is held
out, and Liar's dice has 4 sides instead of 5. Where an equilibrium is pure, as with 3 sides, the last policies alone
may solve a game, and fail in others: no such game is searched on.

The loop runs beside the program in the sandbox. What comes back is what the solvers gave, and PSRO is done again with
it here: whatever a program does to the loop, the policies that are judged are best responses to its own mixtures, one a
player and iteration, from the uniform policy on. What would let it look into the loop is not run all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from evolvent.games import population, tree, values
from evolvent.games.meta import Mixtures
from evolvent.games.tree import Game
from evolvent.guard.sandbox import Limits
from evolvent.tasks.base import Split
from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.program import World
from evolvent.tasks.worlds import games
from evolvent.tasks.worlds.sized import read_size

GAMES: Mapping[Split, tuple[str, ...]] = {
    "train": ("kuhn-3", "goofspiel-4", "liars-dice-4"),
    "gate": ("kuhn", "liars-dice-3"),
    "test": ("leduc", "goofspiel-5", "liars-dice-5"),
}
TRAIN, EVAL = "train_meta_strategy", "eval_meta_strategy"

GOAL = """Improve the two meta-strategy solvers of policy-space response oracles (PSRO): after {n} iterations the last
mixtures of policies should have an exploitability as small as possible, in games that differ in size, number of players
and payoffs. In each iteration t = 1 ... {n} every player gets one policy more, an exact best response to the others'
mixtures by train_meta_strategy; the first policy is uniform. Then eval_meta_strategy is called once, with t = {n}: the
exploitability of its mixtures in the whole game counts. weights: 1 for every policy, [players, policies], oldest first;
payoffs: [players, policies of player 0, policies of player 1, ...], what a player gets where all play these; memory: a
dict of each game, empty at first, that both see. They return an array like their first argument: weights in proportion
to which players mix their policies, not negative and not all 0. A program may compute with NumPy, and assign to no
attributes."""

SEED = '''"""Meta-strategy solvers: what populations of policies are to be mixed by."""

import numpy as np


def worth(payoffs, weights):
    """What each policy can expect where the others mix in proportion to their weights, [players, policies]."""
    shares = weights / weights.sum(axis=1, keepdims=True)
    found = []
    for player, payoff in enumerate(payoffs):
        for other in reversed(range(len(payoffs))):
            if other != player:
                payoff = payoff.swapaxes(other, -1) @ shares[other]
        found.append(payoff)
    return np.array(found)


# EVOLVE-BLOCK-START
def train_meta_strategy(weights, payoffs, t, n, memory):
    """The weights of the mixtures that the next policies are best responses to."""
    rate = 0.0
    for i in range(20):
        u = worth(payoffs, weights)
        weights = weights * np.exp(rate * u)
    return weights


def eval_meta_strategy(weights, payoffs, t, n, memory):
    """The weights of the mixtures whose exploitability counts."""
    rate = 0.0
    for i in range(20):
        u = worth(payoffs, weights)
        weights = weights * np.exp(rate * u)
    return weights
# EVOLVE-BLOCK-END
'''

COMPONENTS = (
    "rate = 0.5 * (1.0 - t / n) + 0.01",
    "u = worth(payoffs, weights)",
    "u = u - u.mean(axis=1, keepdims=True)",
    "u = u - np.average(u, axis=1, weights=weights)[:, None]",
    "u = u / (1e-9 + np.abs(u).max())",
    "weights = weights + 1.0 * (u >= u.max(axis=1, keepdims=True))",
    "weights = weights + i * (u >= u.max(axis=1, keepdims=True))",
    "weights = np.maximum(weights + u, 1e-9)",
    "weights = np.maximum(weights + u - np.average(u, axis=1, weights=weights)[:, None], 1e-9)",
    "weights = weights * np.exp((u - u.max(axis=1, keepdims=True)) / 0.1)",
    "weights = weights / weights.sum(axis=1, keepdims=True)",
    "weights = 0.9 * weights / weights.sum(axis=1, keepdims=True) + 0.1 / weights.shape[1]",
    "weights = weights * np.arange(1, weights.shape[1] + 1) ** 2.0",
    "weights = weights**2.0",
    "weights[:, 0] = 1e-9",
    "weights[:, -1] += 1.0",
    "weights[:, :-1] += 0.5 * memory.get('weights', 0.0)",
    "memory['weights'] = weights.copy()",
    "for i in range(100):\n"
    "    u = worth(payoffs, weights)\n"
    "    weights = weights + 1.0 * (u >= u.max(axis=1, keepdims=True))",
    "for i in range(100):\n"
    "    u = worth(payoffs, weights)\n"
    "    weights = np.maximum(weights + u - np.average(u, axis=1, weights=weights)[:, None], 1e-9)",
    "t / n",
    "worth(payoffs, weights)",
    "np.exp(u - u.max(axis=1, keepdims=True))",
    "u >= u.max(axis=1, keepdims=True)",
    "np.arange(1, weights.shape[1] + 1)",
)

RUN = f"""
import numpy as np
from evolvent.games.population import payoffs, psro
from evolvent.games.tree import from_data


class Unfit(Exception):
    pass


def refused(reason):
    return reason


def given(game, program, iterations):
    found, memory = [], {{}}

    def ask(solver, tables, t):
        tables = np.array(tables)
        answer = solver(np.ones(tables.shape[:2]), tables.copy(), t, iterations, memory)
        try:
            weights = np.array(answer, float)
        except (TypeError, ValueError):
            weights = np.zeros(0)
        found.append(weights)
        if weights.shape != tables.shape[:2]:
            raise Unfit
        sums = weights.sum(axis=1, keepdims=True)
        if not (weights >= 0).all() or not (sums > 0).all() or not np.isfinite(sums).all():
            raise Unfit
        return list(weights / sums)

    try:
        *_, grown = psro(game, lambda tables, asked: ask(program.{TRAIN}, tables, asked + 1), iterations)
        ask(program.{EVAL}, payoffs(game, grown), iterations)
    except Unfit:
        pass
    return found


def run(games, iterations):
    import program

    with np.errstate(all="ignore"):
        return {{name: given(from_data(data), program, iterations) for name, data in games.items()}}
"""


@lru_cache(maxsize=1)
def beside() -> dict[str, str]:
    """The files that the program runs with. Of `games.meta` the loop needs names of types, and no linear programs."""
    types = {"evolvent/games/meta.py": "MetaSolver = Mixtures = object\n"}
    return {**types, **games.beside(RUN, population, tree, values)}


def read(value: Any, shape: tuple[int, int]) -> Mixtures | str:
    """The mixtures of players with so many policies, [players, policies], or what is wrong with the weights."""
    try:
        weights = np.array(value)
    except ValueError:
        weights = np.zeros(0)
    if weights.shape != shape or weights.dtype.kind not in "fi":
        return f"there should be numbers, {shape[0]} rows of {shape[1]}"
    if not np.isfinite(weights).all() or (weights < 0).any():
        return "weights should be finite and not negative"
    sums = weights.sum(axis=1, keepdims=True)
    if not (sums > 0).all() or not np.isfinite(sums).all():
        return "the weights of a player should have a finite sum above 0"
    return list(weights / sums)


def replayed(game: Game, value: Any, iterations: int) -> list[np.ndarray] | str:
    """The policies in the end of PSRO with such weights, iteration by iteration, or what is wrong with these."""
    if not isinstance(value, list) or not value:
        return f"there should be weights of {iterations} iterations and of the end"
    populations = [values.reach(side, side.uniform())[None] for side in game.sides]
    for t, weights in enumerate(value[: iterations + 1], 1):
        mixtures = read(weights, (len(game.sides), t))
        if isinstance(mixtures, str):
            return f"{EVAL}: {mixtures}" if t > iterations else f"{TRAIN} in iteration {t}: {mixtures}"
        reaches = population.mixed(populations, mixtures)
        if t <= iterations:
            found = [values.best_response(game, p, reaches) for p in range(len(game.sides))]
            populations = [
                np.vstack([xs, values.reach(side, policy)])
                for xs, side, policy in zip(populations, game.sides, found, strict=True)
            ]
    if len(value) != iterations + 1:
        return f"there should be weights of {iterations} iterations and of the end, not {len(value)}"
    return population.profile(game, reaches)


def judge(value: Any, names: Sequence[str], iterations: int) -> Evaluation:
    """The verdict on the weights that two solvers gave in each iteration on games."""
    return games.judge(value, "weights", lambda game, given: replayed(game, given, iterations), names, iterations)


def world(size: str = "20") -> World:
    """The world of so many iterations. `UserError` for a number out of range."""
    n = read_size("meta-solver", size, 1, 100, "iterations")
    return World(
        name=f"program:meta-solver:{n}",
        goal=GOAL.format(n=n),
        seed=SEED,
        call=lambda text, names: games.call(beside(), text, names, n),
        judge=lambda value, names: judge(value, names, n),
        instances=GAMES,
        limits=Limits(seconds=20.0 + 2.0 * n, output=2**24),
        components=COMPONENTS,
    )
