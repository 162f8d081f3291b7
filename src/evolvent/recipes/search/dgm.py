"""DGM: agents that rewrite themselves; everybody who still works stays in the archive, and may be built upon.

    p(parent) ~ sigmoid(10 (value - 0.5)) / (1 + children),  child = parent.improve(parent, diagnosis of its failures)

arXiv 2505.22954. Two children a generation; an agent works if it compiles and its patches are not all empty. Evaluated
are a small set, from 0.4 on a medium one, and above 0.4 and the second best everything. A model diagnoses, and writes
the change; without one the agent's own code does that, with a library of components. The paper's ablations:
`--set rollout.mutate.editor=fixed` is DGM without self-improvement (`rollout.write.editor` with a model),
`--set propose.parent=latest` without open-ended exploration.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.admission import keep_all
from evolvent.search.diagnose import Diagnose
from evolvent.search.parents import novel_sigmoid
from evolvent.search.selfmodify import SelfModify
from evolvent.search.stages import second_best

HERE = {"task": "program:repair:30", "budget": "500 evaluations", "model": "none"}
STAGED = {"judge.promote.least": 0.2}  # the first agent solves one of the first ten: 0.4 is far for this budget
LATEST = {"recipe": "dgm", "propose.parent": "evolvent.search.parents:latest"}

dgm = recipe(
    "dgm",
    random_search,
    put("propose.children", 2),
    put("propose.parent", novel_sigmoid),
    put("rollout.mutate", SelfModify),
    put("rollout.write", Diagnose),
    put("judge.promote", second_best),
    put("keep.admit", keep_all),
    title="Darwin Gödel Machine: Open-Ended Evolution of Self-Improving Agents",
    paper="arXiv 2505.22954",
    mechanism=claim(
        "The archive keeps what has worked: fewer of its agents are better than those that are built upon than in a "
        "chain that always extends the latest one.",
        down("train.parent_rank", 0.1, "latest"),
        arms={"latest": LATEST},
        common=STAGED,
        **HERE,
    ),
    outcome=claim(
        "It ends with a better agent than a chain that always extends the latest one, and than a modifier that never "
        "changes.",
        up("final.rescored", 0.03, "latest", "fixed"),
        arms={
            "latest": LATEST,
            "fixed": {"recipe": "dgm", "rollout.mutate.editor": "evolvent.search.selfmodify:fixed"},
        },
        common=STAGED,
        **HERE,
    ),
)
