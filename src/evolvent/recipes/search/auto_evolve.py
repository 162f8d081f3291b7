"""Auto-Evolve: a model makes reasoning modules and a structure of its own for each task, and refines it.

    GENERATE   modules, from a few unlabelled problems of the task; no list to select from
    IMPLEMENT  a structure: a JSON object of keyed steps
    REFINE     3 times, each with new problems: what is missing is added, steps become ones that can be carried out
    solve      every problem by filling the structure in

arXiv 2410.06328. The number of refinements is ours. Once per task, not per problem, and without looking at any value:
the structure that is handed in is the last one. Tasks are of reasoning-gym, not of BBH. Without a model a scripted
solver carries the steps out, modules are proposed by the words that they share with the examples, and a refinement is
the change of one step that makes more of it relevant and more examples be filled in. Self-Discover:
propose.source=fixed with propose.refinements=0; chain-of-thought: propose.source=none.
"""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.final import latest
from evolvent.search.structures.stages import Asked, ByRules, OncePerTask, Solved

REASONING = {"task": "program:structures", "budget": "24 evaluations", "model": "none"}  # the seed book, and 12 tasks

auto_evolve = recipe(
    "auto-evolve",
    random_search,
    put("propose", OncePerTask),
    put("rollout.write", Asked),
    put("rollout.mutate", ByRules),
    put("judge", Solved),
    put("keep.final", latest),
    title="Auto-Evolve: Enhancing Large Language Model's Performance via Self-Reasoning Framework",
    paper="arXiv 2410.06328",
    mechanism=claim(
        "Refined structures answer more problems of their task than those of a single shot.",
        up("train.solved", 0.15, "single-shot"),
        arms={"single-shot": {"recipe": "auto-evolve", "propose.refinements": 0}},
        **REASONING,
    ),
    outcome=claim(
        "At one filling-in per problem, structures of generated modules, refined, answer more new problems than those "
        "of a fixed list of modules, and than chain-of-thought.",
        up("final.rescored", 0.2, "self-discover", "chain-of-thought"),
        arms={
            "self-discover": {"recipe": "auto-evolve", "propose.source": "fixed", "propose.refinements": 0},
            "chain-of-thought": {"recipe": "auto-evolve", "propose.source": "none", "propose.refinements": 0},
        },
        **REASONING,
    ),
)
