"""The token axes: bounds, closed forms, equalities on policy, and masks that hide."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learn.learning_views import loss_and_gradient, make_view, random_view, tensor

from evolvent.learn import objective as o
from evolvent.learn.objective import Tokens

seeds = st.integers(0, 2**32 - 1)
RATIOS = [o.token_ratio, o.sequence_ratio, o.prefix_ratio]
SURROGATES = [o.pessimistic, o.unclipped, o.dual_clipped, o.detached, o.geometric, o.likelihood]
AGGREGATES = [o.token_mean, o.sequence_mean, o.constant_length, o.sequence_sum]
DIVERGENCES = [o.k1, o.k2, o.k3, o.weighted_k3]


# --- masks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("junk", [7.0, math.nan, math.inf])
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("surrogate", SURROGATES)
@settings(max_examples=4)
@given(seed=seeds)
def test_what_is_not_masked_never_matters(ratio: Any, surrogate: Any, junk: float, seed: int) -> None:
    """Neither value nor gradient depends on what stands where the policy did not write, nan included."""
    view, leaf = random_view(seed, rows=3, time=4)
    fields = {"ratio": ratio, "surrogate": surrogate, "kl": 0.1, "entropy": 0.01, "divergence": o.k3}
    loss, gradient = loss_and_gradient(view, leaf, **fields)
    dirty = leaf.detach().masked_fill(~view.mask, junk).requires_grad_()
    streams = {
        name: getattr(view, name).detach().masked_fill(~view.mask, junk)
        for name in ("old", "sampled", "advantage", "reference", "entropy")
    }
    other, other_gradient = loss_and_gradient(replace(view, logprob=dirty, **streams), dirty, **fields)
    assert other == loss
    assert torch.equal(other_gradient, gradient)
    assert not gradient[~view.mask].any()


# --- ratio ---------------------------------------------------------------------------------------------------------


@given(seed=seeds)
def test_equal_log_probs_have_ratio_one(seed: int) -> None:
    view, _ = random_view(seed)
    view = replace(view, old=view.logprob.detach())
    for ratio in RATIOS:
        assert torch.equal(ratio(view), torch.ones_like(view.old))


def test_ratios_in_closed_form() -> None:
    old = tensor([[-1.0, -1.0, -1.0, -1.0]])
    new = old + tensor([[0.1, 0.2, 9.0, -0.6]])
    view = make_view(new, old, torch.ones_like(old), torch.tensor([[True, True, False, True]]))
    np.testing.assert_allclose(o.token_ratio(view)[0, [0, 1, 3]], np.exp([0.1, 0.2, -0.6]))
    np.testing.assert_allclose(o.sequence_ratio(view)[0], np.full(4, np.exp(-0.3 / 3)))
    np.testing.assert_allclose(o.prefix_ratio(view)[0, [0, 1, 3]], np.exp([0.1, 0.3, -0.3]))


@given(seed=seeds)
def test_the_sequence_ratio_varies_less_than_token_ratios(seed: int) -> None:
    """GSPO's point: a mean of log-ratios is closer to 0 than they are."""
    view, _ = random_view(seed)
    token, sequence = (torch.log(r(view)).square() for r in (o.token_ratio, o.sequence_ratio))
    assert view.row_sum(sequence).sum() <= view.row_sum(token).sum() + 1e-12


# --- surrogate -----------------------------------------------------------------------------------------------------


@given(seed=seeds, low=st.floats(0, 0.9), high=st.floats(0, 2))
def test_clipping_never_increases_the_objective(seed: int, low: float, high: float) -> None:
    view, _ = random_view(seed)
    for ratio in RATIOS:
        r = ratio(view)
        assert (o.pessimistic(view, r, low, high) >= o.unclipped(view, r, low, high) - 1e-12).all()
    r = o.token_ratio(view)
    whole = -torch.exp(view.row_sum(torch.log(r)) / view.length)[:, None] * view.advantage
    assert (o.geometric(view, r, low, high) >= whole - 1e-12).all()


@given(seed=seeds)
def test_dual_clipping_bounds_the_loss_of_bad_answers(seed: int) -> None:
    view, _ = random_view(seed, spread=2.0)
    r = o.token_ratio(view)
    loss, plain = o.dual_clipped(view, r, 0.2, 0.2, cap=1.5), o.pessimistic(view, r, 0.2, 0.2)
    bad = view.advantage < 0
    assert (loss[bad] <= -1.5 * view.advantage[bad] + 1e-12).all()
    assert torch.equal(loss[~bad], plain[~bad])


