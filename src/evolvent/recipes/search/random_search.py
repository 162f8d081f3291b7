"""Random search (baseline): vary anybody who is valid, keep everybody.

    parent ~ uniform(valid candidates),  child = operator(parent)

No selection at all: what a search has to beat. Programs are varied by operators on their syntax trees, with the task's
own component library, where there is no model (`--model none`); else the model writes them.
"""

from evolvent.core.recipe import put, recipe
from evolvent.search.archive import Archive
from evolvent.search.loop import Evaluate, Parents
from evolvent.search.vary import Vary

random_search = recipe(
    "random-search",
    None,
    put("propose", Parents),
    put("rollout", Vary),
    put("judge", Evaluate),
    put("keep", Archive),
    title="Random search (baseline)",
)
