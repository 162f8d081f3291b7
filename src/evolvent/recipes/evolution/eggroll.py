"""EGGROLL: evolution strategies whose members are rank-one changes, all in one batch.

arXiv 2511.16652.

    member i:  y = x W^T + sigma / sqrt(r) (x B_i) A_i^T,   A_i, B_i from a counter; a pair has them with both signs
    fitness:   (score - mean of the group) / std of all scores
    gradient:  -sqrt(N) / N sum_i f_i A_i B_i^T, then Adam

Only `learn` (and the scale of credit) differ from GRPO: group credit is fitness shaping. The paper decodes greedily,
so that all variety comes from the weights.
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.credit import batch_std
from evolvent.learn.evolution import LowRankES
from evolvent.recipes.policy_gradient.grpo import grpo

eggroll = recipe(
    "eggroll",
    grpo,
    put("rollout.temperature", 0.0),
    put("credit.scale", batch_std, eps=1e-5),
    put("learn", LowRankES, population=1024, sigma=1e-3, rank=1, lr=1e-3),
    title="Evolution Strategies at the Hyperscale",
    paper="arXiv 2511.16652",
)
