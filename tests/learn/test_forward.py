"""The training pass against a plain one, and how rows are packed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.learn.learning_system import gradients, make_role, make_rows

from evolvent.learn import forward
from evolvent.learn.forward import pack, padded, token_logprobs
from evolvent.learn.policy_gradient import PolicyGradient


def test_log_probs_and_entropies_are_those_of_a_plain_pass() -> None:
    role = make_role(PolicyGradient())
    rows = make_rows(role, 7)
    tokens, mask, old, heat = padded(rows, 0, role.policy.device)
    logprob, entropy = token_logprobs(role.policy, tokens, mask, heat, with_entropy=True)
    assert entropy is not None
    model = role.policy.model
    for i, t in enumerate(rows):
        ids = torch.from_numpy(t.tokens.astype(np.int64))
        full = torch.log_softmax(model.head(model(ids[None]))[0] / t.temperature, -1)
        for at in np.flatnonzero(t.mask):
            assert logprob[i, at].item() == pytest.approx(full[at - 1, ids[at]].item(), abs=1e-5)
            assert entropy[i, at].item() == pytest.approx(-(full[at - 1].exp() * full[at - 1]).sum().item(), abs=1e-5)
            assert old[i, at].item() == t.logprob[at]
    assert not logprob[~mask].any()
    assert not entropy[~mask].any()
    plain, none = token_logprobs(role.policy, tokens, mask, heat)
    assert none is None
    np.testing.assert_allclose(plain.detach(), logprob.detach(), atol=1e-6)


def test_large_vocabularies_are_scored_in_parts(monkeypatch: Any) -> None:
    """Recomputing parts of the logits in the backward pass changes neither values nor gradients."""

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        role = make_role(PolicyGradient())
        tokens, mask, _, heat = padded(make_rows(role, 7), 0, role.policy.device)
        logprob, entropy = token_logprobs(role.policy, tokens, mask, heat, with_entropy=True)
        (logprob.sum() + entropy.sum()).backward()  # type: ignore[union-attr]
        return logprob.detach(), gradients(role)

    whole = run()
    monkeypatch.setattr(forward, "LOGIT_CHUNK", 500)  # 5 positions of 100 tokens
    for a, b in zip(run(), whole, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_columns_after_the_last_token_of_the_policy_are_left_off() -> None:
    rows = make_rows(make_role(PolicyGradient()), 9)
    tokens, mask, old, heat = padded(rows, 99, torch.device("cpu"))
    ends = [int(np.flatnonzero(t.mask)[-1]) + 1 for t in rows]
    assert tokens.shape[1] == max(ends) < max(len(t.tokens) for t in rows) + 1
    for i, (t, end) in enumerate(zip(rows, ends, strict=True)):
        assert tokens[i, :end].tolist() == t.tokens[:end].tolist()
        assert (tokens[i, end:] == 99).all()
        assert mask[i].sum().item() == t.sampled
        assert old[i, :end].tolist() == t.logprob[:end].tolist()
        assert heat[i].item() == pytest.approx(t.temperature)


@given(
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=12),
    budget=st.integers(1, 200),
    seed=st.integers(0, 1000),
)
def test_packing_keeps_units_whole_and_the_budget(sizes: list[int], budget: int, seed: int) -> None:
    lengths = np.random.default_rng(seed).integers(1, 40, sum(sizes))
    starts = np.cumsum([0, *sizes])
    units = [np.arange(a, b) for a, b in pairwise(starts)]
    batches = list(pack(units, lengths, budget))
    assert sorted(np.concatenate(batches).tolist()) == list(range(sum(sizes)))
    for batch in batches:
        inside = [u for u in units if set(u.tolist()) & set(batch.tolist())]
        assert sum(len(u) for u in inside) == len(batch)
        assert len(batch) * lengths[batch].max() <= budget or len(inside) == 1


def test_nothing_packs_into_nothing() -> None:
    assert list(pack([], np.zeros(0, int), 10)) == []
