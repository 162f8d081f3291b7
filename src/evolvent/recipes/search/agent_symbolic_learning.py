"""Agent symbolic learning: a pipeline of nodes is trained as a network is, with language in the place of numbers.

    forward    per node (input, prompt, tool calls, output) in a trajectory
    loss       a verdict on the answer, and what is required of the last node
    backward   from the last node to the first: (node, requirement) -> gradient, requirement for those before it
    step       pipeline, node and prompt optimizers, in turn; edits that make no sound pipeline are tried again, dropped
    gate       score(new, batch) < score(old, batch before)  and  score(old, batch) > score(new, batch): the old stays

arXiv 2406.18532. Only wrong answers have a loss here. Where there is no model, a scripted worker carries nodes out and
a critic reads their trajectories (`tasks/worlds/workflow`). Early stopping is off: `propose.threshold=0.9`,
`propose.flat=true`. The rollback gate is on; in the published code it has to be asked for.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.symbolic.optimize import Optimize
from evolvent.search.symbolic.train import Train, accepted
from evolvent.search.symbolic.write import WriteGradients
from evolvent.search.teams.judge import EvaluateTeams

TEAMS = {"task": "program:workflow:beta=0", "budget": "20000 calls", "model": "none"}
ARMS = {"last-prompt": {"recipe": "agent-symbolic-learning", "rollout.mutate.nodes": "last"}}

agent_symbolic_learning = recipe(
    "agent-symbolic-learning",
    random_search,
    put("propose", Train),
    put("rollout.write", WriteGradients),
    put("rollout.mutate", Optimize),
    put("judge", EvaluateTeams),
    put("keep.final", accepted),
    title="Symbolic Learning Enables Self-Evolving Agents",
    paper="arXiv 2406.18532",
    mechanism=claim(
        "Faults of early nodes are mended: fewer questions are answered wrong because of a node before the last.",
        down("late.early", 0.1, "last-prompt"),
        arms=ARMS,
        **TEAMS,
    ),
    outcome=claim(
        "At the same number of calls it ends at a higher held-out score than optimisation of the last prompt from "
        "output feedback.",
        up("final.rescored", 0.1, "last-prompt"),
        arms=ARMS,
        **TEAMS,
    ),
)
