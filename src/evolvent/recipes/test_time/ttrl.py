"""TTRL: reinforcement learning on problems without labels; the majority is taken to be right.

arXiv 2504.16084.

    y* = the most frequent of 64 answers
    r_i = 1 if answer i equals y*, else 0,   then GRPO on the first 32 of them, an update for each of 8 problems

Needs tasks whose answers can be compared: a number, a word. The verifier is asked to read answers, not to judge them.
"""

from collections.abc import Sequence

from pydantic import PositiveInt

from evolvent.core.recipe import put, recipe
from evolvent.core.records import Group
from evolvent.judge.majority import Majority
from evolvent.recipes.policy_gradient.grpo import grpo


def first_votes(groups: Sequence[Group], *, count: PositiveInt = 32) -> list[Group]:
    """Each group's first `count` trajectories: the others have voted, and are not trained on."""
    return [Group(g.problem, g.trajectories[:count], g.info) for g in groups]


ttrl = recipe(
    "ttrl",
    grpo,
    put("propose.problems", 8),
    put("propose.n", 64),
    put("judge", Majority, agree=1.0, differ=0.0),
    put("credit.groups", first_votes, count=32),
    put("learn.kl", 0.001),
    put("learn.minibatches", 8),
    title="TTRL: Test-Time Reinforcement Learning",
    paper="arXiv 2504.16084",
)
