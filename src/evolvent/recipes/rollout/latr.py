"""LATR: a tree of rollouts that branches where the policy wavers, and keeps the branches that come to differ.

arXiv 2510.24302, section 3, with the values of the authors' countdown script.

    a branch takes its top token; another c opens a new one if p(c) > 0.25 and p(top) - p(c) < 0.15, while there are < k
    r = 20, 30, 50 tokens later it goes, with its descendants, if edits(its r tokens, its parent's) / r < 0.4
    k = round(eta(t) G) rollouts are of the tree, the other G - k plain samples; eta falls from 1 to 0 in 200 steps

Trees are left for plain sampling once they have, together, 0.98 - 0.05 l / L of their branches at token l of at most
L, none of which is yet to be looked at, or after 512 tokens. Copies of the root stand in for branches that are missing.
The authors' published code opens a branch where p(top) - p(c) is above 0.15; here it is below, as in the paper.
"""

from functools import partial

import numpy as np

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.policy_gradient.grpo import grpo
from evolvent.rollout.tree import Lookahead

at_100 = partial(claim, task="countdown", budget="100 steps")


def eta(t: int, *, steps: dict[int, float]) -> float:
    """The share of the tree, from one step on."""
    return [share for start, share in sorted(steps.items()) if start <= t][-1]


def wavers(p: np.ndarray, *, least: float, gap: float) -> np.ndarray:
    """bool [alternatives]: likely enough, and hardly less likely than the first."""
    return (p > least) & (p[0] - p < gap) & (np.arange(len(p)) > 0)


def alike(a: list[int], b: list[int], *, edits: float) -> bool:
    """Levenshtein distance below a share of the length."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1] < edits * len(a)


latr = recipe(
    "latr",
    grpo,
    put("rollout", Lookahead, alternatives=2, looks=(20, 30, 50), most=512, full=0.98, decay=0.05),
    put("rollout.share", eta, steps={0: 1.0, 10: 0.75, 20: 0.5, 80: 0.25, 200: 0.0}),
    put("rollout.branch", wavers, least=0.25, gap=0.15),
    put("rollout.prune", alike, edits=0.4),
    title="Lookahead Tree-Based Rollouts for Enhanced Trajectory-Level Exploration in RL with Verifiable Rewards",
    paper="arXiv 2510.24302",
    mechanism=at_100(
        "Answers differ more.", up("train.distinct", 0.03, "grpo"), down("train.flat_groups", 0.02, "grpo")
    ),
    outcome=at_100("GRPO's accuracy in 60 % of its steps.", down("reach.sampled@0.4", 0.25, "grpo", scale="log")),
)
