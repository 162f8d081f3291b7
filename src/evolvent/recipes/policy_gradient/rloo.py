"""RLOO: the baseline of each answer is the mean of the others to the same problem.

arXiv 2402.14740, sections 2 and 3.2.

    R_i = r_i - 0.03 log(pi(y_i) / ref(y_i))
    A_i = R_i - mean_{j != i} R_j
    gradient = 1/k sum_i A_i grad log pi(y_i)

The whole answer is one action, and the KL to the start model is part of its reward. The paper takes k = 2 or 4
answers, batches of 512 in two updates, and beta 0.03 on TL;DR (0.10 on Anthropic-HH).
"""

from evolvent.core.recipe import put, recipe, wrap
from evolvent.judge.divergence import KLPenalty
from evolvent.learn.credit import leave_one_out
from evolvent.recipes.policy_gradient.reinforce import reinforce

rloo = recipe(
    "rloo",
    reinforce,
    put("propose.problems", 128),
    put("propose.n", 4),
    wrap("judge", KLPenalty, beta=0.03),
    put("credit.baseline", leave_one_out),
    put("learn.minibatches", 2),
    put("learn.lr", 1e-6),
    title="Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in LLMs",
    paper="arXiv 2402.14740",
)
