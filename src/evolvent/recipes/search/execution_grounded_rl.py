"""Execution-grounded research by policy gradients: the model that has the ideas learns from what they measure.

    ideas      a group of changes of the same program, which the policy writes without seeing others
    execution  each is carried out; one that fails, or is outside of the plausible range, has the lowest reward, 0
    reward     else the measured result
    learning   GRPO over the group: advantage = (reward - mean) / std

The other half of arXiv 2601.14525, beside its evolutionary search (`execution-grounded-research`). There the mean
reward rises and the best of a batch does not: the policy comes to propose a few simple ideas again and again. What
writes is the run's model, as in `thetaevolve`: with `--model none` or an endpoint nothing is learned.
"""

from __future__ import annotations

from typing import Any

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.learn.credit import GroupCredit, mean, std
from evolvent.learn.objective import pessimistic, sequence_mean, token_ratio
from evolvent.recipes.search.openevolve import DIFFS
from evolvent.recipes.search.random_search import random_search
from evolvent.search.edit import VaryOrEdit
from evolvent.search.gates import Gates
from evolvent.search.ladder import Ladder
from evolvent.search.parents import seed
from evolvent.search.reinforce import Families, Reinforce, sampled

DIGITS: dict[str, Any] = {
    "task": "program:digits",
    "budget": "1000 evaluations",
    "common": {"propose.children": 1, "propose.n": 32},
}
FROZEN = {"recipe": "execution-grounded-rl", "learn.train": False}

execution_grounded_rl = recipe(
    "execution-grounded-rl",
    random_search,
    put("propose", Families, children=1, n=64),
    put("propose.parent", seed),
    put("rollout", VaryOrEdit),
    put("rollout.write.kinds", DIFFS),
    wrap("judge", Gates),
    wrap("judge", Ladder, level=0, unusable=0.0, lazy=0.0, failed=0.0, invalid=0.0),
    put("credit", GroupCredit, baseline=mean, scale=std, groups=sampled),
    put(
        "learn",
        Reinforce,
        ratio=token_ratio,
        surrogate=pessimistic,
        clip_low=0.2,
        clip_high=0.2,
        aggregate=sequence_mean,
        lr=1e-5,
    ),
    title="Towards Execution-Grounded Automated AI Research: reinforcement learning of the ideator",
    paper="arXiv 2601.14525",
    mechanism=claim(
        "What the policy proposes is worth more in the mean than what the same policy proposes if nothing is learned.",
        up("late.score", 0.2, "frozen"),
        arms={"frozen": FROZEN},
        **DIGITS,
    ),
    outcome=claim(
        "Learning makes ideas less diverse, and the best of them no better.",
        down("share.distinct", 0.1, "frozen"),
        down("final.rescored", 0.02, "frozen", kind="non-inferiority"),
        arms={"frozen": FROZEN},
        **DIGITS,
    ),
)
