"""Choice between several models or operators, the arms, by what they have brought so far.

    arm = choice.choose(rng); ...; choice.update(arm, gain(value, parent's value, baseline), cost)

Several may be chosen before the first of them is updated.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import numpy as np
from jaxtyping import Float
from pydantic import Field

from evolvent.core.ranges import Nonnegative, Share
from evolvent.search.candidate import Candidate

Chances = Float[np.ndarray, " arms"]


class Choice(Protocol):
    """Which arm is next. `begin` says between which, and forgets everything."""

    arms: Sequence[str]

    def begin(self, arms: Sequence[str]) -> None: ...
    def choose(self, rng: np.random.Generator) -> str: ...
    def update(self, arm: str, reward: float, cost: float | None = None) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


def gain(value: float | None, parent: float, baseline: float = float("-inf")) -> float:
    """max(value - max(parent, baseline), 0), the reward of ShinkaEvolve; 0 for what is not valid.

    There the baseline is the value of the seed program, or 0 if that is not valid.
    """
    if value is None:
        return 0.0
    return min(max(value - max(parent, baseline), 0.0), sys.float_info.max)  # of huge values the difference is infinite


def outcomes(history: Sequence[Candidate], start: int) -> Iterator[tuple[Candidate, float]]:
    """Candidates from number `start` on that have a parent, with their gain over it and the seed program."""
    first = history[0].value if history and history[0].valid else 0.0
    for c in history[start:]:
        if c.parents:
            yield c, gain(c.evaluation.value, history[c.parents[0]].value, first)


@dataclass
class Uniform:
    """Every arm with the same probability, whatever comes of it."""

    arms: Sequence[str] = ()

    def begin(self, arms: Sequence[str]) -> None:
        """Between these."""
        self.arms = tuple(arms)

    def choose(self, rng: np.random.Generator) -> str:
        """Any arm."""
        return self.arms[int(rng.integers(len(self.arms)))]

    def update(self, arm: str, reward: float, cost: float | None = None) -> None:
        """Nothing is learned."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing."""


