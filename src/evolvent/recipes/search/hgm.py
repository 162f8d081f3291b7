"""HGM: who is built upon depends on how all of its descendants do; each evaluation of an instance is decided apart.

    expand if N^0.6 >= children:  argmax of theta ~ Beta(1 + S_clade, 1 + F_clade) over agents that solved something
    else evaluate one instance:   argmax of theta ~ Beta(1 + S_own, 1 + F_own) over agents with instances left
    final agent:                  argmax of the epsilon-quantile of Beta(1 + S_own, 1 + F_own)

arXiv 2510.21614. Its budget is in evaluations of instances, 800 there: `--budget "800 evaluations"`.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.decoupled import ExpandOrEvaluate
from evolvent.search.diagnose import Diagnose
from evolvent.search.final import surest
from evolvent.search.parents import thompson_clade
from evolvent.search.selfmodify import SelfModify

TASK = "program:repair:30"
OWN = {"recipe": "hgm", "propose.parent": "evolvent.search.parents:novel_sigmoid"}
GREEDY = {  # nearly always the highest value of its own; `elite` prefers whoever has been evaluated on everything
    "recipe": "hgm",
    "propose.parent": "evolvent.search.parents:boltzmann",
    "propose.parent.temperature": 0.02,
}

hgm = recipe(
    "hgm",
    random_search,
    put("propose", ExpandOrEvaluate),
    put("propose.parent", thompson_clade, productive=True),
    put("rollout.mutate", SelfModify),
    put("rollout.write", Diagnose),
    put("judge.at_once", 0),
    put("keep.final", surest),
    title="Huxley-Gödel Machine: Human-Level Coding Agent Development by an Approximation of the Optimal "
    "Self-Improving Machine",
    paper="arXiv 2510.21614",
    mechanism=claim(
        "Who has a child comes of a clade that fewer of the others do better than.",
        down("train.clade_rank", 0.02, "own"),
        task=TASK,
        budget="600 evaluations",
        model="none",
        arms={"own": OWN},
    ),
    outcome=claim(
        "It ends with a better agent than parents by their own score, as in DGM, or the best one as the parent.",
        up("final.rescored", 0.03, "own", "greedy"),
        task=TASK,
        budget="600 evaluations",
        model="none",
        arms={"own": OWN, "greedy": GREEDY},
    ),
)
