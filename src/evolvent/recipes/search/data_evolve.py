"""DataEvolve: strategies that clean the documents of a category evolve, by what is found wrong with these.

    observe   issues of a sample of raw documents -> experience pool of the category
    design    one of the best strategies, what the judge said of it, the issues -> the next one
    clean     the new strategy on another sample
    judge     before and after, 1 to 10, with comments -> strategy pool; what is left or lost -> experience pool

arXiv 2603.14420: 30 generations for each category, apart from the others; the best strategy of each is applied to all
of it. There a strategy is a prompt that a model carries out, and observer, designer and judge are models; here it is a
function that runs, and the judge counts (`tasks/worlds/curation/judge.py`; that of the paper is a model's opinion).
With a model it observes and designs; without one statistics find issues, and rules make statements of them. The paper
observes 100 documents, cleans 500 and judges 50 of them; here it is 8 and 48, all of which are judged.
"""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.curation.loop import OneCategory, Strategies
from evolvent.search.curation.work import DesignByModel, DesignByRules

CURATION = {
    "task": "program:data-curation",
    "budget": "121 steps",
    "model": "none",
}  # the seed, and 30 for each category
BLIND = {"recipe": "data-evolve", "propose.observed": 0, "propose.learn": False, "rollout.mutate.directed": 0.0}
FIXED = {"recipe": "data-evolve", "propose.generations": 1, "rollout.mutate.fixed": True}

data_evolve = recipe(
    "data-evolve",
    random_search,
    put("propose", Strategies),
    put("rollout.write", DesignByModel),
    put("rollout.mutate", DesignByRules),
    wrap("judge", OneCategory),
    title="Data Darwinism Part II: DataEvolve - AI can Autonomously Evolve Pretraining Data Curation",
    paper="arXiv 2603.14420",
    mechanism=claim(
        "With an experience pool the strategies that later ones are made of have a higher score than without.",
        up("late.parent_score", 0.5, "without-experience"),
        arms={"without-experience": BLIND},
        **CURATION,
    ),
    outcome=claim(
        "At equal bytes of training a small model has a lower cross-entropy on clean text, in bits per byte, when its "
        "corpus is cleaned by strategies of generation 30 than as it is, by one filter for all categories, or by "
        "strategies of generation 1.",
        up("final.rescored", 0.05, "raw", "fixed-filter", "first-generation"),
        arms={
            "raw": {"recipe": "data-evolve", "propose.generations": 0},
            "fixed-filter": FIXED,
            "first-generation": {"recipe": "data-evolve", "propose.generations": 1},
        },
        **CURATION,
    ),
)