@dataclass
class Thompson:
    """argmax of theta ~ Beta(1 + S, 1 + F); a reward above 0 is a success, anything else a failure (Thompson, 1933).

        S, F <- decay S, decay F    of all arms, after each update

    ShinkaEvolve's code has a sampler with this decay. It counts rewards scaled to [0, 1] in the place of successes, and
    spreads a share epsilon over the arms that were not drawn.
    """

    arms: Sequence[str] = ()
    decay: Share = 0.95
    trials: Float[np.ndarray, "arms 2"] = field(init=False)  # successes and failures

    def __post_init__(self) -> None:
        self.trials = np.zeros((len(self.arms), 2))

    def begin(self, arms: Sequence[str]) -> None:
        """Between these, of which nothing is known."""
        self.arms = tuple(arms)
        self.__post_init__()

    def choose(self, rng: np.random.Generator) -> str:
        """The arm with the largest draw."""
        return self.arms[int(np.argmax(rng.beta(1 + self.trials[:, 0], 1 + self.trials[:, 1])))]

    def update(self, arm: str, reward: float, cost: float | None = None) -> None:
        """Count a success or a failure."""
        self.trials[self.arms.index(arm), 0 if reward > 0 else 1] += 1
        self.trials *= self.decay

    def state_dict(self) -> dict[str, Any]:
        """The counts."""
        return {"trials": self.trials.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.trials = np.array(state["trials"], float)


@dataclass
class AsymmetricUCB:
    """UCB1 on rewards that cannot be negative (ShinkaEvolve, arXiv 2509.19349, and its code, llm/prioritization.py).

        S_a <- S_a + exp(r) - 1,  W_a <- W_a + 1,  M <- max(M, exp(r) - 1)    with r = max(reward, 0)
        S <- faded(S),  W <- decay W of all arms,  M <- max(faded(M), max_a S_a / W_a)
        faded(x) = decay x / (1 + (1 - decay) x)
        score_a = (S_a / W_a) / M + c sqrt(2 ln t / n_a)

    S and M are kept as logarithms, so that r may be large; means are 0 before the first reward. n_a counts how often
    the arm was chosen, t is their sum and at least 2; neither decays. Arms that were not chosen yet come first. Then
    the best arm has probability 1 - epsilon, and the others share epsilon; all are alike where all scores are.

    With `frugality` k and costs, score_a <- (1 - k) score_a + k min_b L_b / L_a, where L_a is the mean cost less
    `cost_bonus` (highest - lowest cost) sqrt(2 ln t / its number of costs), and at least 1e-7. That is what the code's
    cost ratio comes to: the percentile that it is relative to cancels. Its runner has k = 0.5.
    """

    arms: Sequence[str] = ()
    c: Nonnegative = 1.0
    epsilon: Share = 0.2
    decay: Annotated[float, Field(gt=0, le=1)] = 0.95
    frugality: Share = 0.0
    cost_bonus: Nonnegative = 0.1
    chosen: Chances = field(init=False)
    updated: Chances = field(init=False)
    log_sum: Chances = field(init=False)
    weight: Chances = field(init=False)
    log_scale: float = field(default=-np.inf, init=False)
    costs: Float[np.ndarray, "arms 2"] = field(init=False)  # sum and number
    cost_range: Float[np.ndarray, " 2"] = field(init=False)  # lowest and highest

    def __post_init__(self) -> None:
        n = len(self.arms)
        self.chosen, self.updated, self.weight = np.zeros(n), np.zeros(n), np.zeros(n)
        self.log_sum, self.costs = np.full(n, -np.inf), np.zeros((n, 2))
        self.cost_range = np.array([np.inf, -np.inf])

    def begin(self, arms: Sequence[str]) -> None:
        """Between these, of which nothing is known."""
        self.arms = tuple(arms)
        self.__post_init__()

    def choose(self, rng: np.random.Generator) -> str:
        """An arm, which counts as tried from now on."""
        arm = int(rng.choice(len(self.arms), p=self.chances()))
        self.chosen[arm] += 1
        return self.arms[arm]

    def chances(self) -> Chances:
        """The probability of each arm."""
        tried = self.tried
        first = tried == 0
        if first.any():
            return first / first.sum()
        scores = self.scores()
        best = scores == scores.max()
        if best.all():
            return best / best.sum()
        return np.where(best, (1 - self.epsilon) / best.sum(), self.epsilon / (~best).sum())

    @property
    def tried(self) -> Chances:
        """How often each arm was tried: chosen, or updated without that."""
        return np.maximum(self.chosen, self.updated)

    def scores(self) -> Chances:
        """The upper bound of each arm; all must have been tried."""
        means = np.exp(self.log_means() - self.log_scale) if np.isfinite(self.log_scale) else np.zeros(len(self.arms))
        surprise = 2 * np.log(max(self.tried.sum(), 2.0))
        scores = means + self.c * np.sqrt(surprise / self.tried)
        if self.frugality and self.costs[:, 1].any():
            number = np.maximum(self.costs[:, 1], 1)
            low, high = self.cost_range
            bound = self.costs[:, 0] / number - self.cost_bonus * (high - low) * np.sqrt(surprise / number)
            bound = np.maximum(bound, 1e-7)
            scores = (1 - self.frugality) * scores + self.frugality * bound.min() / bound
        return scores

    def log_means(self) -> Chances:
        """log(S / W), -inf where there is nothing."""
        return self.log_sum - np.log(np.maximum(self.weight, 1e-7))

    def update(self, arm: str, reward: float, cost: float | None = None) -> None:
        """What a choice has brought, and perhaps what it has cost."""
        i, r = self.arms.index(arm), max(reward, 0.0)
        added = r + np.log(-np.expm1(-r)) if r > 0 else -np.inf  # log(exp(r) - 1)
        self.updated[i] += 1
        self.log_sum[i] = np.logaddexp(self.log_sum[i], added)
        self.weight[i] += 1
        self.log_sum = self.faded(self.log_sum)
        self.weight *= self.decay
        highest = self.faded(np.array([self.log_scale, added]))
        self.log_scale = float(np.concatenate([highest, self.log_means()]).max())
        if cost is not None:
            self.costs[i] += cost, 1
            self.cost_range = np.array([min(self.cost_range[0], cost), max(self.cost_range[1], cost)])

    def faded(self, log: Float[np.ndarray, " any"]) -> Float[np.ndarray, " any"]:
        """The decay of what is kept as a logarithm; what is large fades faster."""
        return log + np.log(self.decay) - np.logaddexp(0, log + np.log1p(-self.decay)) if self.decay < 1 else log

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next choice depends on."""
        return {"log_scale": np.array([self.log_scale]), **{name: getattr(self, name).copy() for name in COUNTS}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.log_scale = float(state["log_scale"][0])
        for name in COUNTS:
            setattr(self, name, np.array(state[name], float))


COUNTS = ("chosen", "updated", "log_sum", "weight", "costs", "cost_range")
