"""VAD-CFR: regret minimisers evolved as code, each parent chosen by one of the games.

    f ~ uniform over the games and their mean,  p(parent) ~ rank by f ^ -alpha,  child = operator(parent)
    all valid candidates stay;  the result is the best by the mean over the games

arXiv 2602.16928, sections 3.1 and 3.4: the search behind the algorithms VAD-CFR and SHOR-PSRO, AlphaEvolve's with
several objectives. Its own rule for "in favour of high f" is not published; here it is the power law of ShinkaEvolve.
The edit is a model's, or with `--model none` that of an operator on syntax trees. Made for the worlds `program:regret`
and `program:meta-solver`; for any other one the instances take the place of the games. What the paper's search found is
in `evolvent.games.vad` and `evolvent.games.shor`.
"""

import numpy as np

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.candidate import Candidate
from evolvent.search.parents import Pool, drawn, instance_scores

REGRET = {"task": "program:regret:100", "budget": "160 evaluations", "model": "none"}


def one_objective(pool: Pool, rng: np.random.Generator, *, alpha: float = 1.0) -> Candidate:
    """p ~ rank^-alpha by one objective, drawn anew each time: the value, or that of an instance."""
    scores = instance_scores(pool)
    objectives = np.column_stack([pool.values, scores]) if scores.shape[1] > 1 else scores
    order = np.argsort(-objectives[:, int(rng.integers(objectives.shape[1]))], kind="stable")
    weights = np.empty(len(order))
    weights[order] = np.arange(1, len(order) + 1, dtype=float) ** -alpha
    return drawn(pool, weights, rng)


vad_cfr = recipe(
    "vad-cfr",
    random_search,
    put("propose.parent", one_objective),
    title="Discovering Multiagent Learning Algorithms with Large Language Models",
    paper="arXiv 2602.16928",
    mechanism=claim(
        "Parents are drawn by their rank, so that fewer members are better than the parent than with any parent.",
        down("train.parent_rank", 0.05, "random-search"),
        **REGRET,
    ),
    outcome=claim(
        "At the same number of evaluations its best regret minimiser is less exploitable on games held out of the "
        "search than those of random search and of hill climbing.",
        up("final.rescored", 0.05, "random-search", "hill-climbing"),
        **REGRET,
    ),
)
