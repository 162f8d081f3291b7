"""Our advantages, losses and gradients against values that TRL 1.16.0 and verl 0.9.1 gave (see tests/fixtures).

Where a package departs from the paper we follow the paper, and the test says what the difference is.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tests.learn.learning_views import case_view, fixture, loss_and_gradient, tensor

from evolvent.core.records import Group, Problem, Trajectory
from evolvent.learn import credit, objective, preference
from evolvent.learn.credit import GroupCredit
from evolvent.learn.objective import Tokens

CASES = ("ragged", "even")
close = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-9)


def groups_of(case: dict[str, Any]) -> list[Group]:
    """The case's answers as judged groups."""
    problem = Problem("key", (), {})
    found: dict[int, Group] = {}
    for i, (number, reward, mask) in enumerate(zip(case["groups"], case["rewards"], case["mask"], strict=True)):
        mask = np.array(mask, bool)
        row = Trajectory(i, problem, np.zeros(len(mask), np.int32), mask, np.zeros(len(mask), np.float32))
        row.reward("outcome", reward)
        found.setdefault(number, Group(problem, [])).trajectories.append(row)
    return list(found.values())


def advantages(case: dict[str, Any], **axes: Any) -> np.ndarray:
    """All advantages of a case, float64 [rows]."""
    return np.concatenate(GroupCredit(**axes).advantages(groups_of(case)))


# --- advantages of verl --------------------------------------------------------------------------------------------

ALONE = 7  # row of `ragged` that is a group of one: verl gives it its raw score as advantage, we give it none


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("estimator", "baseline", "scale"),
    [
        ("grpo", credit.mean, partial(credit.std, eps=1e-6)),
        ("grpo_no_std", credit.mean, credit.no_scale),
        ("rloo", credit.leave_one_out, credit.no_scale),
        ("opo", credit.length_weighted, credit.no_scale),
    ],
)
def test_advantages_of_verl(name: str, estimator: str, baseline: Any, scale: Any) -> None:
    case = fixture("inputs")[name]
    expected = np.array(fixture("verl")[name]["advantages"][estimator])
    if name == "ragged":
        assert expected[ALONE] == pytest.approx(case["rewards"][ALONE])
        expected[ALONE] = 0.0
    close(advantages(case, baseline=baseline, scale=scale), expected)


def test_gpg_of_verl_counts_rewards_where_the_paper_counts_groups() -> None:
    """GPG's paper makes up for rows in groups without signal; verl divides by the share of rewards that are not 0."""
    case = fixture("inputs")["even"]
    rewards, groups = np.array(case["rewards"]), np.array(case["groups"])
    ours = advantages(case, baseline=credit.mean, scale=credit.signal_share)
    live = np.isin(groups, [g for g in np.unique(groups) if np.ptp(rewards[groups == g]) > 0]).mean()
    assert live == pytest.approx(2 / 3)
    expected = np.array(fixture("verl")["even"]["advantages"]["gpg"])
    np.testing.assert_allclose(ours * live, expected * np.mean(rewards != 0), rtol=1e-6, atol=1e-7)


def test_reinforce_plus_plus_of_verl_weighs_rows_by_their_tokens() -> None:
    """The paper normalises over the answers of the batch, verl over their tokens: the same mean and deviation where
    all answers are equally long, apart from the degrees of freedom."""
    case = dict(fixture("inputs")["even"])
    ours = advantages(case, baseline=credit.mean, scale=partial(credit.centred_std, eps=0.0))
    length = np.array(case["mask"]).sum(1)
    centred = ours * np.sqrt(np.mean(advantages(case, baseline=credit.mean, scale=credit.no_scale) ** 2) * 12 / 11)
    mean = np.average(centred, weights=length)
    tokens = length.sum()
    deviation = np.sqrt(np.average((centred - mean) ** 2, weights=length) * tokens / (tokens - 1))
    expected = np.array(fixture("verl")["even"]["advantages"]["reinforce_plus_plus_baseline"])
    np.testing.assert_allclose((centred - mean) / deviation, expected, rtol=1e-5)


# --- advantages of TRL ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "axes"),
    [
        ("grpo/group", {"baseline": credit.mean, "scale": credit.std}),
        ("grpo/batch", {"baseline": credit.mean, "scale": credit.batch_std}),
        ("grpo/none", {"baseline": credit.mean, "scale": credit.no_scale}),
        ("rloo", {"baseline": credit.leave_one_out, "scale": credit.no_scale}),
    ],
)
def test_advantages_of_trl(label: str, axes: dict[str, Any]) -> None:
    case = fixture("inputs")["even"]
    made = fixture("trl")["even"]["advantages"][label]
    np.testing.assert_allclose(made["rewards"], case["rewards"], rtol=1e-6)  # float32 there
    np.testing.assert_allclose(advantages(case, **axes), made["advantages"], rtol=2e-6, atol=1e-6)


# --- losses of verl ------------------------------------------------------------------------------------------------

