"""Hill climbing (baseline): every candidate is a variation of the best one so far.

child ~ operator(argmax value)
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.parents import elite

TASK = "program:autocorrelation-2:20"

hill_climbing = recipe(
    "hill-climbing",
    random_search,
    put("propose.parent", elite),
    title="Hill climbing (baseline)",
    mechanism=claim(
        "Fewer members are better than the parents.",
        down("train.parent_rank", 0.05, "random-search"),
        task=TASK,
        budget="200 evaluations",
        model="none",
    ),
    outcome=claim(
        "It ends with better programs than search without selection.",
        up("final.rescored", 0.005, "random-search", "iid-sampling"),
        task=TASK,
        budget="200 evaluations",
        model="none",
    ),
)
