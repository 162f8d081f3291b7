"""DAPO: decoupled clipping and dynamic sampling.

arXiv 2503.14476, section 3.

    clip-higher        clip(rho, 1 - 0.2, 1 + 0.28): unlikely tokens may grow faster, and entropy lasts longer
    dynamic sampling   sample until the batch is full of groups with 0 < correct < G; the others give no gradient
    token mean         one mean over all tokens, so that long answers count by their length
    overlong shaping   a soft penalty over the last fifth of the length limit

No KL term. 512 prompts with 16 answers a step, minibatches of 512 answers (16 updates), learning rate 1e-6 after a
warm-up of 20 steps (320 updates).
"""

from evolvent.core.recipe import put, recipe, wrap
from evolvent.judge.overlong import Overlong
from evolvent.learn.credit import with_signal
from evolvent.learn.objective import token_mean
from evolvent.propose.refill import Refill
from evolvent.recipes.policy_gradient.grpo import grpo

dapo = recipe(
    "dapo",
    grpo,
    put("propose.problems", 512),
    put("propose.n", 16),
    wrap("propose", Refill),
    wrap("judge", Overlong),
    put("credit.groups", with_signal),
    put("learn.clip_high", 0.28),
    put("learn.aggregate", token_mean),
    put("learn.kl", 0.0),
    put("learn.minibatches", 16),
    put("learn.warmup", 320),
    title="DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    paper="arXiv 2503.14476",
)
