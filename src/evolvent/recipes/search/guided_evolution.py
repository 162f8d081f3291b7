"""Guided Evolution: segments of a program evolve for two objectives, and learn from what made elites better.

    parents   NSGA-II: contests by dominance, then crowding, in (value, -parameters)
    crossing  one segment of both parents joined, with probability 0.35
    mutation  one segment rewritten, with probability 0.8; of these 0.25 taught by an elite of SPEA2 (Evolution of
              Thought): why is its segment better than the seed's, and what follows for the segment at hand?
    survival  the children, and the 44 that SPEA2 keeps of the population before them

arXiv 2403.11446, with the numbers of its code: 32 to begin with, then 8 a generation. The temperature of each answer is
drawn from (0.05, 0.4), with top_p = 0.1. Where there is no model operators on syntax trees take its place, and an
elite's change of a segment is carried over line by line. What is not valid is never a parent.
"""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.guided import Generations, GuidedRules
from evolvent.search.spea2 import spea2
from evolvent.search.thought import GuidedWrite

DIGITS = {"task": "program:digits", "budget": "600 evaluations", "model": "none"}
ARMS = {"without-thoughts": {"recipe": "guided-evolution", "rollout.mutate.thought": 0.0}}

guided_evolution = recipe(
    "guided-evolution",
    random_search,
    put("propose", Generations),
    put("rollout.write", GuidedWrite),
    put("rollout.mutate", GuidedRules),
    put("keep.admit", spea2),
    title="LLM Guided Evolution: The Automation of Models Advancing Models",
    paper="arXiv 2403.11446",
    mechanism=claim(
        "Elites teach mutations: some of the children have a change that made an elite better than the seed program.",
        up("train.taught", 0.05, "without-thoughts"),
        arms=ARMS,
        **DIGITS,
    ),
    outcome=claim(
        "Over the same number of trained candidates its best classifier is better than without Evolution of Thought "
        "and than with random edits.",
        up("area.best", 0.01, "without-thoughts", "random-search"),
        arms=ARMS,
        **DIGITS,
    ),
)
