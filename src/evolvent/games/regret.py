"""Counterfactual regret minimisation with the three rules left open that its variants differ in.

    R_t   = accumulate_regret(R_(t-1), r_t, t, memory)
    w     = policy_from_regret(R_t, r_t, sigma_t, t, memory),  sigma_(t+1) ~ max(w, 0)
    S_t   = accumulate_policy(S_(t-1), sigma_t, r_t, reach_t, t, memory),  average policy ~ max(S_t, 0)

uniform where nothing is positive.

The interface that arXiv 2602.16928, listing 1, evolves, for all information sets of a player at once. All arrays are
[rows, width], rows being information sets; where a row has no such action there are zeros. r: instantaneous
counterfactual regrets; reach: [rows, 1], the player's own probability of getting there; t counts from 1; memory: a
dict of its own for each rule and player, which lasts for the run. Players take turns within an iteration (Burch et al.,
2019, section 2.3). This file is also put beside programs in the sandbox.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolvent.games.tree import Game, Side
from evolvent.games.values import reach, regrets

Memory = dict[str, Any]


@dataclass(frozen=True)
class Rules:
    """What a variant consists of."""

    accumulate_regret: Callable[[np.ndarray, np.ndarray, int, Memory], np.ndarray]
    policy_from_regret: Callable[[np.ndarray, np.ndarray, np.ndarray, int, Memory], np.ndarray]
    accumulate_policy: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, Memory], np.ndarray]


def matched(side: Side, weights: np.ndarray) -> np.ndarray:
    """The policy in proportion to what is positive, uniform where nothing is: regret matching (Hart and Mas-Colell)."""
    positive = np.where(side.legal, np.maximum(weights, 0.0), 0.0)
    total = positive.sum(axis=1, keepdims=True)
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), side.uniform())


class Minimiser:
    """A run of a variant on a game. `policies` are those of the next iteration."""

    def __init__(self, game: Game, rules: Rules) -> None:
        self.game, self.rules, self.t = game, rules, 0
        self.policies = game.uniform()
        self.regret = [np.zeros(side.shape) for side in game.sides]
        self.total = [np.zeros(side.shape) for side in game.sides]
        self._reaches = [reach(side, policy) for side, policy in zip(game.sides, self.policies, strict=True)]
        self._memory: list[tuple[Memory, Memory, Memory]] = [({}, {}, {}) for _ in game.sides]

    def step(self) -> None:
        """One iteration: each player in turn. ValueError where a rule gives no finite array of the right shape."""
        self.t += 1
        rules, t = self.rules, self.t
        for p, side in enumerate(self.game.sides):
            sigma, (first, second, third) = self.policies[p], self._memory[p]
            own = self._reaches[p][side.parent][:, None]
            r = regrets(self.game, p, self.policies, self._reaches)
            total = rules.accumulate_policy(self.total[p], sigma.copy(), r.copy(), own, t, third)
            self.total[p] = self._read(total, side, "accumulate_policy")
            total = rules.accumulate_regret(self.regret[p], r.copy(), t, first)
            self.regret[p] = self._read(total, side, "accumulate_regret")
            weights = rules.policy_from_regret(self.regret[p].copy(), r, sigma.copy(), t, second)
            self.policies[p] = matched(side, self._read(weights, side, "policy_from_regret"))
            self._reaches[p] = reach(side, self.policies[p])

    def average(self) -> list[np.ndarray]:
        """The average policy of everybody."""
        return [matched(side, total) for side, total in zip(self.game.sides, self.total, strict=True)]

    def _read(self, found: Any, side: Side, name: str) -> np.ndarray:
        array = np.asarray(found, float)
        if array.shape != side.shape:
            raise ValueError(
                f"{name} gave {array.shape} in iteration {self.t}, not {side.shape}, as its first argument"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} gave numbers in iteration {self.t} that are not finite")
        return array


def solve(game: Game, rules: Rules, iterations: int) -> list[np.ndarray]:
    """The average policies after so many iterations."""
    run = Minimiser(game, rules)
    for _ in range(iterations):
        run.step()
    return run.average()
