"""Random search (baseline): vary anybody who is valid, keep everybody.

    parent ~ uniform(valid candidates),  child = operator(parent)

No selection at all: what a search has to beat. Programs are varied by operators on their syntax trees, with the task's
own component library; no model is needed (`--model none`).
"""

from evolvent.core.recipe import put, recipe
from evolvent.search.archive import Archive
from evolvent.search.loop import Evaluate, Mutate, Parents

random_search = recipe(
    "random-search",
    None,
    put("propose", Parents),
    put("rollout", Mutate),
    put("judge", Evaluate),
    put("keep", Archive),
    title="Random search (baseline)",
)
