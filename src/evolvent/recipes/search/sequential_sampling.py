"""Sequential sampling (baseline): every candidate is a variation of the latest valid one.

    child_t ~ operator(child_{t-1})

A chain that looks at what came before and never selects (the sequential conditioned sampling of arXiv 2602.16805).
One child a step, so that each is made from the one before.
"""

from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.parents import latest

sequential_sampling = recipe(
    "sequential-sampling",
    random_search,
    put("propose.parent", latest),
    put("propose.children", 1),
    title="Sequential sampling (baseline)",
)
