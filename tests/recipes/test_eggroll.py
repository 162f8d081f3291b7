"""EGGROLL through the loop: who acts, what only `learn` sees, and that the estimate makes right answers likelier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import build, steps, without

from evolvent.core.recipe import REGISTRY, recipe, wrap
from evolvent.core.records import Group, Trajectory
from evolvent.core.step import Judge, Step
from evolvent.engine.base import Noise
from evolvent.engine.perturb import linear_modules, perturbation
from evolvent.learn.credit import no_scale
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


# --- rank one ------------------------------------------------------------------------------------------------------


def noises(composition: str = "eggroll", **settings: Any) -> tuple[Policy, list[Noise]]:
    """The policy and what a step's members have for noise."""
    made = build(composition, propose__problems=4, propose__n=4, learn__population=16, **settings)
    role = made.main_role
    return made.policy, [a.low for a in role.actors(Step(0, role)) if isinstance(a.low, Noise)]


@pytest.mark.parametrize("rank", [1, 3])
def test_the_change_of_a_member_has_its_rank_and_takes_as_little_memory(rank: int) -> None:
    """The recipe's own rank is 1: the switch-off is a higher one."""
    policy, members = noises(**({} if rank == 1 else {"learn__rank": rank}))
    for module, change in zip(
        linear_modules(policy.model).values(), perturbation(policy.model, members[0]).values(), strict=True
    ):
        full = change.a @ change.b.T
        assert full.shape == module.weight.shape == (module.out_features, module.in_features)
        assert int(torch.linalg.matrix_rank(full)) == rank
        assert change.a.numel() + change.b.numel() == rank * (module.out_features + module.in_features)
        assert rank > 1 or change.a.numel() + change.b.numel() <= full.numel() / 8


def test_nothing_of_a_member_is_kept_but_four_numbers() -> None:
    _, members = noises()
    assert [len(vars(m)) for m in members] == [4] * 16
    assert all(isinstance(value, int | float) for m in members for value in vars(m).values())


# --- antithetic pairs ----------------------------------------------------------------------------------------------


def test_pairs_cancel() -> None:
    """The mean of the members' changes is 0 to the last bit; that of as many members of one sign is not."""
    policy, members = noises()
    one_sign = [replace(m, sign=1, seed=m.seed + i) for i, m in enumerate(members)]

    def mean_change(of: list[Noise]) -> list[torch.Tensor]:
        changes = [perturbation(policy.model, m) for m in of]
        return [sum((c[n].a @ c[n].b.T for c in changes), torch.zeros(())) / len(of) for n in changes[0]]

    made = [[c.a @ c.b.T for c in perturbation(policy.model, m).values()] for m in members]
    assert all(torch.equal(x, -y) for i in range(0, 16, 2) for x, y in zip(made[i], made[i + 1], strict=True))
    assert len({m.seed for m in members}) == 8
    assert not any(x.any() for x in mean_change(members))
    assert min(float(x.std()) for x in mean_change(one_sign)) > 0.1 / 16**0.5 / 2  # sigma / sqrt(N), about


# --- fitness shaping -----------------------------------------------------------------------------------------------


@dataclass
class Rescaled:
    """Around a judge: every score becomes 7 score + 5."""

    inner: Judge

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        self.inner(groups, s)
        for t in (t for g in groups for t in g.valid):
            t.reward("rescaled", 6 * t.score + 5)


def update(composition: str, **settings: Any) -> tuple[Step, torch.Tensor]:
    """The first step, and how far it moved the weights. Plain descent: Adam has no eye for scale either."""
    made = build(composition, learn__adam=False, **settings)
    before = torch.cat([w.flatten() for w in made.policy.weights().values()]).clone()
    (s,) = steps(made.system, 1)
    return s, torch.cat([w.flatten() for w in made.policy.weights().values()]) - before


def test_an_affine_change_of_the_scores_leaves_the_update_as_it_is() -> None:
    recipe("rescaled-eggroll", all_recipes()["eggroll"], wrap("judge", Rescaled))
    try:
        plain, rescaled = update("eggroll")[1], update("rescaled-eggroll")[1]
        assert plain.abs().max() > 0
        torch.testing.assert_close(rescaled, plain, rtol=1e-3, atol=1e-6)
        unshaped = [update(name, credit__scale=no_scale)[1] for name in ("eggroll", "rescaled-eggroll")]
        torch.testing.assert_close(unshaped[1], 7 * unshaped[0], rtol=1e-3, atol=1e-6)
    finally:
        del REGISTRY["rescaled-eggroll"]


def test_fitness_is_over_the_deviation_of_all_scores() -> None:
    """Less the group's mean; without the recipe's scale it is over the deviation of the group."""

    def fitness(composition: str) -> tuple[np.ndarray, np.ndarray]:
        s, _ = update(composition)
        scores = [np.array([t.score for t in g.valid]) for g in s.groups]
        every = np.concatenate(scores).std(ddof=1)
        return s.batches[0].weight, np.concatenate([(x - x.mean()) / (every + 1e-5) for x in scores])

    found, wanted = fitness("eggroll")
    assert np.abs(wanted).max() > 0
    assert found == pytest.approx(wanted, abs=1e-5)
    with without("eggroll", "credit.scale") as ablated:
        found, wanted = fitness(ablated)
        assert np.abs(found - wanted).max() > 0.1


# --- the estimate --------------------------------------------------------------------------------------------------


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
