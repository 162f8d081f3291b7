"""VCPO: asynchronous training whose steps shrink with the samples that staleness leaves.

arXiv 2602.17616.

    w_i = pi(tau_i) / mu(tau_i),  share = (sum w)^2 / (B sum w^2),  lr_eff = lr min(1, share / 1.0)^0.5
    b*  = sum w_i^2 |grad log pi(tau_i)|^2 R_i / sum w_i^2 |grad log pi(tau_i)|^2,  over each group
    loss = -1/B sum_i min(w_i, 8) (R_i - b*) / std R * 1/|y_i| sum_t log pi(y_t)

Share and b* take w as it is, the loss takes it truncated; nothing else is clipped, and there is no KL term. Rows are
16 updates old here; the paper has lags of 2 to 128 and one update a step, the released script for lag 16 32 problems
with 16 answers. Off: `credit.lag.steps=0`, `learn.power=0`, `learn.opob=false`, `learn.clip_high=1e9`.

The paper's GRPO with truncated sequence weights is `learn.power=0 learn.opob=false`. Differences: all rows of a step
have one lag, and nothing is learned in the first 16 steps, while the pipeline fills. The released code has min(w_i, 8)
in the gradient whose norm it takes, so that it weighs by w_i^2 min(w_i, 8)^2; here it is the paper's formula.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.learn.lag import Lag
from evolvent.learn.objective import detached
from evolvent.learn.variance import VarianceControlled, whole_ratio
from evolvent.recipes.policy_gradient.grpo import grpo

TIS = {"recipe": "vcpo", "learn.power": 0.0, "learn.opob": False}
SMALL = {"propose.problems": 8, "propose.n": 8}

vcpo = recipe(
    "vcpo",
    grpo,
    put("propose.problems", 32),
    put("propose.n", 16),
    wrap("credit", Lag, steps=16),
    put("learn", VarianceControlled, ratio=whole_ratio, surrogate=detached, opob=True, power=0.5, base=1.0),
    put("learn.clip_low", 1.0),
    put("learn.clip_high", 7.0),  # w at most 8
    put("learn.kl", 0.0),
    put("learn.weight_decay", 0.1),
    title="Stable Asynchrony: Variance-Controlled Off-Policy RL for LLMs",
    paper="arXiv 2602.17616",
    mechanism=claim(
        "At lag 16 more of the samples stay effective, and gradients are smaller, than with truncated weights alone.",
        up("train.learn/ess", 0.03, "tis"),
        down("train.learn/grad_norm", 0.2, "tis"),
        task="countdown",
        budget="80 steps",  # later on truncated weights alone collapse, and who learns nothing has no stale samples
        common=SMALL,
        arms={"tis": TIS},
    ),
    outcome=claim(
        "At lag 16 accuracy stays within 5 points of synchronous training, and above that of truncated weights alone.",
        up("test.sampled", 0.05, "sync", kind="non-inferiority"),
        up("test.sampled", 0.05, "tis"),
        task="countdown",
        budget="160 steps",
        common=SMALL,
        arms={"tis": TIS, "sync": {**TIS, "credit.lag.steps": 0}},
    ),
)
