"""GEPA's rules: parents by Pareto fronts over instances, a child is tried on three of them first, and merges.

    parent   p ~ number of instances where the member is best, if nobody dominates it
    child    the model reflects on the parent's values on a minibatch of 3 instances, and changes one segment in turn
    accept   sum over the minibatch is higher than the parent's; then it is evaluated on all instances, and a member
    merge    after a child was accepted, up to 5 in all: of two members of the front each segment from who changed it

arXiv 2507.19457. What is a prompt of a module there is an EVOLVE block here, in a program or among texts
(`--task texts:FILE.py`, also with GEPA's adapters). Without a model operators on syntax trees vary the segment. What a
model reads are values, and what was said of the examples: traces, where an adapter makes a reflective data set.
Minibatches and fronts are of the same instances, those of the split train; GEPA takes two sets. No other minibatch is
drawn for a merge's parents.
"""

from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.admission import complete
from evolvent.search.merge import Merging
from evolvent.search.minibatch import Accept, OneSegment, Reflective

gepa = recipe(
    "gepa",
    random_search,
    put("propose", Reflective),
    put("rollout.mutate", OneSegment),
    put("rollout.write.kinds", {"diff": 0.0, "rewrite": 1.0, "cross": 0.0}),
    wrap("rollout", Merging),
    wrap("judge", Accept),
    put("keep.admit", complete),
    title="GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning (its rules, for programs)",
    paper="arXiv 2507.19457",
)
