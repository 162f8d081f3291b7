"""SEC: a curriculum that evolves with the model.

arXiv 2505.14970.

    r(c) = mean |A| over the rows of category c
    Q(c) <- alpha r(c) + (1 - alpha) Q(c)
    p(c) ~ exp(Q(c) / tau)

With outcomes of 0 and 1, |A| is largest where half of the answers are right: the bandit goes to what is neither
known nor out of reach, and moves on. Each problem of the batch draws its own category. alpha is 0.5 throughout; tau
is 1 on countdown, 0.4 on mathematics and 0.2 over pairs of domain and difficulty. (These values are those of the
commands in the authors' code; that code also lets Q of categories that a step did not visit decay towards 0.) The
GRPO around it takes 256 problems with 8 answers a step, four minibatches and no KL term there.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.propose.bandit import Bandit
from evolvent.recipes.policy_gradient.grpo import grpo

ARMS = {
    "ours": {"propose.choose.tau": 0.2},
    "in-order": {"recipe": "grpo", "propose.choose": "in_order", "propose.choose.steps": 60},
}
LEVELS = "countdown:2x20,2x50,3x20,5x12,5x50"
HARDER = "countdown:2x99,3x30"
SMALL = {"learn.lr": 1.5e-4}

sec = recipe(
    "sec",
    grpo,
    put("propose.choose", Bandit, alpha=0.5, tau=1.0),
    title="Self-Evolving Curriculum for LLM Reasoning",
    paper="arXiv 2505.14970",
    mechanism=claim(
        "More of the sampled groups have a signal than under uniform choice.",
        down("train.flat_groups", 0.03, "grpo"),
        task=LEVELS,
        test=HARDER,
        budget="60 steps",
        common=SMALL,
        arms=ARMS,
    ),
    outcome=claim(
        "Accuracy on harder levels than those trained on is higher than after uniform choice or a fixed order.",
        up("test.sampled", 0.02, "grpo", "in-order"),
        task=LEVELS,
        test=HARDER,
        budget="60 steps",
        common=SMALL,
        arms=ARMS,
    ),
)
