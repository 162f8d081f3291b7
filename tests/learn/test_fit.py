"""The learners on a real model: micro-batches, minibatches, silent rows, bad gradients, resuming."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from tests.learn.learning_system import gradients, make_batch, make_role, make_rows, tell, weights

from evolvent.core.errors import UserError
from evolvent.core.records import Batch
from evolvent.core.step import Step
from evolvent.learn import objective as o
from evolvent.learn.policy_gradient import PolicyGradient
from evolvent.learn.preference import Preference, pair_batch
from evolvent.learn.supervised import Supervised

PLAIN = {"lr": 1e-3, "max_grad_norm": 1e9}
VARIANTS: dict[str, dict[str, Any]] = {
    "grpo": {},
    "token mean": {"aggregate": o.token_mean},
    "constant length": {"aggregate": o.constant_length},
    "kl": {"kl": 0.1},
    "kl and entropy": {"kl": 0.1, "entropy": 0.05, "aggregate": o.token_mean},
    "minibatches": {"minibatches": 3},
    "epochs and minibatches": {"minibatches": 2, "epochs": 2, "kl": 0.1},
    "gspo": {"ratio": o.sequence_ratio},
    "prefix": {"ratio": o.prefix_ratio, "surrogate": o.unclipped},
    "corrected": {"correction": o.truncated},
}


def learned(learner: Any, *options: Any, seed: int = 3, **more: Any) -> tuple[torch.Tensor, Step]:
    """Gradient of the last update on a fixed batch, and the step."""
    role = make_role(learner)
    step = tell(role, make_batch(role, seed=seed, **more), *options)
    return gradients(role), step


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_gradient_does_not_depend_on_micro_batches(variant: str) -> None:
    whole, step = learned(PolicyGradient(**PLAIN, **VARIANTS[variant], micro_tokens=10**6))
    assert whole.abs().max() > 1e-4
    for budget in (1, 45, 110):
        parts, other = learned(PolicyGradient(**PLAIN, **VARIANTS[variant], micro_tokens=budget))
        np.testing.assert_allclose(parts, whole, atol=1e-5 * float(whole.abs().max()))
        assert other.metrics["learn/loss"] == pytest.approx(step.metrics["learn/loss"], abs=1e-5)
        assert other.metrics["learn/ratio_variance"] == pytest.approx(step.metrics["learn/ratio_variance"], rel=1e-3)


def test_recomputing_activations_leaves_the_gradient_alone() -> None:
    whole, _ = learned(PolicyGradient(**PLAIN))
    role = make_role(PolicyGradient(**PLAIN, recompute=True))
    assert role.policy.model.checkpointing
    tell(role, make_batch(role, seed=3))
    np.testing.assert_allclose(gradients(role), whole, atol=1e-5 * float(whole.abs().max()))


def test_too_large_a_micro_batch_says_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    role = make_role(PolicyGradient(**PLAIN))

    def pass_over(*args: Any, **options: Any) -> torch.Tensor:
        return torch.empty(2**55)  # the allocator really refuses

    batch = make_batch(role)
    monkeypatch.setattr(role.policy.model, "forward", pass_over)
    with pytest.raises(UserError, match=r"out of memory in `learn`: lower learn.micro_tokens or set learn.recompute"):
        tell(role, batch)


def test_several_batches_with_weights_for_each_token_and_coefficients() -> None:
    def run(budget: int) -> torch.Tensor:
        role = make_role(PolicyGradient(**PLAIN, micro_tokens=budget, minibatches=2))
        first, second = make_batch(role, 9, seed=1), make_batch(role, 7, seed=2)
        rng = np.random.default_rng(0)
        second.weight = [rng.normal(0, 1, len(t.tokens)).astype(np.float32) for t in second.rows]
        second.coefficient, second.name = 0.3, "replay"
        tell(role, first, second)
        return gradients(role)

    whole = run(10**6)
    np.testing.assert_allclose(run(60), whole, atol=1e-5 * float(whole.abs().max()))


def test_a_coefficient_multiplies_the_gradient() -> None:
    def run(coefficient: float) -> torch.Tensor:
        role = make_role(PolicyGradient(**PLAIN))
        batch = make_batch(role)
        batch.coefficient = coefficient
        tell(role, batch)
        return gradients(role)

    np.testing.assert_allclose(run(0.25), 0.25 * run(1.0), atol=1e-7)


def test_a_weight_for_each_token_that_is_the_same_is_the_weight_of_the_row() -> None:
    role, other = make_role(PolicyGradient(**PLAIN)), make_role(PolicyGradient(**PLAIN))
    batch = make_batch(role)
    tell(role, batch)
    spread = [np.full(len(t.tokens), w, np.float32) for t, w in zip(batch.rows, batch.weight, strict=True)]
    tell(other, Batch(batch.rows, spread, columns=batch.columns))
    np.testing.assert_allclose(gradients(other), gradients(role), atol=1e-7)


def test_the_order_of_rows_does_not_matter() -> None:
    role, other = make_role(PolicyGradient(**PLAIN)), make_role(PolicyGradient(**PLAIN))
    batch = make_batch(role)
    tell(role, batch)
    order = np.random.default_rng(0).permutation(len(batch.rows))
    columns = {"group": batch.columns["group"][order]}
    tell(other, Batch([batch.rows[i] for i in order], batch.weight[order], columns=columns))  # type: ignore[index]
    np.testing.assert_allclose(gradients(other), gradients(role), atol=1e-6)


@pytest.mark.parametrize("aggregate", [o.token_mean, o.sequence_mean, o.constant_length])
def test_silent_rows_cost_nothing_and_count_in_the_means(aggregate: Any) -> None:
    class Loud(PolicyGradient):
        def silent(self, batch: Batch) -> np.ndarray:
            return np.zeros(len(batch.rows), bool)

    quiet, step = learned(PolicyGradient(**PLAIN, aggregate=aggregate))
    loud, other = learned(Loud(**PLAIN, aggregate=aggregate))
    np.testing.assert_allclose(quiet, loud, atol=1e-7)
    assert (step.metrics["learn/rows"], other.metrics["learn/rows"]) == (7, 10)


def test_rows_without_advantage_are_not_silent_under_a_kl_term() -> None:
    role = make_role(PolicyGradient(**PLAIN, kl=0.1))
    batch = make_batch(role)
    batch.weight = np.zeros(len(batch.rows), np.float32)
    assert tell(role, batch).changes != []
    role = make_role(PolicyGradient(**PLAIN))
    assert tell(role, batch).changes == []


@pytest.mark.parametrize("batches", ["none", "empty", "silent"])
def test_nothing_to_learn_from_makes_no_update_and_no_version(batches: str) -> None:
    role = make_role(PolicyGradient(**PLAIN, minibatches=2))
    batch = make_batch(role)
    made = {
        "none": [],
        "empty": [Batch([], np.zeros(0, np.float32))],
        "silent": [Batch(batch.rows, np.zeros(len(batch.rows), np.float32))],
    }[batches]
    before = weights(role)
    step = tell(role, *made)
    assert step.changes == []
    assert role.policy.version == 0
    assert torch.equal(weights(role), before)
    assert role.ledger.of("trained") == 0


def test_more_minibatches_than_rows() -> None:
    role = make_role(PolicyGradient(**PLAIN, minibatches=20))
    step = tell(role, make_batch(role, 6))
    assert step.metrics["learn/updates"] == 4  # rows with an advantage
    assert role.policy.version == 1


def test_a_gradient_that_is_not_finite_is_skipped_and_counted() -> None:
    role = make_role(PolicyGradient(**PLAIN))
    batch = make_batch(role)
    batch.weight[3] = np.nan  # type: ignore[index]
    before = weights(role)
    step = tell(role, batch)
    assert step.metrics["learn/skipped"] == 1
    assert step.changes == []
    assert torch.equal(weights(role), before)
    assert tell(role, make_batch(role)).changes[0].after == 1  # and the next one is as if nothing had been


def test_the_first_update_on_fresh_samples_has_ratio_one() -> None:
    _, step = learned(PolicyGradient(**PLAIN), drift=0.0)
    assert step.metrics["learn/ratio_variance"] == pytest.approx(0, abs=1e-10)
    assert step.metrics["learn/clipped_high"] == step.metrics["learn/clipped_low"] == 0


def test_with_a_correction_the_ratio_is_to_the_recomputed_policy() -> None:
    """Drift between sampler and trainer goes into the correction, not into the ratio."""
    _, step = learned(PolicyGradient(**PLAIN, correction=o.truncated), drift=0.3)
    assert step.metrics["learn/ratio_variance"] == pytest.approx(0, abs=1e-10)
    role = make_role(PolicyGradient(**PLAIN, correction=o.truncated))
    tell(role, make_batch(role))
    assert role.ledger.of("prefilled") > 0


def test_minibatches_share_the_rows_out() -> None:
    """Every row once an epoch, and the first update is that of its own rows alone."""
    role = make_role(PolicyGradient(**PLAIN, minibatches=2, epochs=3))
    batch = make_batch(role)
    step = tell(role, batch)
    assert step.metrics["learn/updates"] == 6
    assert step.metrics["learn/rows"] == 3 * np.count_nonzero(batch.weight)
    live = [t for t, w in zip(batch.rows, batch.weight, strict=True) if w]
    assert role.ledger.of("trained") == 3 * sum(int(np.flatnonzero(t.mask)[-1]) + 1 for t in live)


def test_warm_up_raises_the_learning_rate_update_by_update() -> None:
    role = make_role(PolicyGradient(lr=1e-3, warmup=4, minibatches=2))
    tell(role, make_batch(role))
    assert role.slots["learn"].optimizer.param_groups[0]["lr"] == pytest.approx(5e-4)
    tell(role, make_batch(role), t=1)
    tell(role, make_batch(role), t=2)
    assert role.slots["learn"].optimizer.param_groups[0]["lr"] == pytest.approx(1e-3)


def test_a_learner_says_its_rate_by_the_gradient() -> None:
    class Halved(PolicyGradient):
        """As `PolicyGradient`; notes the gradients, and takes half the rate."""

        def rate(self, s: Step) -> float:
            self.seen = torch.cat([p.grad.flatten() for p in self.parameters.values() if p.grad is not None])
            return 0.5 * super().rate(s)

    role, other = (make_role(kind(lr=1e-3, max_grad_norm=1e-2, warmup=2)) for kind in (Halved, PolicyGradient))
    before = weights(role)
    for each in (role, other):
        tell(each, make_batch(each))
    assert float(role.slots["learn"].seen.norm()) == pytest.approx(1e-2, rel=1e-3)
    half, whole = weights(role) - before, weights(other) - before
    torch.testing.assert_close(half, whole / 2, atol=1e-7, rtol=1e-3)


def test_the_gradient_norm_is_clipped() -> None:
    role, other = make_role(PolicyGradient(lr=1e-3, max_grad_norm=1e-3)), make_role(PolicyGradient(**PLAIN))
    step = tell(role, make_batch(role))
    tell(other, make_batch(other))
    assert step.metrics["learn/grad_norm"] == pytest.approx(float(gradients(other).norm()), rel=1e-5)
    assert float(gradients(role).norm()) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("learner", [PolicyGradient, Supervised])
def test_resuming_repeats_the_same_bits(learner: Any) -> None:
    role = make_role(learner(lr=1e-3, minibatches=2, warmup=5))
    for t in range(3):
        if t == 2:
            saved = copy.deepcopy((role.policy.state_dict(), role.slots["learn"].state_dict()))
        tell(role, make_batch(role, seed=t), t=t)
    again = make_role(learner(lr=1e-3, minibatches=2, warmup=5))
    again.policy.load_state_dict(saved[0])
    again.slots["learn"].load_state_dict(saved[1])
    tell(again, make_batch(again, seed=2), t=2)
    assert torch.equal(weights(again), weights(role))
    assert again.policy.version == role.policy.version == 3


def test_supervised_learning_on_weighted_tokens() -> None:
    """The gradient is that of the weighted log-likelihood, divided by the number of tokens."""
    role = make_role(Supervised(**PLAIN, micro_tokens=70))
    rows = make_rows(role, 6)
    rng = np.random.default_rng(0)
    chosen = [rng.random(len(t.tokens)).astype(np.float32) for t in rows]
    step = tell(role, Batch(rows, chosen, name="chosen"))
    found = gradients(role)
    other = make_role(Supervised(**PLAIN))
    model, total, loss = other.policy.model, 0, torch.zeros(())
    for t, w in zip(rows, chosen, strict=True):
        tokens = torch.from_numpy(t.tokens.astype(np.int64))[None]
        logits = model.head(model(tokens))[0] / t.temperature
        logprob = torch.log_softmax(logits[:-1], -1).gather(1, tokens[0, 1:, None])[:, 0]
        keep = torch.from_numpy(t.mask[1:])
        loss = loss - (logprob * torch.from_numpy(w[1:]))[keep].sum()
        total += int(keep.sum())
    (loss / total).backward()
    np.testing.assert_allclose(found, gradients(other), atol=1e-6)
    assert step.metrics["learn/loss"] == pytest.approx(loss.item() / total, rel=1e-5)


@pytest.mark.parametrize("budget", [1, 30, 70])
def test_pairs_are_never_parted(budget: int) -> None:
    def run(budget: int) -> tuple[torch.Tensor, list[list[int]]]:
        seen: list[list[int]] = []

        class Watched(Preference):
            def loss(self, k: o.Tokens) -> torch.Tensor:
                seen.append(k.columns["pair"].tolist())
                return super().loss(k)

        role = make_role(Watched(**PLAIN, beta=0.5, micro_tokens=budget, minibatches=2))
        rows = make_rows(role, 12)
        tell(role, pair_batch(list(zip(rows[::2], rows[1::2], strict=True))))
        return gradients(role), seen

    whole, _ = run(10**6)
    found, seen = run(budget)
    np.testing.assert_allclose(found, whole, atol=1e-5 * float(whole.abs().max()))
    assert all(sorted(x) == sorted(2 * sorted(set(x))) for x in seen)
    assert sorted(i for x in seen for i in set(x)) == list(range(6))
    assert len(seen) > 2


def test_a_batch_without_pairs_is_refused() -> None:
    role = make_role(Preference(**PLAIN))
    with pytest.raises(UserError, match="pairs"):
        tell(role, make_batch(role))


@pytest.mark.parametrize(
    ("learner", "what"),
    [
        (PolicyGradient(epochs=0), "learn.epochs"),
        (PolicyGradient(clip_low=1.5), "learn.clip_low"),
        (PolicyGradient(kl=-0.1), "learn.kl"),
        (Preference(beta=0.0), "learn.beta"),
    ],
)
def test_values_out_of_range_are_refused(learner: Any, what: str) -> None:
    with pytest.raises(UserError, match=what):
        learner.check(None)


@pytest.mark.parametrize(
    ("settings", "what"),
    [({"lr": 0.0}, "no-change"), ({"lr": float("inf")}, "learn.lr"), ({"betas": (0.9, 1.0)}, "learn.betas")],
)
def test_rates_that_no_optimizer_takes_are_refused(settings: Any, what: str) -> None:
    with pytest.raises(UserError, match=what):
        make_role(PolicyGradient(**{**PLAIN, **settings}))
