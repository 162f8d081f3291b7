"""EvoMAS: teams of agents as configurations that evolve, task by task, by what their trajectories show.

    genome     C = (G, {A_i}, v_in, v_out), G acyclic, A_i = (backbone, prompt, tools); JSON: all can be executed
    fitness    R(q, C) = right(q, C) - beta cost(C)
    mutation   one component: prompt, backbone, tools or topology, chosen from the execution trace
    crossover  topology of one parent, attributes of the agents of both, by the traces of both
    a task     SELECT seeds from the pool -> generations of execute, mutate or cross -> the best goes back to the pool
    memory     (task, best team, lesson) of each task; later operators read it

arXiv 2602.06511. The numbers of seeds, generations and children are ours. A task is here one kind of question, and what
a team is worth in the end is its value on all kinds. Where there is no model, a scripted worker carries nodes out
(`tasks/worlds/workflow/scripted.py`), a critic reads the traces, and rules stand for the meta-model.
"""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.admission import complete
from evolvent.search.teams.evolve import Tasks
from evolvent.search.teams.judge import EvaluateTeams
from evolvent.search.teams.variation import EditTeams
from evolvent.search.teams.write import WriteTeams

TEAMS = {"task": "program:workflow", "budget": "3000 evaluations", "model": "none"}
BLIND = {"rollout.mutate.traced": False, "propose.crossover": 0.0, "propose.memory.recall": 0.0}
ARMS = {
    "mutation-only": {"recipe": "evomas", **BLIND},
    "best-seed": {"recipe": "evomas", "propose.generations": 0},
}

evomas = recipe(
    "evomas",
    random_search,
    put("propose", Tasks),
    put("rollout.write", WriteTeams),
    put("rollout.mutate", EditTeams),
    put("judge", EvaluateTeams),
    put("keep.admit", complete),
    title="EvoMAS: Evolutionary Generation of Multi-Agent Systems",
    paper="arXiv 2602.06511",
    mechanism=claim(
        "At the end of a task its best team is further above the seeds than with mutation alone, without traces.",
        up("train.gain", 0.005, "mutation-only"),
        arms=ARMS,
        **TEAMS,
    ),
    outcome=claim(
        "At the same number of executions it finds a team of more success less cost than mutation alone, without "
        "traces, and than the best team made by hand.",
        up("final.rescored", 0.05, "mutation-only", "best-seed"),
        arms=ARMS,
        **TEAMS,
    ),
)
