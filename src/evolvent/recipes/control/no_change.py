"""No change: sample and judge, learn nothing.

The control that every comparison needs, and the root of all recipes: what a system does before anything evolves.
"""

from evolvent.core.recipe import put, recipe
from evolvent.guard.gate import Watch
from evolvent.judge.verify import Verify
from evolvent.propose.problems import Problems
from evolvent.rollout.sample import Sample

no_change = recipe(
    "no-change",
    None,
    put("propose", Problems),
    put("rollout", Sample),
    put("judge", Verify),
    put("gate", Watch),
    title="No change (control)",
)
