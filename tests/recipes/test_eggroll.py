"""EGGROLL through the loop: who acts, what only `learn` sees, and that the estimate makes right answers likelier."""

from __future__ import annotations

import numpy as np
import torch
from tests.recipes.recipe_runs import build, steps

from evolvent.core.records import Trajectory
from evolvent.engine.base import Noise
from evolvent.learn.evolution import LowRankES
from evolvent.learn.forward import padded, token_logprobs
from evolvent.models.policy import Policy
from evolvent.recipes import all_recipes

MANY = {"propose__problems": 64, "propose__n": 32, "learn__population": 2048, "gate__every": 0}


def test_members_are_dealt_to_the_rollouts_in_pairs() -> None:
    made = build("eggroll", propose__problems=4, propose__n=4, learn__population=16)
    (s,) = steps(made.system, 1)
    rows = [t for g in s.groups for t in g.trajectories]
    assert sorted(t.actor for t in rows) == sorted(f"member-{i}" for i in range(16))
    assert all(isinstance(a.low, Noise) and a.low.rank == 1 for a in s.actors)
    for group in s.groups:  # both signs of a pair meet the same problem
        pairs = {int(t.actor.removeprefix("member-")) // 2 for t in group.trajectories}
        assert len(pairs) == len(group.trajectories) / 2


def test_only_learning_and_its_scale_differ_from_grpo() -> None:
    changed = {op.path[1:] for op in all_recipes()["eggroll"].ops}
    assert changed == {("rollout", "temperature"), ("credit", "scale"), ("learn",)}


def test_one_step_makes_right_answers_likelier_and_its_opposite_less_likely() -> None:
    """The members are rolled out by the engine, so this also says that engine and learner draw the same noise."""
    gold = [t for s in steps(build("sft", propose__problems=100).system, 1) for g in s.groups for t in g.valid]
    made = build("eggroll", learn__sigma=0.05, learn__adam=False, learn__lr=0.02, **MANY)
    learner = made.main_role.learn
    assert isinstance(learner, LowRankES)
    before = {name: m.weight.detach().clone() for name, m in learner.modules.items()}
    start = chance(made.policy, gold)
    (s,) = steps(made.system, 1)
    assert s.metrics["learn/fitness_std"] > 0
    uphill = chance(made.policy, gold)
    with torch.no_grad():
        for name, module in learner.modules.items():
            module.weight.copy_(2 * before[name] - module.weight)
    made.policy.bump()
    assert uphill > start > chance(made.policy, gold)


def chance(policy: Policy, rows: list[Trajectory]) -> float:
    """Mean probability of whole answers under a policy."""
    tokens, mask, _, _ = padded(rows, policy.format.pad, policy.device)
    with torch.no_grad():
        logprob, _ = token_logprobs(policy, tokens, mask, torch.ones(len(rows)))
    return float(np.mean(np.exp(logprob.sum(1).numpy())))
