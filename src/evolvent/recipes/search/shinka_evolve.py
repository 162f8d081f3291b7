"""ShinkaEvolve (arXiv 2509.19349): few samples, spent well.

    parent    w = sigmoid(10 (value - median) / MAD) / (1 + children), on one of 2 islands, archive of the best 40
    change    diff 0.6, rewrite 0.3, crossover 0.1; beside the parent inspirations, the best one last
    novelty   max likeness of what may change, the blocks, to that of the island's programs >= 0.99: varied anew, up to
              3 times, before it is evaluated, unless a model says that it does something else after all
    choice    asymmetric UCB over models, by gain over parent and seed program; over operators where there is no model
    notes     every 10 candidates: summaries, notes, recommendations for the next prompts

Cosines of character n-grams are in the place of embeddings, which rollout.write.novel=evolvent.search.embedded:Embedded
asks a service for. Without a model nobody is asked whether a similar program is new after all: it is rejected, as in
the published code where no such model is set. Members move every 10 candidates, the published interval; the published
share of them is 0, which leaves the islands apart, and here 0.1.
"""

from __future__ import annotations

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.choice import AsymmetricUCB
from evolvent.search.context import inspirations
from evolvent.search.islands import Islands, scatter
from evolvent.search.novelty import dissimilar
from evolvent.search.novelty_judge import NoveltyJudge
from evolvent.search.parents import weighted
from evolvent.search.scratchpad import Scratchpad

STEPS = {"task": "program:autocorrelation-2:20", "budget": "150 evaluations", "model": "none"}
UNREJECTED = {"recipe": "shinka-evolve", "rollout.mutate.novel.threshold": 2.0}  # no cosine is as high
PLAIN = {
    **UNREJECTED,
    "propose.parent": "evolvent.search.parents:uniform",
    "rollout.mutate.choice": "evolvent.search.choice:Uniform",
}

shinka_evolve = recipe(
    "shinka-evolve",
    random_search,
    put("propose.children", 1),
    put("propose.parent", weighted),
    put("propose.context", inspirations),
    put("rollout.write.novel", dissimilar),
    put("rollout.write.judge", NoveltyJudge),
    put("rollout.write.ensemble.choice", AsymmetricUCB),
    put("rollout.mutate.novel", dissimilar),
    put("rollout.mutate.choice", AsymmetricUCB),
    put("rollout.mutate.tries", 3),
    wrap("keep", Islands, count=2, every=5, migration=scatter, most=40),
    wrap("propose", Scratchpad),
    title="ShinkaEvolve",
    paper="arXiv 2509.19349",
    mechanism=claim(
        "Programs that are like others of the island are varied anew before they are evaluated.",
        up("train.rejected", 0.3, "unrejected"),
        arms={"unrejected": UNREJECTED},
        **STEPS,
    ),
    outcome=claim(
        "At the same number of evaluated programs it ends with a better one than with uniform parents, no rejection "
        "and operators drawn alike, and than OpenEvolve's rules.",
        up("final.rescored", 0.05, "plain", "openevolve"),
        arms={"plain": PLAIN},
        **STEPS,
    ),
)
