"""Dr. GRPO: GRPO without its two biases.

arXiv 2503.20783, section 3.

    A_i = r_i - mean r
    loss = -1/(G L) sum_i sum_t min(rho A_i, clip(rho, 1 - eps, 1 + eps) A_i),  L the most tokens an answer may have

Dividing by each answer's own length lets long wrong answers off lightly; dividing by the group's deviation gives
problems that are almost always or almost never solved more weight. There is no KL term. The released settings are
128 questions with 8 answers a step in minibatches of 128 answers.
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.credit import no_scale
from evolvent.learn.objective import constant_length
from evolvent.recipes.policy_gradient.grpo import grpo

dr_grpo = recipe(
    "dr-grpo",
    grpo,
    put("propose.problems", 128),
    put("propose.n", 8),
    put("credit.scale", no_scale),
    put("learn.aggregate", constant_length),
    put("learn.kl", 0.0),
    put("learn.minibatches", 8),
    title="Understanding R1-Zero-Like Training: A Critical Perspective",
    paper="arXiv 2503.20783",
)
