"""Parent rules: which member of the archive is varied next. Each is a function of the members and a generator.

rule(pool, rng) -> Candidate
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from evolvent.core.ranges import Count, Nonnegative, Positive, Share
from evolvent.search.candidate import Candidate, ranked
from evolvent.search.magnitude import moderate
from evolvent.search.nsga2 import tournaments
from evolvent.search.objectives import ACCURATE_AND_SMALL, objectives, undominated, views_by
from evolvent.tasks.evaluation import INSTANCE


@dataclass(frozen=True)
class Pool:
    """What a rule chooses from: valid `members` (at least one), in the order in which they were made, and for each how
    many children it has, [members]; `first` is the seed program, `last` the candidate that was evaluated last, valid
    or not; `history` has all candidates by uid, for rules that follow lineages. One pool serves all draws of a step."""

    members: Sequence[Candidate]
    children: Float[np.ndarray, " members"]
    first: Candidate
    last: Candidate
    history: Sequence[Candidate] = ()

    @cached_property
    def values(self) -> Float[np.ndarray, " members"]:
        """Of the members."""
        return np.array([c.value for c in self.members])

    @cached_property
    def best(self) -> Candidate:
        """The best member, the first of equals."""
        return max(self.members, key=lambda c: c.merit)


ParentRule = Callable[[Pool, np.random.Generator], Candidate]


def drawn(pool: Pool, weights: Float[np.ndarray, " members"], rng: np.random.Generator) -> Candidate:
    """A member with a probability proportional to its weight; a uniform one where all weights are 0."""
    weights = moderate(weights)
    total = weights.sum()
    p = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    return pool.members[int(rng.choice(len(pool.members), p=p))]


def sigmoid(x: Float[np.ndarray, " members"]) -> Float[np.ndarray, " members"]:
    """1 / (1 + exp(-x)), never quite 0: who is far below is unlikely, and not impossible."""
    return 1 / (1 + np.exp(np.clip(-x, -500, 500)))


def uniform(pool: Pool, rng: np.random.Generator) -> Candidate:
    """Every member with the same probability."""
    return pool.members[int(rng.integers(len(pool.members)))]


def seed(pool: Pool, rng: np.random.Generator) -> Candidate:
    """Always the program that the user gave: independent samples."""
    return pool.first


def latest(pool: Pool, rng: np.random.Generator) -> Candidate:
    """The latest member: each sample is conditioned on the one before."""
    return max(pool.members, key=lambda c: c.uid)


def elite(pool: Pool, rng: np.random.Generator) -> Candidate:
    """The best member, the first of equals: greedy hill climbing."""
    return pool.best


def power_law(pool: Pool, rng: np.random.Generator, *, alpha: Nonnegative = 1.0) -> Candidate:
    """p(rank) ~ rank^-alpha, the best having rank 1 (ShinkaEvolve, arXiv 2509.19349)."""
    order = np.argsort(-pool.values, kind="stable")
    weights = np.empty(len(order))
    weights[order] = np.arange(1, len(order) + 1, dtype=float) ** -alpha
    return drawn(pool, weights, rng)


def weighted(pool: Pool, rng: np.random.Generator, *, sharpness: Nonnegative = 10.0) -> Candidate:
    """w = sigmoid(sharpness (value - median) / max(MAD, 1e-6)) / (1 + children) (ShinkaEvolve, arXiv 2509.19349)."""
    values = moderate(pool.values)
    median = np.median(values)
    scale = max(float(np.median(np.abs(values - median))), 1e-6)
    return drawn(pool, sigmoid(sharpness * (values - median) / scale) / (1 + pool.children), rng)


def boltzmann(pool: Pool, rng: np.random.Generator, *, temperature: Positive = 1.0) -> Candidate:
    """p ~ exp((value - best) / temperature)."""
    values = moderate(pool.values)
    return drawn(pool, np.exp((values - values.max()) / temperature), rng)


def mixed(pool: Pool, rng: np.random.Generator, *, explore: Share = 0.2, exploit: Share = 0.7) -> Candidate:
    """Uniform with probability `explore`, uniform among the best tenth with `exploit`, else ~ max(value, 0.001).

    OpenEvolve's rule, with the best tenth in the place of its archive.
    """
    u = rng.random()
    if u < explore:
        return uniform(pool, rng)
    if u < explore + exploit:
        best = ranked(pool.members)[: max(1, len(pool.members) // 10)]
        return best[int(rng.integers(len(best)))]
    return drawn(pool, np.maximum(pool.values, 0.001), rng)


def several(
    pool: Pool,
    rng: np.random.Generator,
    *,
    metrics: tuple[str, ...] = ("value", "simplicity"),
    rule: ParentRule = mixed,
) -> Candidate:
    """The `rule`'s choice by one of the `metrics`, drawn uniformly, in the place of the value (AlphaEvolve, arXiv
    2506.13131: programs that are good by different criteria). What nobody has is no objective yet."""
    views = views_by(pool.members, metrics)
    view = views[int(rng.integers(len(views)))] if len(views) > 1 else views[0]
    held = {c.uid: (c, children) for c, children in zip(pool.members, pool.children, strict=True)}
    chosen = rule(replace(pool, members=view, children=np.array([held[c.uid][1] for c in view])), rng)
    return held[chosen.uid][0]


def tournament(pool: Pool, rng: np.random.Generator, *, size: Count = 2) -> Candidate:
    """The best of `size` uniform draws with replacement, the first of equals.

    p(rank) = ((n - rank + 1)^size - (n - rank)^size) / n^size  (Goldberg and Deb, 1991).
    """
    drawn_ones = [uniform(pool, rng) for _ in range(size)]
    return max(drawn_ones, key=lambda c: c.merit)


def nsga2(pool: Pool, rng: np.random.Generator, *, metrics: tuple[str, ...] = ACCURATE_AND_SMALL) -> Candidate:
    """Of two members the one that dominates the other in the `metrics`, else the one that is less crowded in its front
    (NSGA-II, Deb et al., 2002)."""
    return pool.members[tournaments(objectives(pool.members, metrics), 1, rng)[0]]


def novel_sigmoid(
    pool: Pool, rng: np.random.Generator, *, sharpness: Nonnegative = 10.0, middle: float = 0.5
) -> Candidate:
    """p ~ sigmoid(sharpness (value - middle)) / (1 + children), for values from 0 to 1 (DGM, arXiv 2505.22954).

    All children count, also those that are not valid; the published code counts those in its archive only.
    """
    return drawn(pool, sigmoid(sharpness * (moderate(pool.values) - middle)) / (1 + pool.children), rng)


def thompson_clade(
    pool: Pool,
    rng: np.random.Generator,
    *,
    productive: bool = False,
    cool_down: Nonnegative = 0.0,
    budget: Positive = 800,
) -> Candidate:
    """argmax of theta ~ Beta(tau (1 + S), tau (1 + F)) with the successes and failures of the clade: the member and all
    its descendants by first parents (HGM, arXiv 2510.21614). tau = (B / (B - t))^cool_down after t of B evaluations.

    They are the metrics `successes` and `failures` of each evaluation, else the values of its instances. A candidate
    without these is one trial, a success if its value is above its parent's; the seed program then is none.
    `productive` leaves out members that never succeeded themselves, unless that is all of them. The evaluations of the
    seed program do not count as spent. The published code draws from at most `n_pseudo_descendant_evals` of a member's
    own evaluations, adds those of its descendants to its own for good where it has less, and leaves out one of them.
    """
    history = pool.history or pool.members
    counts = clade_counts(history)
    members = pool.members
    if productive:
        members = [c for c in pool.members if own_trials(c, None)[0] > 0] or members
    trials = np.array([counts[c.uid] for c in members])
    return members[int(np.argmax(thompson(trials, tempered(history, cool_down, budget), rng)))]


def thompson(trials: Float[np.ndarray, "members 2"], tau: float, rng: np.random.Generator) -> Float[np.ndarray, " m"]:
    """A draw for each member from Beta(tau (1 + S), tau (1 + F)); its trials are S and F."""
    return rng.beta(tau * (1 + trials[:, 0]), tau * (1 + trials[:, 1]))


MOST = 1e4  # tau once the budget is used up


def tempered(history: Sequence[Candidate], cool_down: float, budget: float) -> float:
    """HGM's tau: 1 without a cool-down, and the larger the less of the budget is left."""
    if not cool_down:
        return 1.0
    left = budget - spent(history)
    return min((budget / left) ** cool_down, MOST) if left > 0 else MOST


