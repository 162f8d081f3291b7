"""MC-GRPO: median-centred advantages for small groups.

arXiv 2601.22582, section 3.

    A_i = (r_i - median r) / (MAD + 1e-3),  MAD = median |r_j - median r|,  over G + 1 rollouts

With few rollouts the mean is a noisy baseline: one outlier turns the sign of others' advantages. The median is not.
One rollout more makes the group odd, so that one of them is the median: it has A = 0 and takes no part in the
backward pass, and G rollouts carry the gradient, as in GRPO. Of several rollouts that tie with the median only one
leaves. Outcomes of 0 and 1 alone give MAD = 0 and a median that is no centre: use a graded reward. The paper takes
G = 2, 4 and 8.

`grpo-plus-one` is the fair control: as many rollouts, mean baseline, the one with the smallest |A| left out. (The
released code drops the smallest |r| there, and in MC-GRPO multiplies the advantages by (G + 1) / (their number that
is not 0); neither is done here.)
"""

import numpy as np

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.learn.credit import mad, median
from evolvent.recipes.policy_gradient.grpo import grpo


def one_more(n: int) -> int:
    """G + 1."""
    return n + 1


def without_pivot(advantages: np.ndarray) -> np.ndarray:
    """All rows but the first with A = 0. A group of even size, after an error, has no pivot and loses none."""
    keep = np.ones(len(advantages), bool)
    keep[np.flatnonzero(advantages == 0)[:1]] = False
    return keep


def without_smallest(advantages: np.ndarray) -> np.ndarray:
    """All rows but the first with the smallest |A|."""
    keep = np.ones(len(advantages), bool)
    keep[np.abs(advantages).argmin()] = False
    return keep


SMALL = {"propose.n": 2, "propose.problems": 128, "judge.shaping": {"lines": 1.0}}
TASK = "arith:2x2-chain"

grpo_plus_one = recipe(
    "grpo-plus-one",
    grpo,
    wrap("propose.n", one_more),
    put("credit.rows", without_smallest),
    title="GRPO with one rollout more (control of MC-GRPO)",
)

mc_grpo = recipe(
    "mc-grpo",
    grpo,
    wrap("propose.n", one_more),
    put("credit.baseline", median),
    put("credit.scale", mad, eps=1e-3),
    put("credit.rows", without_pivot),
    title="MC-GRPO: Median-Centered Group Relative Policy Optimization for Small-Rollout Reinforcement Learning",
    paper="arXiv 2601.22582",
    mechanism=claim(
        "At G = 2, fewer advantages have another sign than those of a large group.",
        down("probe.sign_flips", 0.005, "grpo", "grpo-plus-one"),
        task=TASK,
        budget="100 steps",
        common=SMALL,
    ),
    outcome=claim(
        "At G = 2, accuracy is higher than that of GRPO with as many rollouts in the update.",
        up("test.sampled", 0.02, "grpo", "grpo-plus-one"),
        task=TASK,
        budget="100 steps",
        common=SMALL,
    ),
)
