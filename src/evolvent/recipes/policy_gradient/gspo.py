"""GSPO: one importance ratio for the whole answer.

arXiv 2507.18071, sections 4 and 5.1.

    s_i = (pi(y_i) / pi_old(y_i))^(1/|y_i|)
    loss = -1/G sum_i min(s_i A_i, clip(s_i, 1 - 3e-4, 1 + 4e-4) A_i)

The reward belongs to the answer, and so do ratio and clipping: token ratios add noise that grows with length. Each
batch of rollouts is split into four minibatches; there is no KL term.
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.objective import sequence_ratio
from evolvent.recipes.policy_gradient.grpo import grpo

gspo = recipe(
    "gspo",
    grpo,
    put("learn.ratio", sequence_ratio),
    put("learn.clip_low", 3e-4),
    put("learn.clip_high", 4e-4),
    put("learn.kl", 0.0),
    put("learn.minibatches", 4),
    title="Group Sequence Policy Optimization",
    paper="arXiv 2507.18071",
)
