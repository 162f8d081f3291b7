"""The numbers that the papers give, written out: what a recipe sets, and what it takes over from another."""

from __future__ import annotations

from typing import Any

import pytest
from tests.recipes.recipe_runs import build

# "step" and "clip" stand for several paths
SHORT = {"step": ("propose.problems", "propose.n", "learn.minibatches"), "clip": ("learn.clip_low", "learn.clip_high")}
PAPERS: dict[str, dict[str, Any]] = {
    # 2402.03300, 4.1.3: 64 outputs to each question, batches of 1024, one update; eps is PPO's
    "grpo": {"step": (16, 64, 1), "clip": (0.2, 0.2), "learn.kl": 0.04, "learn.lr": 1e-6, "learn.epochs": 1},
    "reinforce": {"learn.kl": 0.0, "learn.minibatches": 1, "learn.epochs": 1},
    # 2402.14740, appendix: k = 4, batches of 512 in two updates, beta of TL;DR
    "rloo": {"step": (128, 4, 2), "judge.kl_penalty.beta": 0.03, "learn.kl": 0.0, "learn.lr": 1e-6},
    # 2503.20783, released script
    "dr-grpo": {"step": (128, 8, 8), "clip": (0.2, 0.2), "learn.kl": 0.0, "learn.lr": 1e-6},
    # 2503.14476, 4.1: 512 prompts, 16 updates, warm-up of 20 steps; eq. 13: 4096 of 20480 tokens
    "dapo": {
        "step": (512, 16, 16),
        "clip": (0.2, 0.28),
        "learn.kl": 0.0,
        "learn.lr": 1e-6,
        "learn.warmup": 20 * 16,
        "judge.overlong.cache": 4096 / 20480,
        "judge.overlong.penalty": 0.5,  # 1 of rewards in -1, 1
    },
    # 2507.18071, 5.1
    "gspo": {"clip": (3e-4, 4e-4), "learn.minibatches": 4, "learn.kl": 0.0},
    # 2506.13585, eq. 4: no lower bound, no KL; 2510.13786: the weight is at most 5
    "cispo": {"clip": (1.0, 5.0 - 1), "step": (512, 16, 16), "learn.kl": 0.0},
    # 2601.22582, 3
    "mc-grpo": {"credit.scale.eps": 1e-3, "clip": (0.2, 0.2)},
    # 2604.00860, and its code's default of no reversal
    "pipo": {"learn.policy_improvement.window": 8, "learn.policy_improvement.loss_scale_neg": 0.0, "clip": (0.2, 0.2)},
    # 2602.17616: w at most 8, the square-root rule, base 1; the script for lag 16
    "vcpo": {
        "step": (32, 16, 1),
        "clip": (1.0, 8.0 - 1),
        "credit.lag.steps": 16,
        "learn.power": 0.5,
        "learn.base": 1.0,
        "learn.opob": True,
        "learn.kl": 0.0,
        "learn.weight_decay": 0.1,
        "learn.max_grad_norm": 1.0,
    },
    # 2505.14970, the commands of its code for countdown
    "sec": {"propose.choose.alpha": 0.5, "propose.choose.tau": 1.0},
    # 2504.16084: 64 votes, 32 of them trained on
    "ttrl": {
        "learn.minibatches": 8,
        "propose.problems": 8,
        "propose.n": 64,
        "credit.groups.count": 32,
        "judge.agree": 1.0,
        "judge.differ": 0.0,
        "learn.kl": 0.001,
        "learn.entropy": 0.0,
        "clip": (0.2, 0.2),
    },
    # 2509.15194: rewards in [0.5, 1] and [-1, -0.5]
    "evol-rl": {
        "learn.minibatches": 8,
        "propose.problems": 8,
        "propose.n": 64,
        "credit.groups.count": 32,
        "judge.agree": 0.5,
        "judge.differ": -1.0,
        "judge.novelty.scale": 0.5,
        "rollout.temperature": 1.0,
        "learn.kl": 0.001,
        "learn.entropy": 0.003,
        "clip": (0.2, 0.28),
    },
    # 2509.22601, the base
    "dr-bot": {"step": (128, 16, 2), "clip": (0.2, 0.28), "learn.kl": 0.0, "credit.groups.share": 0.75},
    # 2509.22601
    "spear": {
        "judge.tool_bonus.each": 0.1,
        "judge.tool_bonus.cap": 1.0,
        "judge.tool_bonus.decay": 200,
        "keep.capacity": 2048,
        "keep.max_age": 10,
        "keep.history": 10240,
        "keep.warmup": 200,
        "learn.clip_cov.ratio": 0.02,
        "learn.clip_cov.low": 1.0,
        "learn.clip_cov.high": 40.0,
        "credit.groups.share": 0.75,
        "clip": (0.2, 0.28),
        "learn.kl": 0.0,
    },
    # 2505.18116, and the clamp of its code
    "nft": {
        "step": (512, 16, 16),
        "credit.low": 0.02,
        "credit.high": 0.98,
        "learn.surrogate.eps": 1.0,
        "learn.surrogate.neg_weight": 1.0,
        "learn.kl": 0.0,
        "learn.lr": 1e-6,
    },
    "rft": {"step": (512, 16, 16), "learn.surrogate.neg_weight": 0.0, "learn.kl": 0.0},
    # 2304.06767: 2048 prompts a stage, K = 8 to 32
    "raft": {"propose.problems": 2048, "propose.n": 32, "learn.lr": 2e-5, "learn.epochs": 2},
    "sft": {"propose.n": 1, "learn.lr": 1e-5, "learn.epochs": 1},
    # 2305.18290, appendix B
    "dpo": {"propose.problems": 64, "learn.beta": 0.1, "learn.lr": 1e-6, "learn.warmup": 150},
    # 2511.16652: rank one, greedy, the epsilon of the z-score
    "eggroll": {"learn.rank": 1, "rollout.temperature": 0.0, "credit.scale.eps": 1e-5, "learn.adam": True},
    # 2509.18521: 64 under way where 32 are needed
    "april": {"rollout.partial.over": 64 / 32},
    # 2603.24840
    "arrol": {
        "propose.n": 16,
        "rollout.control.stride": 512,
        "rollout.control.warmup": 20,
        "rollout.control.kappa": 0.5,
        "rollout.control.rho": 0.5,
        "rollout.control.lam": 0.5,
        "rollout.control.low": 0.1,
        "rollout.control.high": 0.9,
        "rollout.control.quality.bins": 128,
    },
    # 2510.24302, the countdown script
    "latr": {
        "rollout.alternatives": 2,
        "rollout.branch.least": 0.25,
        "rollout.branch.gap": 0.15,
        "rollout.looks": (20, 30, 50),
        "rollout.prune.edits": 0.4,
        "rollout.most": 512,
        "rollout.full": 0.98,
        "rollout.decay": 0.05,
        "rollout.share.steps": {0: 1.0, 10: 0.75, 20: 0.5, 80: 0.25, 200: 0.0},
    },
    # 2411.00062, the scripts
    "eva": {
        "propose.n": 6,
        "propose.evolve.parents": 0.25,
        "propose.evolve.children": 4,
        "propose.evolve.share": 0.8,
        "learn.beta": 0.05,
        "learn.lr": 5e-7,
        "learn.epochs": 2,
    },
    "eva-rloo": {
        "step": (128, 4, 2),
        "propose.evolve.parents": 0.25,
        "propose.evolve.children": 4,
        "propose.evolve.share": 0.8,
        "propose.evolve.again": True,
        "judge.kl_penalty.beta": 0.03,
    },
}
FUNCTIONS = {
    "grpo": {"credit.baseline": "mean", "credit.scale": "std", "learn.ratio": "token_ratio"},
    "reinforce": {"credit.baseline": "batch_mean", "credit.scale": "no_scale", "learn.surrogate": "unclipped"},
    "rloo": {"credit.baseline": "leave_one_out", "credit.scale": "no_scale", "learn.surrogate": "unclipped"},
    "dr-grpo": {"credit.scale": "no_scale", "learn.aggregate": "constant_length"},
    "dapo": {"credit.groups": "with_signal", "learn.aggregate": "token_mean"},
    "gspo": {"learn.ratio": "sequence_ratio", "learn.surrogate": "pessimistic"},
    "cispo": {"learn.surrogate": "detached", "learn.aggregate": "token_mean"},
    "mc-grpo": {"credit.baseline": "median", "credit.scale": "mad", "credit.rows": "without_pivot"},
    "vcpo": {"learn.ratio": "whole_ratio", "learn.surrogate": "detached", "credit.scale": "std"},
    "dr-bot": {"credit.scale": "no_scale", "credit.groups": "widest", "learn.aggregate": "constant_length"},
    "nft": {"credit.weight": "failures", "learn.surrogate": "negative_aware"},
    "rft": {"credit.weight": "equal", "learn.surrogate": "negative_aware"},
    "raft": {"credit.choose": "best"},
    "dpo": {"credit.choose": "best_and_worst", "learn.form": "sigmoid"},
    "eggroll": {"credit.baseline": "mean", "credit.scale": "batch_std"},
    "eva": {"propose.evolve.worth": "gap", "learn.form": "sigmoid"},
    "eva-rloo": {"propose.evolve.worth": "gap", "credit.baseline": "leave_one_out"},
}


@pytest.mark.parametrize("name", PAPERS)
def test_the_recipe_has_the_values_of_its_paper(name: str) -> None:
    found = {".".join(s.path[1:]): s.paper for s in build(name).built[""].settings}
    for path, value in PAPERS[name].items():
        if path in SHORT:
            assert tuple(found[p] for p in SHORT[path]) == value, path
        else:
            assert found[path] == value, path
    for path, function in FUNCTIONS.get(name, {}).items():
        assert found[path].__name__ == function, path
