"""AlphaEvolve (arXiv 2506.13131): a program database of islands and grids, several models, staged evaluation.

    parent:  exploration and exploitation mixed, on the island whose turn it is; beside it earlier programs with values
    change:  diffs and now and then rewrites by a fast model 0.8 or a strong one 0.2; how the prompt opens is drawn, too
    instructions for the models are evolved as well, in an archive of their own
    stages:  what is not promising on the cheap tests does not get the expensive ones
    place:   the best of each cell of length and diversity, once for each objective
    objectives: the value, and how simple a model finds the program

`propose.parent.metrics` and `keep.admit.metrics` name other objectives: metrics of the evaluator, or `-size`. The paper
leaves numbers open; those of islands, grid and parents are OpenEvolve's. With `--model none` operators on syntax trees
take the models' place, and there is nobody to instruct, and nobody to have an opinion. A second model is one more
setting:
`--model openai:FAST --set rollout.write.ensemble.models=openai:STRONG --set rollout.write.ensemble.shares=0.8,0.2`.
"""

from __future__ import annotations

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.openevolve import openevolve
from evolvent.search import admission, parents
from evolvent.search.instructions import Instructions
from evolvent.search.opinion import Opinion

KINDS = {"diff": 0.8, "rewrite": 0.2, "cross": 0.0}

DIGITS = {"task": "program:digits", "budget": "300 evaluations", "model": "none"}
ONE = {"recipe": "alphaevolve", "keep.islands.count": 1, "keep.admit": "evolvent.search.admission:keep_all"}
UNIFORM = {"recipe": "alphaevolve", "propose.parent": "evolvent.search.parents:uniform"}

alphaevolve = recipe(
    "alphaevolve",
    openevolve,
    put("rollout.write.kinds", KINDS),
    put("rollout.write.openings", 4),
    put("propose.parent", parents.several),
    put("keep.admit", admission.several),
    wrap("propose", Instructions),
    wrap("judge", Opinion),
    title="AlphaEvolve",
    paper="arXiv 2506.13131",
    mechanism=claim(
        "Parents are drawn by a mix: not only the best, as in hill climbing, and better ones than by chance.",
        up("train.parent_rank", 0.02, "hill-climbing"),
        down("train.parent_rank", 0.05, "uniform"),
        arms={"uniform": UNIFORM},
        **DIGITS,
    ),
    outcome=claim(
        "At the same number of evaluated programs it ends with a better one than independent changes of the seed "
        "program, than hill climbing, and than one island without a grid.",
        up("final.rescored", 0.03, "iid-sampling", "hill-climbing", "one"),
        arms={"one": ONE},
        **DIGITS,
    ),
)
