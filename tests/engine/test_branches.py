"""The tree: whatever is sampled, forked, appended or stopped, its log-probs are those of a plain forward pass."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.toys import plain, random_policy, stub

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.engine.base import Actor, Noise, Sampling
from evolvent.engine.branches import truncate
from evolvent.engine.local import LocalEngine
from evolvent.engine.noise import pick
from evolvent.engine.perturb import perturbation
from evolvent.models.decoder import Low, LowRank
from evolvent.models.policy import Policy

POLICY = {"policy": Actor("policy", 0)}


def check(policy: Policy, branch: Any, low: LowRank | None = None, temperature: float = 1.0) -> None:
    got, mask = plain(policy, branch.tokens, low, temperature), branch.mask[1:]
    np.testing.assert_allclose(branch.logprob[1:][mask], got[mask], atol=1e-4)
    assert (branch.logprob[~branch.mask] == 0).all()


def prompts(count: int, rng: np.random.Generator) -> list[list[int]]:
    return [[1, *rng.integers(4, 100, rng.integers(1, 12)).tolist()] for _ in range(count)]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**31),
    st.lists(
        st.tuples(st.sampled_from(["advance", "fork", "force", "append", "stop"]), st.integers(0, 99)), max_size=12
    ),
)
def test_any_sequence_of_operations_keeps_logprobs_right(seed: int, script: list[tuple[str, int]]) -> None:
    rng = np.random.default_rng(seed)
    policy, ledger = random_policy(context=48), Ledger()
    starts = prompts(3, rng)
    stubs = [stub(10 * i + j, starts[i]) for i in range(3) for j in range(2)]
    tree = LocalEngine(policy, ledger).start(
        stubs, POLICY, Sampling(temperature=0.8, ends=frozenset(range(2, 20)), hold=True), [25] * 6
    )
    for place, (what, number) in enumerate(script):
        branch = tree.branches[number % len(tree.branches)]
        size = len(branch.tokens)
        if what == "advance":
            tree.advance(1 + number % 5)
        elif what == "fork":
            tree.fork(branch, 1000 + place, branch.start + number % (size - branch.start + 1))
        elif what == "force" and size < 40:
            tree.fork(branch, 1000 + place, size, token=2 + number % 90)
        elif what == "append" and branch.stop in ("", "end"):
            tree.append(branch, [40 + number % 50] * (1 + number % 4))
        elif what == "stop":
            tree.stop(branch, "pruned")
    tree.advance()
    assert not tree.live
    for branch in tree.branches:
        check(policy, branch, temperature=0.8)
        assert branch.stop
        assert branch.mask.sum() <= 25 + 1  # a forced token may come on top
        assert sum(s.stop - s.start for s in branch.segments) == len(branch.tokens)
        assert all(branch.mask[s.start : s.stop].all() == (s.kind == "policy") for s in branch.segments)


def test_sampling_does_not_depend_on_the_batch_or_on_pauses() -> None:
    policy, rng = random_policy(), np.random.default_rng(0)
    engine, stubs = LocalEngine(policy, Ledger()), [stub(i, p) for i, p in enumerate(prompts(9, rng))]
    how = Sampling(ends=frozenset([2]))
    together = engine.start(stubs, POLICY, how, [20] * 9)
    together.advance()
    for i in (0, 4, 8):
        alone = engine.start([stubs[i]], POLICY, how, [20])
        for _ in range(20):
            alone.advance(1)
        assert (alone.branches[0].tokens == together.branches[i].tokens).all()


def test_a_fork_is_a_new_draw_and_its_parent_goes_on_undisturbed() -> None:
    policy = random_policy(spread=1.0)
    engine, start = LocalEngine(policy, Ledger()), stub(1, [1, 50, 51])
    lone = engine.start([start], POLICY, Sampling(), [20])
    lone.advance()
    tree = engine.start([start], POLICY, Sampling(), [20])
    tree.advance(5)
    fork = tree.fork(tree.branches[0], 77, at=5)
    tree.advance()
    assert (tree.branches[0].tokens == lone.branches[0].tokens).all()
    assert (fork.tokens[:5] == lone.branches[0].tokens[:5]).all()
    assert (fork.tokens != lone.branches[0].tokens).any()
    assert (fork.parent, fork.fork_at) == (1, 5)


def test_forks_of_forks_have_the_root_that_they_go_back_to() -> None:
    tree = LocalEngine(random_policy(), Ledger()).start(
        [stub(i, [1, 7]) for i in range(3)], POLICY, Sampling(), [9] * 3
    )
    tree.advance(2)
    first = tree.fork(tree.branches[2])
    tree.fork(first)
    tree.fork(tree.branches[0])
    assert [b.root for b in tree.branches] == [0, 1, 2, 2, 2, 0]
    tree.advance(2)
    kept = [stub(b.uid, b.tokens.tolist()) for b in tree.branches]
    kept[3].parent = kept[2].uid
    again = LocalEngine(random_policy(), Ledger()).start(kept, POLICY, Sampling(), [9] * 6)
    assert [b.root for b in again.branches] == list(range(6))  # what begins is a root, whatever it was forked from


def test_a_fork_that_is_forced_to_end_or_that_reaches_its_limit_is_over() -> None:
    tree = LocalEngine(random_policy(), Ledger()).start(
        [stub(1, [1, 50, 51])], POLICY, Sampling(ends=frozenset([2])), [4]
    )
    tree.advance(3)
    ended, full = tree.fork(tree.branches[0], token=2), tree.fork(tree.branches[0], token=60)
    tree.advance()
    assert (ended.stop, ended.tokens[-1], len(ended.tokens)) == ("end", 2, 7)
    assert (full.stop, full.tokens[-1], len(full.tokens)) == ("length", 60, 7)
    assert ended.uid != full.uid
    check(random_policy(), ended)


def test_hidden_states_are_what_the_next_token_is_drawn_from() -> None:
    policy, rng = random_policy(), np.random.default_rng(4)
    tree = LocalEngine(policy, Ledger()).start(
        [stub(i, p) for i, p in enumerate(prompts(5, rng))], POLICY, Sampling(hidden=True), [9] * 5
    )

    def right() -> None:
        for branch in tree.live:
            tokens = torch.from_numpy(branch.tokens[None].astype(np.int64))
            with torch.no_grad():
                wanted = policy.model(tokens)[0, -1]
            np.testing.assert_allclose(branch.hidden, wanted.numpy(), atol=1e-4)

    right()
    tree.advance(4)
    right()
    tree.fork(tree.branches[2], at=tree.branches[2].start + 1)
    tree.append(tree.branches[1], [7, 8])
    right()
    tree.advance()
    assert all(b.hidden is None for b in tree.branches)
    plain_tree = LocalEngine(policy, Ledger()).start([stub(1, [1, 5])], POLICY, Sampling(), [3])
    assert plain_tree.branches[0].hidden is None


def test_passes_of_the_sampler_are_counted_whatever_the_rows() -> None:
    ledger = Ledger()
    LocalEngine(random_policy(), ledger).start(
        [stub(i, [1, 7]) for i in range(8)], POLICY, Sampling(), [6] * 8
    ).advance()
    assert ledger.of("decode_steps") == 6
    assert ledger.of("sampled") == 48


def test_alternatives_of_a_resumed_stub_are_kept() -> None:
    first = stub(1, [1, 7, 8, 9])
    first.alternatives = np.arange(8, dtype=np.int32).reshape(4, 2), -np.ones((4, 2), np.float32)
    tree = LocalEngine(random_policy(), Ledger()).start([first], POLICY, Sampling(alternatives=2), [3])
    tree.advance()
    found = tree.branches[0].alternatives
    assert found is not None
    assert (found[0][:4] == first.alternatives[0]).all()
    assert (found[1][4:] < 0).all()


def test_one_prefill_for_each_distinct_prefix_and_actor() -> None:
    policy, ledger = random_policy(), Ledger()
    LocalEngine(policy, ledger).start([stub(i, [1, 7, 8, 9]) for i in range(8)], POLICY, Sampling(), [4] * 8)
    assert ledger.of("prefilled") == 4
    actors = {"a": Actor("a", 0), "b": Actor("b", 0, Noise(1, 1, 0.1, 1))}
    LocalEngine(policy, ledger).start(
        [stub(i, [1, 7, 8, 9], "ab"[i % 2]) for i in range(8)], actors, Sampling(), [4] * 8
    )
    assert ledger.of("prefilled") == 4 + 8


def test_rows_of_one_batch_carry_different_changes() -> None:
    policy, rng = random_policy(), np.random.default_rng(3)
    width = policy.config["hidden_size"]
    low = {"model.layers.1.self_attn.k_proj": Low(torch.randn(width, 3), torch.randn(width, 3) * 0.2)}
    actors = {
        "plain": Actor("plain", 0),
        "plus": Actor("plus", 0, Noise(5, 1, 0.3, 2)),
        "minus": Actor("minus", 0, Noise(5, -1, 0.3, 2)),
        "adapter": Actor("adapter", 0, low),
    }
    changes = {n: perturbation(policy.model, a.low) if isinstance(a.low, Noise) else a.low for n, a in actors.items()}
    stubs = [stub(i, p, list(actors)[i % 4]) for i, p in enumerate(prompts(12, rng))]
    tree = LocalEngine(policy, Ledger()).start(stubs, actors, Sampling(ends=frozenset([2]), hold=True), [15] * 12)
    tree.advance(6)
    tree.fork(tree.branches[3], 500)
    tree.append(tree.branches[1], [60, 61])
    tree.advance()
    for branch in tree.branches:
        check(policy, branch, changes[branch.actor])
    plus, minus = changes["plus"], changes["minus"]
    assert plus is not None
    assert minus is not None
    for name in plus:
        torch.testing.assert_close(plus[name].a, -minus[name].a)
        torch.testing.assert_close(plus[name].b, minus[name].b)


def test_greedy_takes_the_likeliest_token() -> None:
    policy = random_policy()
    tree = LocalEngine(policy, Ledger()).start([stub(1, [1, 50])], POLICY, Sampling(temperature=0), [10])
    tree.advance()
    tokens = tree.branches[0].tokens
    with torch.no_grad():
        logits = policy.model.head(policy.model(torch.from_numpy(tokens.astype(np.int64))[None]))[0]
    assert (logits[1:-1].argmax(-1).numpy() == tokens[2:]).all()


def test_entropy_and_alternatives_are_those_of_the_sampling_distribution() -> None:
    policy = random_policy()
    how = Sampling(temperature=0.7, entropy=True, alternatives=4)
    tree = LocalEngine(policy, Ledger()).start([stub(1, [1, 50, 60])], POLICY, how, [12])
    tree.advance()
    branch = tree.branches[0]
    with torch.no_grad():
        text = torch.from_numpy(branch.tokens.astype(np.int64))[None]
        logprob = torch.log_softmax(policy.model.head(policy.model(text))[0, :-1] / 0.7, -1)
    entropy = -(logprob.exp() * logprob).sum(-1).numpy()
    np.testing.assert_allclose(branch.entropy[3:], entropy[2:], atol=1e-4)
    values, ids = logprob.topk(4, -1)
    assert (branch.alternatives[0][3:] == ids[2:].numpy()).all()
    np.testing.assert_allclose(branch.alternatives[1][3:], values[2:].numpy(), atol=1e-4)


def test_frequencies_follow_the_probabilities() -> None:
    probability = torch.tensor([[0.5, 0.0, 0.3, 0.2]]).repeat(40_000, 1)
    drawn = pick(probability, np.random.default_rng(0).random(40_000)).numpy()
    shares = np.bincount(drawn, minlength=4) / 40_000
    np.testing.assert_allclose(shares, [0.5, 0, 0.3, 0.2], atol=0.01)
    assert shares[1] == 0
    edges = pick(torch.tensor([[0.0, 1.0, 0.0]] * 2), np.array([0.0, 1 - 2**-53]))
    assert edges.tolist() == [1, 1]


def test_truncation_keeps_the_top() -> None:
    logprob = torch.log(torch.tensor([[0.4, 0.3, 0.2, 0.1]]))
    assert torch.isfinite(truncate(logprob, 2, 1.0)).tolist() == [[True, True, False, False]]
    assert torch.isfinite(truncate(logprob, 0, 0.65)).tolist() == [[True, True, False, False]]
    assert torch.isfinite(truncate(logprob, 0, 0.75)).tolist() == [[True, True, True, False]]
    assert torch.isfinite(truncate(logprob, 0, 0.01)).tolist() == [[True, False, False, False]]


def test_limits_end_a_branch_and_a_full_context_too() -> None:
    policy = random_policy(context=16)
    tree = LocalEngine(policy, Ledger()).start([stub(1, [1, 50]), stub(2, [1, 51])], POLICY, Sampling(), [5, 100])
    tree.advance()
    assert [int(b.mask.sum()) for b in tree.branches] == [5, 14]
    assert [b.stop for b in tree.branches] == ["length", "length"]
    tree.append(tree.branches[1], [3])
    assert not tree.live


def test_a_prompt_longer_than_the_context_is_refused() -> None:
    with pytest.raises(UserError, match="a prompt of 20 tokens leaves no room in the model's context of 16"):
        LocalEngine(random_policy(context=16), Ledger()).start([stub(1, [1] * 20)], POLICY, Sampling(), [5])


@pytest.mark.parametrize("bad", [{"temperature": -1.0}, {"top_p": 0.0}, {"top_p": 1.5}])
def test_bad_sampling_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UserError):
        Sampling(**bad)


def test_the_ledger_counts_what_was_sampled_and_read() -> None:
    policy, ledger = random_policy(), Ledger()
    tree = LocalEngine(policy, ledger).start([stub(i, [1, 50 + i]) for i in range(3)], POLICY, Sampling(), [4] * 3)
    tree.advance()
    assert (ledger.of("sampled"), ledger.of("prefilled")) == (12, 6)
    tree.fork(tree.branches[0], 9, at=3)
    tree.advance()
    assert ledger.of("sampled") == 12 + 3


def test_caches_go_with_the_tree() -> None:
    """At once, not at some later garbage collection: they are most of what sampling holds."""
    gc.collect()
    gc.disable()
    try:
        stubs = [stub(i, [1, 5, 6, 7]) for i in range(4)]
        tree = LocalEngine(random_policy(), Ledger()).start(stubs, POLICY, Sampling(), [9] * 4)
        tree.advance(3)
        caches = [weakref.ref(cache) for cache in tree.runner.keys]  # type: ignore[attr-defined]
        branch = tree.branches[0]
        assert branch.tokens.size
        assert all(cache() is not None for cache in caches)
        del tree
        assert all(cache() is None for cache in caches)
        with pytest.raises(RuntimeError, match="hold on to the tree"):
            _ = branch.tokens
    finally:
        gc.enable()
