"""Execution-grounded research: every idea is carried out, and its measured result decides what is proposed next.

    epoch e     8 ideas, min(0.5 + 0.1 floor(e / 2), 0.8) of them exploit, the others explore
    exploit     10 drawn ideas that beat the baseline: combine them, or refine one
    explore     100 drawn ideas of all that were tried: something different
    execution   a diff of the seed program, up to 10 tries until one applies; an idea counts once, with its best result
    guard       results outside of the plausible range are dropped: judge.gates.most.value=0.99

arXiv 2601.14525, its evolutionary search; 80 or 200 ideas an epoch there, 10 epochs. Without a model an idea is a
change of the seed program, varied by operators on syntax trees; what is too similar to ideas that are known is varied
anew. The plausible range is the user's to say, and open without. The paper's other half, policy gradients for the model
that has the ideas, is `execution-grounded-rl`.
"""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.gates import Gates
from evolvent.search.ideas import Epochs, IdeaRules

DIGITS = {"task": "program:digits", "budget": "243 evaluations", "model": "none"}  # the seed program, 10 epochs of 8
ARMS = {"anything": {"recipe": "execution-grounded-research", "rollout.mutate.alike": 2.0}}

execution_grounded_research = recipe(
    "execution-grounded-research",
    random_search,
    put("propose", Epochs),
    put("rollout.mutate", IdeaRules),
    put("rollout.write.kinds", {"diff": 1.0, "rewrite": 0.0, "cross": 0.0}),
    put("rollout.write.attempts", 10),
    wrap("judge", Gates),
    title="Towards Execution-Grounded Automated AI Research",
    paper="arXiv 2601.14525",
    mechanism=claim(
        "Exploring ideas are further from those that were tried than ideas drawn without looking at these.",
        up("train.apart", 0.05, "anything"),
        arms=ARMS,
        **DIGITS,
    ),
    outcome=claim(
        "Over ten epochs the best classifier is better than that of as many independent ideas.",
        up("area.best", 0.03, "iid-sampling"),
        **DIGITS,
    ),
)
