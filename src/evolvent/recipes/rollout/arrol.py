"""ARRoL: drop rollouts while they are written, so that those that stay are as often right as wrong.

arXiv 2603.24840.

    q_i = P(right | hidden state of i after 512 tokens), by a two-layer head and Bayes' rule on 128 bins of its score
    p_i = clip(kappa + delta +- lambda (rho - q_i), 0.1, 0.9),   delta such that the group's mean is kappa = 0.5

Rollout i stays with probability p_i. Groups above rho lose answers that look right, groups below rho those that look
wrong. The head learns the outcomes of those that are finished, 20 steps before anybody is dropped. In votes at test
time the rank of its score, in [0, 1], is the weight. All branches are decoded at once here: no request waits for a
slot, dropped rows leave the cache. The paper takes 16 answers to a problem, of which about 8 are trained on.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.learn.head import Head
from evolvent.recipes.policy_gradient.grpo import grpo
from evolvent.rollout.prune import Prune

arrol = recipe(
    "arrol",
    grpo,
    put("propose.n", 16),
    put("rollout.control", Prune, quality=Head, stride=512, kappa=0.5, rho=0.5, lam=0.5, warmup=20),
    title="Prune as You Generate: Online Rollout Pruning for Faster and Better RLVR",
    paper="arXiv 2603.24840",
    mechanism=claim(
        "Groups are better balanced than after random pruning; weighted votes are right more often than plain ones.",
        up("late.balance", 0.003, "random"),
        up("probe.evolvent.bench.votes:vote_gain", 0.01, "grpo"),
        task="countdown",
        budget="60 steps",
        common={"propose.n": 16},
        arms={"random": {"recipe": "arrol", "rollout.control.lam": 0.0}},
    ),
    outcome=claim(
        "An accuracy of GRPO's takes at most 70 % of the tokens.",
        down("reach.sampled@0.35", 0.36, "grpo", scale="log"),
        task="countdown",
        budget="800000 sampled tokens",
        common={"propose.n": 16},
        evals=20,
    ),
)
