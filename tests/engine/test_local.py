"""What makes the local engine fast changes nothing: fused maps, its own attention, caches that grow and shrink."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.toys import plain, random_policy, stub
from torch import nn

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.engine import local
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.branches import TokenTree
from evolvent.engine.local import CachedRunner, Linears, LocalEngine, attend, stacked
from evolvent.models.decoder import Decoder, Low, apply_low
from evolvent.models.policy import Policy

ACTORS = {"policy": Actor("policy", 0)}


def sampled(policy: Policy, lengths: list[int], how: Sampling | None = None, limit: int = 30) -> TokenTree:
    """Branches from random prompts of these lengths, to their end."""
    rng = np.random.default_rng(0)
    stubs = [stub(i, [1, *rng.integers(4, 90, n - 1).tolist()]) for i, n in enumerate(lengths)]
    tree = LocalEngine(policy, Ledger()).start(stubs, ACTORS, how or Sampling(), [limit] * len(stubs))
    tree.advance()
    return tree


@pytest.mark.parametrize(("heads", "kv"), [(4, 4), (4, 2), (4, 1)])
def test_attention_over_the_cache_is_that_of_torch(heads: int, kv: int) -> None:
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(3, heads, 1, 8, generator=generator)
    keys, values = (torch.randn(3, kv, 12, 8, generator=generator) for _ in range(2))
    last = torch.tensor([2, 11, 5])
    future = torch.arange(12) > last[:, None]
    mask = torch.zeros(3, 1, 12).masked_fill_(future[:, None], -torch.inf).repeat_interleave(kv, 0)
    theirs = F.scaled_dot_product_attention(q, keys, values, attn_mask=~future[:, None, None], enable_gqa=True)
    torch.testing.assert_close(attend(q, keys, values, mask), theirs, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("present", [("a", "b"), ("b",), ("a",), ()])
@pytest.mark.parametrize("fuse", [True, False])
def test_maps_that_are_one_product_change_as_they_would_alone(present: tuple[str, ...], fuse: bool) -> None:
    torch.manual_seed(0)
    layers = {"a": nn.Linear(6, 4), "b": nn.Linear(6, 3)}
    low = {n: Low(torch.randn(layers[n].out_features, r), torch.randn(6, r)) for n, r in (("a", 2), ("b", 3))}
    low = {n: low[n] for n in present}
    together, x = Linears(layers, fuse), torch.randn(2, 5, 6)
    alone = torch.cat([apply_low(layer(x), x, low.get(n)) for n, layer in layers.items()], -1)
    torch.testing.assert_close(together(x, together.change(low)), alone)


def test_members_without_a_change_get_zeros_and_ranks_are_padded() -> None:
    one, two = Low(torch.ones(4, 1), torch.ones(6, 1)), Low(torch.ones(4, 3), torch.ones(6, 3))
    made, x = stacked([None, one, two]), torch.ones(3, 1, 6)
    assert made.a.shape == (3, 4, 3)
    changed = apply_low(torch.zeros(3, 1, 4), x, made)
    assert changed[:, 0, 0].tolist() == [0, 6, 18]


def test_large_models_without_fused_copies_sample_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = random_policy()
    fused = sampled(policy, [3, 9])
    monkeypatch.setattr(local, "FUSE_BELOW", 0)
    apart = sampled(policy, [3, 9])
    assert all((a.tokens == b.tokens).all() for a, b in zip(fused.branches, apart.branches, strict=True))
    for a, b in zip(fused.branches, apart.branches, strict=True):
        np.testing.assert_allclose(a.logprob, b.logprob, atol=1e-5)


def test_new_weights_are_sampled_from_at_once() -> None:
    policy = random_policy()
    first = sampled(policy, [5])
    before = first.branches[0].tokens
    policy.set_weights({n: w * -1 for n, w in policy.weights().items()})
    second = sampled(policy, [5])
    after = second.branches[0]
    assert (after.tokens != before).any()
    np.testing.assert_allclose(after.logprob[5:], plain(policy, after.tokens)[4:], atol=1e-4)


def test_a_cache_grows_as_branches_do_and_shrinks_as_they_end() -> None:
    """Rows are dropped in bunches; what is left goes on as if nothing had happened."""
    policy = random_policy(spread=1.0)
    rng = np.random.default_rng(0)
    stubs = [stub(i, [1, *rng.integers(4, 90, 3 + i).tolist()]) for i in range(8)]
    limits = [4, 8, 12, 16, 20, 40, 70, 100]
    tree = LocalEngine(policy, Ledger()).start(stubs, ACTORS, Sampling(), limits)
    runner, sizes = tree.runner, []
    assert isinstance(runner, CachedRunner)
    while tree.live:
        tree.advance(5)
        sizes.append((len(runner.actors), runner.capacity))
    rows, capacities = zip(*sizes, strict=True)
    assert list(rows) == sorted(rows, reverse=True)
    assert rows[-1] <= 2
    assert capacities[-1] > 100
    assert list(capacities) == sorted(capacities)
    for branch, limit in zip(tree.branches, limits, strict=True):
        assert branch.mask.sum() == limit
        own = branch.mask[1:]
        np.testing.assert_allclose(branch.logprob[1:][own], plain(policy, branch.tokens)[own], atol=1e-4)


def test_truncated_sampling_keeps_to_the_top_and_tells_full_logprobs() -> None:
    policy = random_policy(spread=1.0)
    for how in (Sampling(top_k=3), Sampling(top_p=0.2)):
        tree = sampled(policy, [4], how)
        branch = tree.branches[0]
        text = torch.from_numpy(branch.tokens.astype(np.int64))[None]
        with torch.no_grad():
            logprob = torch.log_softmax(policy.model.head(policy.model(text))[0], -1)
        for at in np.flatnonzero(branch.mask):
            order = logprob[at - 1].argsort(descending=True)
            place = int((order == branch.tokens[at]).nonzero())
            if how.top_k:
                assert place < 3
            else:
                assert logprob[at - 1][order[:place]].exp().sum() < 0.2
        np.testing.assert_allclose(branch.logprob[4:], plain(policy, branch.tokens)[3:], atol=1e-4)


def test_other_models_are_refused() -> None:
    policy = random_policy()
    policy.model = nn.Linear(2, 2)  # type: ignore[assignment]
    with pytest.raises(UserError, match="runs Llama, Mistral and Qwen models, not Linear"):
        LocalEngine(policy, Ledger())


def test_sampling_leaves_no_graph_and_no_trace_in_the_model() -> None:
    policy = random_policy()
    before = {n: w.clone() for n, w in policy.weights().items()}
    sampled(policy, [3, 7])
    model = policy.model
    assert isinstance(model, Decoder)
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert all(torch.equal(before[n], w) for n, w in policy.weights().items())