def spent(history: Sequence[Candidate]) -> float:
    """Trials of all candidates but the seed program."""
    return float(sum(sum(own_trials(c, None)) for c in history if c.parents))


def clade_counts(history: Sequence[Candidate]) -> dict[int, tuple[float, float]]:
    """Successes and failures of everybody's clade, by uid. Parents come before their children."""
    known = {c.uid: c for c in history}
    counts = {c.uid: own_trials(c, known.get(c.parents[0]) if c.parents else None) for c in history}
    for c in reversed(history):
        if c.parents and c.parents[0] in counts:
            successes, failures = counts[c.parents[0]]
            counts[c.parents[0]] = successes + counts[c.uid][0], failures + counts[c.uid][1]
    return counts


def own_trials(candidate: Candidate, parent: Candidate | None) -> tuple[float, float]:
    """Successes and failures of a candidate alone: those that it counted, else those of the instances it was evaluated
    on, whose values go from 0 to 1."""
    metrics, evaluation = candidate.evaluation.metrics, candidate.evaluation
    if "successes" in metrics and "failures" in metrics:
        return max(metrics["successes"], 0.0), max(metrics["failures"], 0.0)
    values = [value for name, value in metrics.items() if name.startswith(INSTANCE)]
    if values or not (metrics or evaluation.complete):  # the latter: it works, and was evaluated on nothing yet
        return float(sum(values)), float(len(values) - sum(values))
    if parent is None or any(name.startswith(INSTANCE) for name in parent.evaluation.metrics):
        return 0.0, 0.0  # of a world of instances, who never got to one
    return (1.0, 0.0) if candidate.value > parent.value else (0.0, 1.0)


