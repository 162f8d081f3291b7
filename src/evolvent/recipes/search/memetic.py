"""Memetic search (baseline): operators change a program's structure, an evolution strategy its numbers.

    with probability 1/2:  child = operator(best)
    else:                  sigma' = sigma exp(N(0, 1) / sqrt(2 d)),  all d numbers of the best move by sigma' N(0, I)

Hill climbing with a numeric optimiser. It needs no model; as a part of another search: `loongflow+memetic
--take propose.parent=loongflow`, since hill climbing puts a rule for parents, too.
"""

from evolvent.core.recipe import recipe, wrap
from evolvent.recipes.search.hill_climbing import hill_climbing
from evolvent.search.tune import Tune

memetic = recipe(
    "memetic",
    hill_climbing,
    wrap("rollout", Tune),
    title="Memetic search (baseline)",
)
