"""SE-Agent: attempts at a bug that learn of each other; each begins with a strategy made of those before it.

    base           an attempt that knows of no other
    revision       orthogonal to the latest failure: other operators, another entry point, another order
    recombination  of the two latest: what helped in either, and what neither has tried
    refinement     the most promising one again, without what has failed anywhere
    handed in      argmax of 0.8 completion + 0.1 quality + 0.1 efficiency, by visible tests alone

arXiv 2508.02085. The paper gives no weights and these are ours. Its plan is a list, here `propose.plan`; the released
code's entries also name a base configuration, which is left out. Where there is no model a scripted agent makes the
attempts (`tasks/worlds/repair/scripted.py`), and strategies are data that rules write.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.attempts.book import Book
from evolvent.search.attempts.plan import Iterations
from evolvent.search.attempts.work import Episodes, Scripted, Shown
from evolvent.search.final import latest

PATCHES = {"task": "program:patches:40", "budget": "160 evaluations", "model": "none"}
INDEPENDENT = {"independent": {"recipe": "se-agent", "propose.plan": "base,base,base,base"}}

se_agent = recipe(
    "se-agent",
    random_search,
    put("propose", Iterations),
    put("rollout.write", Episodes),
    put("rollout.mutate", Scripted),
    put("judge", Shown),
    put("keep", Book),
    put("keep.final", latest),
    title="SE-Agent: Self-Evolution Trajectory Optimization in Multi-Step Reasoning with LLM-Based Agents",
    paper="arXiv 2508.02085",
    mechanism=claim(
        "Attempts that read earlier ones make fewer changes that were made before.",
        down("train.repeated", 0.1, "independent"),
        arms=INDEPENDENT,
        **PATCHES,
    ),
    outcome=claim(
        "With as many attempts at each bug, one patch of which is handed in, it repairs more bugs than independent "
        "attempts, by hidden tests.",
        up("final.rescored", 0.05, "independent"),
        arms=INDEPENDENT,
        **PATCHES,
    ),
)
