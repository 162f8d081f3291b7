"""GRPO: advantages relative to the group of one problem, clipped ratios, KL to the start model.

arXiv 2402.03300 (DeepSeekMath), section 4.1.

    A_i = (r_i - mean r) / std r
    loss = -1/G sum_i 1/|y_i| sum_t [ min(rho A_i, clip(rho, 1 - eps, 1 + eps) A_i) - 0.04 KL(pi || ref) ]

The paper samples 64 answers to each of 16 questions a step and updates once, at a learning rate of 1e-6. It gives no
eps; 0.2 is PPO's.
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.credit import GroupCredit, mean, std
from evolvent.learn.objective import k3, pessimistic, sequence_mean, token_ratio
from evolvent.learn.policy_gradient import PolicyGradient
from evolvent.recipes.control.no_change import no_change

grpo = recipe(
    "grpo",
    no_change,
    put("propose.problems", 16),
    put("propose.n", 64),
    put("credit", GroupCredit, baseline=mean, scale=std),
    put(
        "learn",
        PolicyGradient,
        ratio=token_ratio,
        surrogate=pessimistic,
        clip_low=0.2,
        clip_high=0.2,
        aggregate=sequence_mean,
        kl=0.04,
        divergence=k3,
        lr=1e-6,
    ),
    title="DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    paper="arXiv 2402.03300",
)
