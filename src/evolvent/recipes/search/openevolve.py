"""OpenEvolve's rules (the open implementation of AlphaEvolve's loop): islands of MAP-Elites grids, changed by diffs.

    island = step mod 5;  parent: uniform 0.2, of the best tenth 0.7, ~ max(value, 0.001) 0.1
    beside it the 3 best and 2 others of the island;  place = cell of (length, diversity) in 10 x 10
    every 50 candidates of an island its best tenth goes to both neighbours
    evaluator's stages: 0.5, 0.75, 0.9

Version 0.4 of the code, with its default settings. Its archive of 100 programs is the best tenth here; its population
limit of 1,000 is left out; what its prompts hold of earlier attempts and artifacts is the value and the feedback.
"""

from __future__ import annotations

from collections.abc import Mapping

from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.admission import map_elites
from evolvent.search.context import best_and_random
from evolvent.search.islands import Islands
from evolvent.search.parents import mixed
from evolvent.search.stages import above

DIFFS: Mapping[str, float] = {"diff": 1.0, "rewrite": 0.0, "cross": 0.0}

openevolve = recipe(
    "openevolve",
    random_search,
    put("propose.children", 1),
    put("propose.parent", mixed),
    put("propose.context", best_and_random),
    put("propose.context.best", 3),
    put("propose.context.others", 2),
    put("rollout.write.kinds", DIFFS),
    put("judge.promote", above),
    put("keep.admit", map_elites),
    wrap("keep", Islands, count=5, every=50),
    title="OpenEvolve's rules (baseline)",
)