def instance_pareto(pool: Pool, rng: np.random.Generator) -> Candidate:
    """p ~ number of instances where the member is best, without members that another one dominates (GEPA, arXiv
    2507.19457, algorithm 2).

    The values of instances are the metrics `instance/...`; who lacks one is not best there. Without any, the value is
    the only instance. Dominated is who has a rival at least as good in all instances and better in one; the published
    code also drops, from the worst mean up, who shares each instance where it is best with another one that is left.
    """
    return drawn(pool, pareto_weights(pool), rng)


def pareto_weights(pool: Pool) -> Float[np.ndarray, " members"]:
    """In how many instances each member is best; 0 for whom another one dominates."""
    scores = instance_scores(pool)
    best = np.isfinite(scores) & (scores == scores.max(axis=0))
    front = np.flatnonzero(best.any(axis=1))  # who is nowhere best is not drawn, and need not be looked at
    weights = np.zeros(len(scores))
    weights[front] = np.where(undominated(scores[front]), best[front].sum(axis=1), 0)
    return weights


def pareto_front(pool: Pool) -> list[Candidate]:
    """The members that `instance_pareto` may draw."""
    return [pool.members[i] for i in np.flatnonzero(pareto_weights(pool)).tolist()]


def instance_scores(pool: Pool) -> Float[np.ndarray, "members instances"]:
    """The value of each member in each instance; -inf where it has none."""
    metrics = [c.evaluation.metrics for c in pool.members]
    names = sorted({name for m in metrics for name in m if name.startswith(INSTANCE)})
    if not names:
        return pool.values[:, None]
    return np.array([[m.get(name, -np.inf) for name in names] for m in metrics])
