"""NFT's loss: its credit and values by hand, and that its first gradient is that of GRPO and of Dr. GRPO."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from tests.learn.learning_system import gradients, make_role, make_rows, tell

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Group, Problem
from evolvent.core.step import Step
from evolvent.learn.negative import RatedCredit, equal, failures, negative_aware, odds
from evolvent.learn.objective import Tokens, Totals, constant_length, pessimistic, sequence_mean
from evolvent.learn.policy_gradient import PolicyGradient

GROUPS = [[1, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]]
RATES = [0.25, 0.75, 0.5]


def judged(role: object, outcomes: Sequence[Sequence[float]] = GROUPS, drift: float = 0.0) -> Step:
    """A step with judged groups, log-probs as the policy has them now (or `drift` away)."""
    rows = make_rows(role, sum(map(len, outcomes)), drift=drift)  # type: ignore[arg-type]
    flat = [x for group in outcomes for x in group]
    for t, x in zip(rows, flat, strict=True):
        t.reward("outcome", float(x))
    groups, start = [], 0
    for i, group in enumerate(outcomes):
        groups.append(Group(Problem(str(i), (), {}), rows[start : start + len(group)]))
        start += len(group)
    return Step(0, role, groups=groups)  # type: ignore[arg-type]


def learner(surrogate: object, aggregate: object = constant_length) -> PolicyGradient:
    """One update, with the gradient as it is."""
    return PolicyGradient(lr=1e-9, surrogate=surrogate, aggregate=aggregate, max_grad_norm=1e9)  # type: ignore[arg-type]


def test_credit_by_hand() -> None:
    role = make_role(learner(negative_aware))
    s = judged(role)
    (batch,) = RatedCredit(weight=failures)(s)
    assert batch.columns["group"].tolist() == [0] * 4 + [1] * 4 + [2] * 4  # two groups have no signal
    assert batch.columns["rate"] == pytest.approx(np.repeat(RATES, 4))
    assert batch.weight[:4] == pytest.approx([0.75, -0.25, -0.25, -0.25])  # r_i - r
    (batch,) = RatedCredit(weight=equal)(s)
    assert batch.weight[4:8] == pytest.approx([1.0, 1.0, 1.0, -3.0])
    (batch,) = RatedCredit(weight=odds)(s)
    assert batch.weight[8:] == pytest.approx([1.0, -1.0, 1.0, -1.0])


def test_rates_are_clamped() -> None:
    role = make_role(learner(negative_aware))
    (batch,) = RatedCredit(low=0.3, high=0.6)(judged(role, [[1, 0, 0, 0, 0], [1, 1, 1, 1, 0]]))
    assert batch.columns["rate"] == pytest.approx([0.3] * 5 + [0.6] * 5)
    assert batch.weight == pytest.approx([0.7] + [-0.3] * 4 + [0.4] * 4 + [-0.6])
    with pytest.raises(UserError, match=r"credit\.low"):
        RatedCredit(low=0.0).check(None)


def test_without_a_signal_there_is_no_batch() -> None:
    role = make_role(learner(negative_aware))
    assert RatedCredit()(judged(role, [[1, 1], [0, 0]])) == []
    assert RatedCredit()(judged(role, [[0.5, 0]])) == []  # nobody is right


def reference_advantages(scale: bool) -> list[float]:
    """GRPO's (population deviation) or Dr. GRPO's advantages of the groups with a signal."""
    found = []
    for group in (g for g in GROUPS if 0 < sum(g) < len(g)):
        mean = sum(group) / len(group)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in group) / len(group))
        found += [(x - mean) / (deviation if scale else 1.0) for x in group]
    return found


@pytest.mark.parametrize(("weight", "scale"), [(odds, True), (failures, False)])
@pytest.mark.parametrize("aggregate", [constant_length, sequence_mean])
def test_the_first_gradient_is_that_of_grpo_and_of_dr_grpo(
    weight: Callable[[float], float], scale: bool, aggregate: object
) -> None:
    ours = make_role(learner(negative_aware, aggregate))
    (batch,) = RatedCredit(weight=weight)(judged(ours))
    tell(ours, batch)
    theirs = make_role(learner(pessimistic, aggregate))
    tell(theirs, Batch(batch.rows, np.array(reference_advantages(scale), np.float32), columns=batch.columns))
    a, b = gradients(ours), gradients(theirs)
    assert a.norm() > 1e-3
    assert (a - b).abs().max() <= 1e-5 * b.abs().max()


def test_off_policy_the_two_part_ways() -> None:
    ours = make_role(learner(negative_aware))
    (batch,) = RatedCredit(weight=failures)(judged(ours, drift=0.3))
    tell(ours, batch)
    theirs = make_role(learner(pessimistic))
    tell(theirs, Batch(batch.rows, np.array(reference_advantages(False), np.float32), columns=batch.columns))
    a, b = gradients(ours), gradients(theirs)
    assert (a - b).norm() > 0.05 * b.norm()


def view(ratios: list[list[float]], advantage: list[float], rate: list[float]) -> Tokens:
    """Rows with given ratios."""
    logprob = torch.log(torch.tensor(ratios)).requires_grad_()
    weight = torch.tensor(advantage)[:, None].expand(logprob.shape)
    zero = torch.zeros(logprob.shape)
    mask = torch.ones(logprob.shape, dtype=torch.bool)
    return Tokens(logprob, zero, zero, weight, mask, {"rate": torch.tensor(rate)}, Totals(2, 6, 1, 10))


def test_values_and_gradients_of_every_token_by_hand() -> None:
    r = 0.25
    right, wrong = [0.5, 1.0, 2.0], [0.5, 1.0, 2.0]
    k = view([right, wrong], [0.75, -0.25], [r, r])  # w = 0.75
    loss = negative_aware(k, torch.exp(k.logprob), 0.2, 0.2, eps=1.0)
    values = [-0.75 * math.log(x) for x in right]
    implied = [(1 - r * x) / (1 - r) for x in wrong]  # 7/6, 1, 2/3: the last is clamped to 1
    values += [-0.75 * math.log(max(x, 1.0)) for x in implied]
    assert loss.flatten().tolist() == pytest.approx(values, abs=1e-6)
    (gradient,) = torch.autograd.grad(loss.sum(), k.logprob)
    slopes = [-0.75] * 3 + [0.75 * (r * x / (1 - r)) / max(y, 1.0) for x, y in zip(wrong, implied, strict=True)]
    assert gradient.flatten().tolist() == pytest.approx(slopes, abs=1e-6)


def test_a_lower_clamp_lets_the_value_follow() -> None:
    k = view([[1.0], [3.0]], [0.5, -0.5], [0.5, 0.5])  # implied ratio of the second: (1 - 1.5) / 0.5 = -1
    loss = negative_aware(k, torch.exp(k.logprob), 0.2, 0.2, eps=0.1)
    assert loss[1, 0].item() == pytest.approx(-0.5 * math.log(0.1), abs=1e-6)


def test_without_negatives_wrong_answers_have_no_say() -> None:
    role = make_role(learner(functools.partial(negative_aware, neg_weight=0.0)))
    (batch,) = RatedCredit()(judged(role))
    tell(role, batch)
    both = gradients(role)
    alone = make_role(learner(functools.partial(negative_aware, neg_weight=1.0)))
    positive = Batch(batch.rows, np.maximum(np.asarray(batch.weight), 0), columns=batch.columns)
    tell(alone, positive)
    assert (both - gradients(alone)).abs().max() <= 1e-6 * both.abs().max()


def test_a_batch_without_rates_is_refused() -> None:
    role = make_role(learner(negative_aware))
    with pytest.raises(UserError, match="no column `rate`"):
        tell(role, Batch(make_rows(role, 2), np.ones(2, np.float32)))
