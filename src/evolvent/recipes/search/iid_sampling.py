"""Independent sampling (baseline): every candidate is a variation of the seed program.

    child ~ operator(seed program)

Repeated sampling without memory, which matches much of the field at equal budget (Simple Baselines are Competitive with
Code Evolution, arXiv 2602.16805).
"""

from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.parents import seed

iid_sampling = recipe(
    "iid-sampling", random_search, put("propose.parent", seed), title="Independent sampling (baseline)"
)
