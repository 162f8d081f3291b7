"""APRIL: active partial rollouts, so that no step waits for its longest answers.

arXiv 2509.18521.

    over-provision   where a step needs N prompts, N' = over N are under way: those that wait, and fresh ones
    active stop      once N are complete the others are paused: the N-th finisher sets the time, not the longest answer
    recycle          what a step does not take waits with tokens, log-probs and versions, and goes first in the next
    mixed versions   rho_t = pi / pi_old with the log-prob that token t was sampled at, by whichever version

The paper has N = 32, N' = 64 and 8 answers each, on top of GRPO, DAPO and GSPO (`dapo+april`). over = 1 is the parent.
"""

from evolvent.core.claim import claim, down
from evolvent.core.recipe import recipe, wrap
from evolvent.recipes.policy_gradient.grpo import grpo
from evolvent.rollout.partial import Partial

april = recipe(
    "april",
    grpo,
    wrap("rollout", Partial, over=2.0),
    title="APRIL: Active Partial Rollouts in Reinforcement Learning to Tame Long-tail Generation",
    paper="arXiv 2509.18521",
    mechanism=claim(
        "At least 20 % fewer decode steps than GRPO for as many training samples.",
        down("spent.decode_steps", 0.22, "grpo", scale="log"),
        task="countdown",
        budget="100 steps",
        evals=1,
    ),
    outcome=claim(
        "At least 20 % fewer decode steps than GRPO to the same accuracy.",
        down("reach.sampled@0.4", 0.22, "grpo", scale="log"),
        task="countdown",
        budget="800 decode steps",
        evals=16,
    ),
)
