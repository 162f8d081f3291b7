"""Auto research with specialists: each agent edits a part of a recipe, and all read one lineage of measured trials.

    trial       a hypothesis, an edit, and the evaluator's outcome: a value, or crash, over budget, size, gate, scope
    scopes      EVOLVE blocks, or functions and constants; an edit beyond its agent's is refused before it is evaluated
    blackboard  the best, the latest trials with edits and results, and edits that failed, in every prompt
    keep        parent' = child  iff  value(child) > value(parent) and all gates pass; else it is logged only
    follow-up   a second trial in the same run, if the first result asks for a concrete one

arXiv 2605.05724. Its controls: rollout.lineage=false; rollout.team=generic, as many agents as there are scopes, or with
rollout.agents=1 a single generalist. Without a model operators on syntax trees stay within the scopes, edits
that failed are not made again, and agents are drawn by what they have brought. Timings are on the blackboard where the
evaluator measures them. Gates on any metric: judge.gates.least.accuracy=0.9.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.admission import improved
from evolvent.search.gates import Gates
from evolvent.search.specialists import Specialists

DIGITS = {"task": "program:digits", "budget": "300 evaluations", "model": "none"}
BLIND = {"recipe": "auto-research-specialists", "rollout.lineage": False}
GENERIC = {"recipe": "auto-research-specialists", "rollout.team": "generic", "rollout.agents": 1}

auto_research_specialists = recipe(
    "auto-research-specialists",
    random_search,
    put("rollout", Specialists),
    put("rollout.write.kinds", {"diff": 1.0, "rewrite": 0.0, "cross": 0.0}),
    put("keep.admit", improved),
    wrap("judge", Gates),
    title="Auto Research with Specialist Agents Develops Effective and Non-Trivial Training Recipes",
    paper="arXiv 2605.05724",
    mechanism=claim(
        "Agents that read the lineage make fewer edits again that have failed before.",
        down("train.repeated", 0.005, "blind"),
        arms={"blind": BLIND},
        **DIGITS,
    ),
    outcome=claim(
        "At the same number of trials it ends with a better recipe than the same agents without lineage, and than a "
        "single generalist.",
        up("final.rescored", 0.01, "blind", "generalist"),
        arms={"blind": BLIND, "generalist": GENERIC},
        **DIGITS,
    ),
)
