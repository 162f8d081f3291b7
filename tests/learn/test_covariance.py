"""Clip-cov: which tokens are hit, that they lose their gradient, and what its choice depends on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.learn.learning_system import gradients, make_batch, make_role, make_rows, tell

from evolvent.core.errors import UserError
from evolvent.core.random import stream
from evolvent.core.records import Batch
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.learn.covariance import ClipCov, choose
from evolvent.learn.policy_gradient import PolicyGradient


def around(role: Role, **fields: Any) -> ClipCov:
    """The wrap around the role's learner."""
    part = ClipCov(role.slots["learn"], **fields)
    part.setup(role)
    return part


def plain_role(**fields: Any) -> Role:
    """A role whose learner does not clip gradients."""
    return make_role(PolicyGradient(lr=1e-9, max_grad_norm=1e9, **fields))


def test_the_band_by_hand() -> None:
    logprob = np.array([0.0, -1.0, -2.0, -5.0, -2.0])  # mean -2
    advantage = np.array([2.0, 1.0, 0.0, -2.0, -1.0])  # mean 0
    # covariances: 2 * 2 = 4, 1 * 1 = 1, 0, -3 * -2 = 6, 0
    found = choose(logprob, advantage, 1.0, 1.0, 40.0, stream(0))
    assert found.tolist() == [0, 3]  # bounds are open: exactly 1 is out
    assert choose(logprob, advantage, 1.0, 0.5, 5.0, stream(0)).tolist() == [0, 1]
    assert len(choose(logprob, advantage, 0.2, 0.5, 40.0, stream(0))) == 1  # a fifth of five tokens
    assert len(choose(logprob, advantage, 0.01, 0.5, 40.0, stream(0))) == 1  # at least one
    assert len(choose(logprob, advantage, 0.0, 0.5, 40.0, stream(0))) == 0
    assert len(choose(logprob, advantage, 1.0, 10.0, 40.0, stream(0))) == 0


def test_every_token_in_the_band_may_be_hit() -> None:
    logprob, advantage = np.linspace(-6, 0, 50), np.linspace(-2, 2, 50)
    covariance = (logprob - logprob.mean()) * (advantage - advantage.mean())
    band = set(np.flatnonzero((covariance > 1) & (covariance < 40)).tolist())
    hit = {int(i) for seed in range(200) for i in choose(logprob, advantage, 0.04, 1.0, 40.0, stream(seed))}
    assert hit == band


def test_hit_tokens_lose_their_gradient_and_nothing_else_does() -> None:
    """Equal to a batch whose token weights were blanked by hand, with the covariance worked out by hand."""
    role = plain_role()
    batch = make_batch(role, 10, drift=0.0)
    part = around(role, ratio=1.0, low=0.1, high=40.0)
    s = Step(0, role)
    part.tell([batch], s)
    found = gradients(role)

    places = [(i, int(j)) for i, t in enumerate(batch.rows) for j in np.flatnonzero(t.mask)]
    logprob = np.array([batch.rows[i].logprob[j] for i, j in places], np.float64)
    advantage = np.array([batch.weight[i] for i, _ in places], np.float64)
    covariance = (logprob - logprob.mean()) * (advantage - advantage.mean())
    weights = [np.full(len(t.tokens), w, np.float32) for t, w in zip(batch.rows, batch.weight, strict=True)]
    hit = [(p, c) for p, c in zip(places, covariance, strict=True) if 0.1 < c < 40]
    for (i, j), _ in hit:
        weights[i][j] = 0.0
    assert 0 < len(hit) < len(places)
    assert s.metrics["clip_cov"] == pytest.approx(len(hit) / len(places))
    other = plain_role()
    tell(other, Batch(batch.rows, weights, columns=batch.columns))
    assert (found - gradients(other)).abs().max() <= 1e-6 * found.abs().max()
    untouched = plain_role()
    tell(untouched, batch)
    assert (found - gradients(untouched)).norm() > 1e-3 * found.norm()


@pytest.mark.parametrize("micro", [16, 64, 4096])
def test_the_choice_does_not_depend_on_micro_batches(micro: int) -> None:
    found = []
    for tokens in (micro, 4096):
        role = plain_role(micro_tokens=tokens)
        around(role, ratio=0.1, low=0.05).tell([make_batch(role, 10, drift=0.0)], Step(0, role))
        found.append(gradients(role))
    assert (found[0] - found[1]).abs().max() <= 1e-5 * found[1].abs().max()


def test_the_choice_repeats_with_the_step_and_changes_with_it() -> None:
    role = plain_role()
    part, batch = around(role, ratio=0.02, low=0.0), make_batch(role, 20)

    def hit(t: int) -> list[list[float]]:
        made, count, tokens = part.clipped(batch, Step(t, role).rng("clip-cov", 0))
        assert count == max(1, int(0.02 * tokens))
        return [np.asarray(w).tolist() for w in made.weight]

    assert hit(0) == hit(0)
    assert hit(0) != hit(1)


def test_log_probs_of_other_versions_are_worked_out_anew() -> None:
    role = plain_role()
    part = around(role)
    rows = make_rows(role, 6, drift=0.0)
    truth = [t.logprob.copy() for t in rows]
    for t in rows[:3]:
        t.version = -1
        t.logprob[t.mask] = -9.0
    found = part.logprobs(rows)
    for t, a, b in zip(rows, found, truth, strict=True):
        assert a[t.mask] == pytest.approx(b[t.mask], abs=1e-5)
    assert role.ledger.of("prefilled") == sum(len(t.tokens) for t in rows[:3])


def test_nothing_in_the_band_changes_nothing() -> None:
    role = plain_role()
    batch = make_batch(role, 6)
    assert around(role, low=1e6, high=1e7).clipped(batch, stream(0))[0] is batch
    s = Step(0, role)
    assert around(role).tell([Batch([], np.zeros(0, np.float32))], s) == []


def test_values_out_of_range_are_refused() -> None:
    role = plain_role()
    for bad in ({"ratio": 1.5}, {"low": 2.0, "high": 1.0}):
        with pytest.raises(UserError, match=r"learn\.clip_cov"):
            around(role, **bad).check(None)
