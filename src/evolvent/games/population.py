"""Policy-space response oracles (PSRO): a population of policies for each player, grown by exact best responses.

    phi = train(payoffs of all pairs of policies);  each player adds a best response to the others' mixtures phi
    exploitability of evaluate(payoffs)

Lanctot et al., arXiv 1711.00832; payoffs and responses are exact, as in arXiv 2602.16928, section 2.3: a response takes
all best actions alike. The first policy of everybody is uniform.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evolvent.games.meta import MetaSolver, Mixtures
from evolvent.games.tree import Game
from evolvent.games.values import best_response, exploitability, policy_of, reach

Populations = list[np.ndarray]  # for each player the reach of its policies, [policies, rows * width + 1]


def payoffs(game: Game, populations: Populations) -> list[np.ndarray]:
    """Expected utilities of all combinations of policies, for each player [policies of 0, policies of 1, ...]."""
    at_ends = [xs[:, side.sequence] for xs, side in zip(populations, game.sides, strict=True)]
    axes = "abcdefgh"[: len(at_ends)]
    form = ",".join(f"{axis}z" for axis in axes) + f",z->{axes}"
    return [np.einsum(form, *at_ends, side.payoff, optimize=True) for side in game.sides]


def mixed(populations: Populations, mixtures: Mixtures) -> list[np.ndarray]:
    """The reach of everybody's mixture."""
    return [x @ xs for x, xs in zip(mixtures, populations, strict=True)]


def profile(game: Game, reaches: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The policies with such reaches."""
    return [policy_of(side, x) for side, x in zip(game.sides, reaches, strict=True)]


def psro(game: Game, train: MetaSolver, iterations: int) -> Iterator[Populations]:
    """The populations after each iteration; each has one policy more a player."""
    populations = [reach(side, side.uniform())[None] for side in game.sides]
    for asked in range(iterations):
        reaches = mixed(populations, train(payoffs(game, populations), asked))
        found = [best_response(game, p, reaches) for p in range(len(game.sides))]
        populations = [
            np.vstack([xs, reach(side, policy)])
            for xs, side, policy in zip(populations, game.sides, found, strict=True)
        ]
        yield populations


def exploitability_of(game: Game, populations: Populations, evaluate: MetaSolver) -> float:
    """Of the mixtures that `evaluate` makes of populations."""
    asked = len(populations[0]) - 1
    return exploitability(game, profile(game, mixed(populations, evaluate(payoffs(game, populations), asked))))
