"""LoongFlow (arXiv 2512.24077): plan, execute, summarise, over islands with grids and an adaptive temperature.

    plan       the model reads the parent, its ancestors and their lessons, and writes a plan
    execute    a program for that plan, tried and mended up to 3 times
    summarise  result against plan: a lesson that stays with the candidate, for later plans
    parent     p ~ exp((value - best) / T) among 3 of the 50 best of all islands and 2 others of the own one, or anybody
               there with 0.2;  T follows the diversity
    place      cells of (length, diversity, value), 4 each; 3 islands; every 10 candidates of each the best fifth goes
               to its neighbours

With `--model none` operators take the model's place, and there are no plans and no lessons. The numbers are those of
the published code; its agents' tool use within plan, execution and summary is one request each here.
"""

from __future__ import annotations

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.admission import map_elites
from evolvent.search.context import best_and_random
from evolvent.search.islands import Islands
from evolvent.search.lessons import Plans
from evolvent.search.temperature import adaptive_boltzmann
from evolvent.search.tested import Tested

STEPS = {"task": "program:autocorrelation-2:20", "budget": "200 evaluations", "model": "none"}
UNMENDED = {"recipe": "loongflow", "rollout.tested.rounds": 1}
FLAT = {"recipe": "loongflow", "propose.parent": "evolvent.search.parents:boltzmann"}

loongflow = recipe(
    "loongflow",
    random_search,
    put("propose.children", 1),
    put("propose.parent", adaptive_boltzmann),
    put("propose.context", best_and_random),
    put("keep.admit", map_elites),
    put("keep.admit.dimensions", ("complexity", "diversity", "value")),
    put("keep.admit.bins", 4),
    wrap("keep", Islands, count=3, every=10),
    put("keep.islands.migration.share", 0.2),
    wrap("propose", Plans),
    wrap("rollout", Tested),
    title="LoongFlow",
    paper="arXiv 2512.24077",
    mechanism=claim(
        "Programs that fail are mended before they are handed in: more of the candidates are valid.",
        up("share.valid", 0.1, "unmended"),
        arms={"unmended": UNMENDED},
        **STEPS,
    ),
    outcome=claim(
        "Over the same number of evaluations its best program is better than with OpenEvolve's rules, and than with "
        "the temperature 1 instead of one that follows the diversity.",
        up("area.best", 0.02, "openevolve", "flat"),
        arms={"flat": FLAT},
        **STEPS,
    ),
)