def token(ratio: float, advantage: float, surrogate: Any, **fields: Any) -> float:
    """Gradient of one token's loss with respect to its log-prob."""
    leaf = tensor([[math.log(ratio)]]).requires_grad_()
    view = make_view(leaf, torch.zeros(1, 1, dtype=torch.float64), tensor([[advantage]]), torch.ones(1, 1).bool())
    return loss_and_gradient(view, leaf, surrogate=surrogate, **fields)[1].item()


@pytest.mark.parametrize(
    ("ratio", "advantage", "surrogate", "expected"),
    [
        (1.1, 2.0, o.pessimistic, -2.2),  # inside the band
        (1.3, 2.0, o.pessimistic, 0.0),  # already above: nothing more to win
        (1.3, -2.0, o.pessimistic, 2.6),  # above, and bad: pushed back
        (0.7, -2.0, o.pessimistic, 0.0),  # already below
        (0.7, 2.0, o.pessimistic, -1.4),  # below, and good: pushed up
        (1.3, 2.0, o.unclipped, -2.6),
        (1.3, 2.0, o.detached, -2.4),  # the weight is cut at 1.2, the gradient stays
        (0.7, -2.0, o.detached, 1.6),
        (1.3, 2.0, o.likelihood, -2.0),
    ],
)
def test_the_gradient_of_one_token(ratio: float, advantage: float, surrogate: Any, expected: float) -> None:
    assert token(ratio, advantage, surrogate, clip_low=0.2, clip_high=0.2) == pytest.approx(expected)


# --- equalities on policy --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [o.token_ratio, o.sequence_ratio])
@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_on_policy_all_surrogates_are_the_policy_gradient(ratio: Any, surrogate: Any, aggregate: Any) -> None:
    """GRPO without std, GSPO, CISPO, GMPO and REINFORCE with a group baseline differ off policy only."""
    view, leaf = random_view(3)
    view = replace(view, logprob=leaf, old=leaf.detach())
    _, plain = loss_and_gradient(view, leaf, surrogate=o.likelihood, aggregate=aggregate)
    view = replace(view, logprob=leaf)
    _, found = loss_and_gradient(view, leaf, ratio=ratio, surrogate=surrogate, aggregate=aggregate)
    np.testing.assert_allclose(found, plain, atol=1e-12)


# --- correction ----------------------------------------------------------------------------------------------------


def test_corrections_in_closed_form() -> None:
    view, _ = random_view(1, rows=1, time=3)
    gap = tensor([[0.0, 3.0, -3.0]])
    view = replace(view, mask=torch.ones(1, 3).bool(), sampled=view.old - gap)
    np.testing.assert_allclose(o.truncated(view, cap=2.0)[0], [1.0, 2.0, math.exp(-3)])
    np.testing.assert_allclose(o.masked(view, low=0.5, high=5.0)[0], [1.0, 0.0, 0.0])
    assert o.uncorrected(view).tolist() == [[1.0, 1.0, 1.0]]


# --- KL ------------------------------------------------------------------------------------------------------------


@given(seed=seeds)
def test_k3_and_k2_are_never_negative(seed: int) -> None:
    view, _ = random_view(seed, spread=2.0)
    assert (o.k3(view) >= 0).all()
    assert (o.k2(view) >= 0).all()


def categorical(seed: int) -> tuple[torch.Tensor, Tokens, torch.Tensor]:
    """Every outcome of a categorical as one token, with its probability: expectations are exact sums."""
    rng = np.random.default_rng(seed)
    logits = tensor(rng.normal(0, 1, 6)).requires_grad_()
    reference = torch.log_softmax(tensor(rng.normal(0, 1, 6)), 0)
    logprob = torch.log_softmax(logits, 0)
    view = make_view(
        logprob[:, None], logprob.detach()[:, None], torch.ones(6, 1, dtype=torch.float64), torch.ones(6, 1).bool(),
        reference=reference[:, None],
    )  # fmt: skip
    return logits, view, reference


@given(seed=seeds)
def test_values_of_the_estimators_are_unbiased(seed: int) -> None:
    logits, view, reference = categorical(seed)
    p = torch.softmax(logits, 0)
    exact = (p * (torch.log(p) - reference)).sum().item()
    for divergence in (o.k1, o.k3, o.weighted_k3):
        assert (p * divergence(view)[:, 0]).sum().item() == pytest.approx(exact, rel=1e-9)


