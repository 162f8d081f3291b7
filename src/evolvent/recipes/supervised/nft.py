"""NFT: supervised learning that reflects on mistakes.

arXiv 2505.18116.

    pi_old = r pi_plus + (1 - r) pi_minus,    r the share of right answers to the problem,  rho = pi / pi_old
    right: -w log rho,    wrong: -w log max_v((1 - r rho) / (1 - r), 1),    w = 1 - r

What is trained is pi_plus; wrong answers are likely under pi_minus, which pi_plus implies. max_v clamps the value, not
the gradient. Problems that are always or never solved are dropped. On fresh samples the gradient is that of Dr. GRPO
(w = 1 - r) or GRPO (w = sqrt((1 - r) / r)); the methods part ways with the second minibatch. 512 problems with 16
answers, 16 updates a step. `rft` learns from right answers alone. (The released code also caps log rho at 10, and goes
on sampling until 512 problems are left: `propose.refill` of `dapo`, which would make a budget in steps unequal.)
"""

from typing import Any

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe
from evolvent.learn.negative import RatedCredit, failures, negative_aware
from evolvent.learn.objective import constant_length
from evolvent.recipes.policy_gradient.grpo import grpo

SAME = {"learn.minibatches": 4, "learn.weight_decay": 0.0, "propose.n": 16, "propose.problems": 64}
GRPO = {"grpo": {"learn.aggregate": "constant_length"}}
RIGHT = {"right-only": {"recipe": "nft", "learn.surrogate.neg_weight": 0.0}}
REGIME: dict[str, Any] = {"task": "countdown", "budget": "40 steps", "common": SAME, "evals": 5, "problems": 3000}

nft = recipe(
    "nft",
    grpo,
    put("propose.problems", 512),
    put("propose.n", 16),
    put("credit", RatedCredit, weight=failures),
    put("learn.surrogate", negative_aware, eps=1.0, neg_weight=1.0),
    put("learn.aggregate", constant_length),
    put("learn.kl", 0.0),
    put("learn.minibatches", 16),
    put("learn.warmup", 160),
    put("learn.weight_decay", 0.1),
    title="Bridging Supervised Learning and Reinforcement Learning in Math Reasoning",
    paper="arXiv 2505.18116",
    mechanism=claim(
        "Wrong answers lose more log-probability over a step than where right answers alone are learned.",
        up("train.learn/unlearned", 0.003, "right-only"),
        arms=RIGHT,
        **REGIME,
    ),
    outcome=claim(
        "Accuracy is higher than with rejection-sampling fine-tuning, and not lower than GRPO's.",
        up("test.sampled", 0.01, "rft"),
        up("test.sampled", 0.025, "grpo", kind="non-inferiority"),
        arms=GRPO,
        **REGIME,
    ),
)
