"""HGM: who is built upon depends on how all of its descendants do; each evaluation of an instance is decided apart.

    expand if N^0.6 >= children:  argmax of theta ~ Beta(1 + S_clade, 1 + F_clade) over agents that solved something
    else evaluate one instance:   argmax of theta ~ Beta(1 + S_own, 1 + F_own) over agents with instances left
    final agent:                  argmax of the epsilon-quantile of Beta(1 + S_own, 1 + F_own)

arXiv 2510.21614. Its budget is in evaluations of instances, 800 there: `--budget "800 evaluations"`.
"""

from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.decoupled import ExpandOrEvaluate
from evolvent.search.diagnose import Diagnose
from evolvent.search.final import surest
from evolvent.search.parents import thompson_clade
from evolvent.search.selfmodify import SelfModify

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
)