@given(seed=seeds)
def test_gradients_of_the_estimators(seed: int) -> None:
    """Expected over samples: k1 none, k2 and weighted k3 that of KL(pi || ref), k3 that of KL(ref || pi)."""
    logits, view, reference = categorical(seed)
    p = torch.softmax(logits, 0)
    (reverse,) = torch.autograd.grad((p * (torch.log(p) - reference)).sum(), logits, retain_graph=True)
    q = reference.exp()
    (forward,) = torch.autograd.grad((q * (reference - torch.log(p))).sum(), logits, retain_graph=True)
    expected = {o.k1: torch.zeros(6), o.k2: reverse, o.weighted_k3: reverse, o.k3: forward}
    for divergence, wanted in expected.items():
        (found,) = torch.autograd.grad((p.detach() * divergence(view)[:, 0]).sum(), logits, retain_graph=True)
        np.testing.assert_allclose(found, wanted, atol=1e-9)


# --- aggregation ---------------------------------------------------------------------------------------------------


def test_aggregations_in_closed_form() -> None:
    x = tensor([[1.0, 2.0, 3.0], [10.0, 99.0, 99.0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    view = make_view(x, x, x, mask, limit=5)
    assert o.token_mean(x, view).item() == 16 / 4
    assert o.sequence_mean(x, view).item() == (2 + 10) / 2
    assert o.sequence_sum(x, view).item() == (6 + 10) / 2
    assert o.constant_length(x, view).item() == 16 / (2 * 5)


@given(seed=seeds)
def test_aggregations_add_up_over_parts(seed: int) -> None:
    """What a minibatch weighs does not depend on how it is cut: the parts divide by the whole's totals."""
    view, _ = random_view(seed)
    x = torch.randn(view.mask.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed % 2**31))
    for aggregate in AGGREGATES:
        parts = [aggregate(x[i : i + 1], one_row(view, i)) for i in range(len(x))]
        np.testing.assert_allclose(sum(parts), aggregate(x, view), atol=1e-12)


def one_row(view: Tokens, i: int) -> Tokens:
    """One row of a view, with the totals of all."""
    streams = {n: getattr(view, n)[i : i + 1].detach() for n in ("logprob", "old", "sampled", "advantage", "mask")}
    return Tokens(**streams, columns={}, totals=view.totals)


def test_the_length_bias_that_dr_grpo_removes() -> None:
    """GRPO's gradient for a token of a long wrong answer is smaller; with a constant length it is the same."""
    mask = torch.tensor([[True] * 8, [True] * 2 + [False] * 6])
    advantage = tensor([[-1.0] * 8, [-1.0] * 8])

    def weights(aggregate: Any) -> np.ndarray:
        leaf = torch.zeros(2, 8, dtype=torch.float64).requires_grad_()
        view = make_view(leaf, leaf.detach(), advantage, mask, limit=10)
        return loss_and_gradient(view, leaf, surrogate=o.unclipped, aggregate=aggregate)[1][:, 0].numpy()

    grpo, dr_grpo = weights(o.sequence_mean), weights(o.constant_length)
    assert grpo[1] / grpo[0] == pytest.approx(4.0)
    assert dr_grpo[1] / dr_grpo[0] == pytest.approx(1.0)


def test_the_band_is_what_the_counts_say() -> None:
    """`clipped_high` and `clipped_low` count the tokens whose gradient the clip takes away."""
    from evolvent.learn.policy_gradient import PolicyGradient

    view, leaf = random_view(5, rows=40, time=6, spread=0.4)
    learner = PolicyGradient(clip_low=0.2, clip_high=0.28, aggregate=o.token_mean)
    learner.counts = {}
    learner.loss(view).backward()
    dead = int(((leaf.grad == 0) & view.mask).sum())
    assert learner.counts["clipped_high"] + learner.counts["clipped_low"] == dead > 20
    assert learner.counts["tokens"] == int(view.mask.sum())
    wider = PolicyGradient(clip_low=0.2, clip_high=0.2, aggregate=o.token_mean)
    wider.counts = {}
    wider.loss(view)
    assert wider.counts["clipped_high"] > learner.counts["clipped_high"]
    assert wider.counts["clipped_low"] == learner.counts["clipped_low"]


def test_shapes_are_checked_in_tests() -> None:
    """The contracts of the signatures are live."""
    view, _ = random_view(0)
    with pytest.raises(Exception, match=r"[Tt]ype-check"):
        replace(view, old=view.old[:, 1:])
    with pytest.raises(Exception, match=r"[Tt]ype-check"):
        o.token_mean(view.old[0], view)