VERL: dict[str, dict[str, Any]] = {
    "vanilla/token-mean": {"surrogate": objective.pessimistic, "aggregate": objective.token_mean},
    "vanilla/seq-mean-token-mean": {"surrogate": objective.pessimistic, "aggregate": objective.sequence_mean},
    "dual_clip/token-mean": {
        "surrogate": partial(objective.dual_clipped, cap=1.05),
        "aggregate": objective.token_mean,
    },
    "gspo/seq-mean-token-mean": {
        "ratio": objective.sequence_ratio,
        "surrogate": objective.pessimistic,
        "aggregate": objective.sequence_mean,
    },
    "cispo/token-mean": {"surrogate": objective.detached, "aggregate": objective.token_mean},
    "geo_mean/token-mean": {"surrogate": objective.geometric, "aggregate": objective.sequence_mean},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("label", VERL)
def test_losses_of_verl(name: str, label: str) -> None:
    made = fixture("verl")[name]["losses"][label]
    view, leaf = case_view(fixture("inputs")[name])
    loss, gradient = loss_and_gradient(view, leaf, clip_low=made["low"], clip_high=made["high"], **VERL[label])
    close(loss, made["loss"])
    close(gradient, made["gradient"])
    assert np.abs(made["gradient"]).max() > 1e-3


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("mode", "aggregate"),
    [
        ("token-mean", objective.token_mean),
        ("seq-mean-token-mean", objective.sequence_mean),
        ("seq-mean-token-sum", objective.sequence_sum),
        ("seq-mean-token-sum-norm", objective.constant_length),  # verl's constant is the padded length, 8 here
    ],
)
def test_aggregations_of_verl(name: str, mode: str, aggregate: Any) -> None:
    case = fixture("inputs")[name]
    view, _ = case_view(case, limit=8)
    close(aggregate(tensor(case["losses"]), view), fixture("verl")[name]["aggregations"][mode])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
def test_divergences_of_verl(name: str, kind: str) -> None:
    view, _ = case_view(fixture("inputs")[name])
    ours = getattr(objective, kind)(view).detach()
    expected = tensor(fixture("verl")[name]["kl"][kind])
    close(ours[view.mask], expected[view.mask])


# --- losses of TRL -------------------------------------------------------------------------------------------------

TRL: dict[str, dict[str, Any]] = {
    "grpo": {},
    "grpo_clip_high": {"clip_high": 0.28},
    "grpo_kl": {"kl": 0.04},
    # the default of TRL 1.16; GRPO's paper has the plain k3
    "grpo_weighted_kl": {"kl": 0.04, "divergence": objective.weighted_k3},
    "bnpo": {"aggregate": objective.token_mean},
    # TRL's entropy bonus is a mean over tokens whatever the policy term's mean is; ours follows the aggregation
    "bnpo_entropy": {"aggregate": objective.token_mean, "entropy": 0.01},
    "dapo": {"aggregate": objective.token_mean, "clip_high": 0.28},
    "dr_grpo": {"aggregate": objective.constant_length},
    # TRL's epsilon_high is the largest weight itself
    "cispo": {
        "surrogate": objective.detached,
        "aggregate": objective.token_mean,
        "clip_low": 1.0,
        "clip_high": 0.3,
    },
    "gspo": {"ratio": objective.sequence_ratio, "clip_low": 0.02, "clip_high": 0.03},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("label", TRL)
def test_losses_of_trl(name: str, label: str) -> None:
    made = fixture("trl")[name]["grpo"][label]
    view, leaf = case_view(fixture("inputs")[name], limit=fixture("trl")["limit"])
    loss, gradient = loss_and_gradient(view, leaf, **TRL[label])
    close(loss, made["loss"])
    close(gradient, made["gradient"])


@pytest.mark.parametrize("name", CASES)
def test_rloo_of_trl_has_our_gradient_on_policy(name: str) -> None:
    """TRL adds PPO's clipping to the ratio of whole answers, which the paper argues against; on fresh samples the
    gradients are the same."""
    case = fixture("inputs")[name]
    view, leaf = case_view(case)
    view.old = view.logprob.detach()
    _, gradient = loss_and_gradient(view, leaf, surrogate=objective.unclipped, aggregate=objective.sequence_sum)
    close(gradient, fixture("trl")[name]["rloo"]["gradient"])


def pairs_view(name: str) -> tuple[Tokens, torch.Tensor]:
    """The case with its first half as chosen and its second half as rejected answers."""
    case = fixture("inputs")[name]
    count = len(case["mask"]) // 2
    case = {k: v[: 2 * count] for k, v in case.items()}
    view, leaf = case_view(case)
    view.advantage = tensor([1.0] * count + [-1.0] * count)[:, None].expand_as(leaf).masked_fill(~view.mask, 0.0)
    view.columns = {"pair": torch.arange(count).repeat(2)}
    return view, leaf


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", [preference.sigmoid, preference.hinge])
def test_dpo_losses_of_trl(name: str, form: Any) -> None:
    made = fixture("trl")[name]["dpo"][form.__name__]
    view, leaf = pairs_view(name)
    learner = preference.Preference(beta=made["beta"], form=form)
    learner.counts = {}
    loss = learner.loss(view)
    loss.backward()
    close(loss.item(), made["loss"])
    close(leaf.grad, made["gradient"])


@pytest.mark.parametrize("name", CASES)
def test_ipo_of_trl_is_ours_of_means(name: str) -> None:
    """IPO's paper sums over the tokens of an answer, TRL takes their mean."""
    made = fixture("trl")[name]["dpo"]["ipo"]
    view, _ = pairs_view(name)
    view.logprob = view.logprob / view.length[:, None]
    view.reference = view.reference / view.length[:, None]
    chosen, rejected = preference.split(view)
    close(preference.ipo(chosen - rejected, made["beta"]).mean().item(), made["loss"])
