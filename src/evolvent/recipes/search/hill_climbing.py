"""Hill climbing (baseline): every candidate is a variation of the best one so far.

child ~ operator(argmax value)
"""

from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.parents import elite

hill_climbing = recipe("hill-climbing", random_search, put("propose.parent", elite), title="Hill climbing (baseline)")
