"""Models of transformers in our trees: log-probs of the training pass, whatever the architecture's attention."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.hub import hub_model
from tests.toys import random_policy, stub

from evolvent.core.ledger import Ledger
from evolvent.core.records import Trajectory
from evolvent.engine.base import Actor, Noise, Sampling
from evolvent.engine.huggingface import HuggingFaceEngine, PaddedRunner, local_engine
from evolvent.engine.local import LocalEngine
from evolvent.engine.perturb import perturbation
from evolvent.learn.forward import padded, token_logprobs
from evolvent.models.huggingface import read_model
from evolvent.models.lora import Lora, acting, attach
from evolvent.models.policy import Policy
from evolvent.models.tokenizer import SeedFormat, character_tokenizer
from evolvent.rollout.sample import harvest

# learned positions; rotary on a part of the dimensions; windows and soft caps; rotary and biases; ALiBi; no attention
KINDS = ("gpt2", "gpt_neox", "gemma2", "phi", "bloom", "mamba")
ONE = {"policy": Actor("policy", 0)}


def policy_of(kind: str, **options: object) -> Policy:
    model = hub_model(kind, 99, **options)
    return Policy(model, SeedFormat(character_tokenizer()), model.config.to_dict(), kind)


def harvested(policy: Policy, tree: object, actors: dict[str, Actor] = ONE) -> list[Trajectory]:
    branches = tree.branches  # type: ignore[attr-defined]
    return [harvest(b, stub(0, [1]), policy.format, actors, 1.0) for b in branches]


def largest_difference(policy: Policy, rows: list[Trajectory]) -> float:
    """Between log-probs of sampling and of training."""
    tokens, mask, sampled, heat = padded(rows, 0, policy.device)
    with torch.no_grad():
        trained, _ = token_logprobs(policy, tokens, mask, heat)
    assert trained[mask].std() > 0.3
    return float((trained - sampled)[mask].abs().max())


def starts(count: int = 3) -> list[Trajectory]:
    """Trajectories over prompts of different length, `count` on each."""
    rng = np.random.default_rng(0)
    prompts = [[1, *rng.integers(4, 90, n).tolist()] for n in (2, 8, 19)]
    return [stub(10 * i + j, prompts[i]) for i in range(3) for j in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_logprobs_are_those_of_training_through_forks_replies_and_pauses(kind: str) -> None:
    policy, ledger = policy_of(kind), Ledger()
    sampling = Sampling(ends=frozenset(range(2, 30)), hold=True)
    tree = HuggingFaceEngine(policy, ledger).start(starts(), ONE, sampling, [24] * 9)
    tree.advance(5)
    tree.fork(tree.branches[4], 777)
    tree.fork(tree.branches[1], 778, at=tree.branches[1].start + 1, token=40)
    answered = [b for b in tree.branches if b.stop == "end"]
    for branch in answered[:2]:
        tree.append(branch, [9, 10, 11])
    tree.advance(6)  # the others that ended a turn have been waiting
    for branch in answered[2:]:
        tree.append(branch, [12])
    tree.stop(tree.branches[0], "pruned")
    tree.advance()
    rows = harvested(policy, tree)
    assert tree.runner.cached is (kind != "mamba")
    assert len(answered) > 2
    assert len({len(r.tokens) for r in rows}) > 4
    assert largest_difference(policy, rows) < 1e-4
    assert ledger.spent["method"]["sampled"] == sum(r.sampled for r in rows) - shared(rows)


def shared(rows: list[Trajectory]) -> int:
    """Tokens that a fork took over from its parent or was forced to write."""
    return sum(int(r.mask[: r.fork_at].sum()) for r in rows if r.fork_at) + 1


def test_the_same_noise_gives_the_same_tokens_as_the_local_engine() -> None:
    """A Llama runs on either engine; same branches, same draws."""
    from evolvent.models.decoder import Decoder, DecoderConfig

    theirs = policy_of("llama")
    ours = Decoder(DecoderConfig.read(theirs.config))
    ours.load_state_dict(dict(theirs.model.named_parameters()))
    mine = Policy(ours, theirs.format, theirs.config, "llama")
    trees = [local_engine(p, Ledger()).start(starts(), ONE, Sampling(), [20] * 9) for p in (mine, theirs)]
    assert isinstance(local_engine(mine, Ledger()), LocalEngine)
    assert isinstance(local_engine(theirs, Ledger()), HuggingFaceEngine)
    for tree in trees:
        tree.advance()
    for a, b in zip(trees[0].branches, trees[1].branches, strict=True):
        np.testing.assert_array_equal(a.tokens, b.tokens)
        np.testing.assert_allclose(a.logprob, b.logprob, atol=1e-4)


def reference(policy: Policy, tokens: np.ndarray) -> np.ndarray:
    """The last hidden state that a plain pass of transformers reports after these tokens."""
    with torch.no_grad():
        out = policy.model(torch.from_numpy(tokens[None].astype(np.int64)), output_hidden_states=True, use_cache=False)
    return out.hidden_states[-1][0, -1].numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_are_those_of_a_plain_pass_through_forks_and_replies(kind: str) -> None:
    policy = policy_of(kind)
    sampling = Sampling(ends=frozenset(range(2, 12)), hold=True, hidden=True)
    tree = HuggingFaceEngine(policy, Ledger()).start(starts(), ONE, sampling, [24] * 9)

    def right() -> None:
        assert len(tree.live) >= 3
        for branch in tree.live:
            np.testing.assert_allclose(branch.hidden, reference(policy, branch.tokens), atol=1e-4)

    right()
    tree.advance(2)
    right()
    tree.fork(tree.live[0], 777)
    tree.fork(tree.live[1], 778, at=tree.live[1].start + 1, token=40)
    tree.stop(tree.fork(tree.live[2], 779), "pruned")  # its row is never read
    for branch in [b for b in tree.branches if b.stop == "end"][:2]:
        tree.append(branch, [9, 10, 11])
    tree.advance(1)
    right()
    tree.advance()
    assert all(b.hidden is None for b in tree.branches)
    assert not policy.model.get_output_embeddings()._forward_pre_hooks


def test_hidden_states_are_those_of_the_local_engine(tmp_path: Path) -> None:
    """A seed model on both engines, with noise on the weights of some rows."""
    mine = random_policy()
    mine.save(tmp_path)
    theirs = Policy(read_model(tmp_path, torch.float32, torch.device("cpu")), mine.format, mine.config, "seed")
    actors = {"policy": Actor("policy", 0), "noisy": Actor("noisy", 0, Noise(seed=3, sign=1, sigma=0.1, rank=1))}
    stubs = starts()
    for one in stubs[::2]:
        one.actor = "noisy"
    engines = [local_engine(p, Ledger()) for p in (mine, theirs)]
    assert [type(e) for e in engines] == [LocalEngine, HuggingFaceEngine]
    assert all("hidden" in e.offers for e in engines)
    trees = [e.start(stubs, actors, Sampling(hidden=True), [20] * 9) for e in engines]
    for size in (0, 1, 5, 3):
        for tree in trees:
            tree.advance(size)
            tree.fork(tree.branches[size], 700 + size)
        for a, b in zip(trees[0].live, trees[1].live, strict=True):
            np.testing.assert_array_equal(a.tokens, b.tokens)
            np.testing.assert_allclose(a.hidden, b.hidden, atol=1e-4)


def test_states_that_nobody_asks_for_cost_nothing() -> None:
    policy = policy_of("gpt2")
    tree = HuggingFaceEngine(policy, Ledger()).start(starts(), ONE, Sampling(), [4] * 9)
    tree.advance(2)
    assert tree.live[0].hidden is None
    assert tree.runner.head is None
    assert all(row.state is None for row in tree.runner.rows)


def test_greedy_and_entropy_and_alternatives() -> None:
    policy = policy_of("gpt2")
    sampling = Sampling(temperature=0.0, entropy=True, alternatives=3)
    tree = HuggingFaceEngine(policy, Ledger()).start(starts(1), ONE, sampling, [6] * 3)
    tree.advance()
    for branch in tree.branches:
        ids, logprobs = branch.alternatives
        np.testing.assert_array_equal(ids[branch.mask][:, 0], branch.tokens[branch.mask])
        np.testing.assert_allclose(logprobs[branch.mask][:, 0], branch.logprob[branch.mask], atol=1e-6)
        assert (branch.entropy[branch.mask] > 0).all()


def test_actors_of_one_batch_differ() -> None:
    """Two adapters, seeded noise and the bare model act side by side, each with its own log-probs."""
    policy = policy_of("gpt_neox")
    for name in ("solver", "proposer"):
        attach(policy, name, Lora(3), np.random.default_rng(1))
        with torch.no_grad():
            for parameter in policy.trainable(name).values():
                parameter.normal_(0, 0.3, generator=torch.Generator().manual_seed(len(name)))
    noise = Noise(seed=5, sign=-1, sigma=0.05, rank=1)
    lows = {"solver": policy.low("solver"), "proposer": policy.low("proposer"), "noisy": noise, "bare": None}
    actors = {name: Actor(name, 0, low) for name, low in lows.items()}
    stubs = starts(4)
    for i, one in enumerate(stubs):
        one.actor = list(actors)[i % 4]
    policy.activate("solver")
    tree = HuggingFaceEngine(policy, Ledger()).start(stubs, actors, Sampling(), [12] * 12)
    tree.advance(4)
    tree.fork(tree.branches[1], 500)
    tree.advance()
    assert policy.active == "solver"
    rows = harvested(policy, tree, actors)
    by_actor = {name: [r for r in rows if r.actor == name] for name in actors}
    differences = []
    for name in ("solver", "proposer", "bare"):
        policy.activate(None if name == "bare" else name)
        assert largest_difference(policy, by_actor[name]) < 1e-4
        differences.append(largest_difference(policy, by_actor["noisy"]))
    assert min(differences) > 1e-2
    with acting(policy, perturbation(policy.model, noise)):
        assert largest_difference(policy, by_actor["noisy"]) < 1e-4


def test_many_prompts_are_prefilled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evolvent.engine.huggingface.PREFILL", 20)
    policy = policy_of("gemma2")
    tree = HuggingFaceEngine(policy, Ledger()).start(starts(), ONE, Sampling(), [16] * 9)
    assert sorted(len(b.rows) for b in tree.runner.blocks.values()) == [9]
    tree.advance()
    assert largest_difference(policy, harvested(policy, tree)) < 1e-4


def test_a_row_that_waits_holds_no_cache_and_padding_goes_with_the_longest() -> None:
    policy = policy_of("phi")
    runner = PaddedRunner(policy, ONE)
    texts = [np.array(t, np.int32) for t in ([1, 5, 6], [1, 5, 6, 7, 8, 9, 10])]
    with torch.inference_mode():
        runner.prefill(texts, ["policy", "policy"], np.array([0, 1]))
        block = runner.blocks["policy"]
        assert block.mask.shape == (2, 7)
        runner.step(np.array([11, 10]), np.array([3, 6]))  # the second row has its last token again: it waits
        assert [len(row.tokens) for row in runner.rows] == [4, 7]
        block = runner.blocks["policy"]
        assert len(block.rows) == 1
        assert block.mask.shape == (1, 4)
        assert block.cache.layers[0].keys.shape[2] == 4


def test_the_local_engine_refuses_other_models_in_words() -> None:
    from evolvent.core.errors import UserError

    with pytest.raises(UserError, match="Llama, Mistral and Qwen"):
        LocalEngine(policy_of("gpt2"), Ledger())
    assert isinstance(local_engine(random_policy(), Ledger()), LocalEngine)


def test_recomputation_in_training_does_not_touch_sampling() -> None:
    """transformers drops the cache in layers that recompute; ours recompute in training passes alone."""
    policy = policy_of("gpt2")
    plain = HuggingFaceEngine(policy, Ledger()).start(starts(), ONE, Sampling(), [8] * 9)
    plain.advance()
    policy.recompute(True)
    tree = HuggingFaceEngine(policy, Ledger()).start(starts(), ONE, Sampling(), [8] * 9)
    tree.advance()
    assert tree.runner.cached
    for a, b in zip(plain.branches, tree.branches, strict=True):
        np.testing.assert_array_equal(a.tokens, b.tokens)
