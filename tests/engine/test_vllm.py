"""The vLLM engine against A STAND-IN FOR THE PACKAGE, which samples from our own decoder and writes down its calls.

What is checked is what we ask of vLLM and what we make of its answers; that vLLM itself behaves so is not.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.toys import random_policy, stub

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.random import stream
from evolvent.core.records import Trajectory
from evolvent.engine.base import Actor, Noise, Sampling
from evolvent.engine.local import LocalEngine
from evolvent.engine.vllm import VllmEngine
from evolvent.models.load import load_policy
from evolvent.models.lora import Lora, attach

ACTORS = {"policy": Actor("policy", 0)}
PROMPT = [1, 20, 30, 40]


class StandInLLM:
    """`vllm.LLM`, as far as the engine uses it: greedy or seeded sampling from the folder's weights, on the CPU."""

    def __init__(self, **settings: Any) -> None:
        self.settings, self.calls = settings, [("load", settings["model"])]
        self.requests: list[tuple[list[int], Any, Any]] = []
        self.policy = load_policy(settings["model"])

    def generate(self, prompts: list[Any], params: list[Any], *, lora_request: Any, use_tqdm: bool) -> list[Any]:
        adapters = lora_request or [None] * len(prompts)
        self.calls.append(("generate", len(prompts)))
        return [self._one(p["prompt_token_ids"], how, a) for p, how, a in zip(prompts, params, adapters, strict=True)]

    def _one(self, tokens: list[int], how: Any, adapter: Any) -> Any:
        self.requests.append((list(tokens), how, adapter))
        rng = stream(how.seed, "stand-in")
        made: list[int] = []
        steps, reason = [], "length"
        for _ in range(how.max_tokens):
            row = torch.tensor([[*tokens, *made, 0]])
            select = torch.zeros_like(row, dtype=torch.bool)
            select[0, -1] = True
            with torch.no_grad():
                logits = self.policy.logits(row, select)[0]
            logprob = torch.log_softmax(logits / (how.temperature or 1), -1).numpy()
            chances = np.exp(logprob.astype(float))
            token = (
                int(rng.choice(len(chances), p=chances / chances.sum())) if how.temperature else int(logprob.argmax())
            )
            best = np.argsort(-logprob)[: how.logprobs].tolist()
            steps.append({t: SimpleNamespace(logprob=float(logprob[t])) for t in [token, *best]})
            made.append(token)
            if token in how.stop_token_ids:
                reason = "stop"
                break
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=made, logprobs=steps, finish_reason=reason)])

    def sleep(self, level: int) -> None:
        self.calls.append(("sleep", level))

    def wake_up(self, tags: list[str] | None = None) -> None:
        self.calls.append(("wake_up", tags))

    def collective_rpc(self, method: str) -> None:
        self.calls.append((method, None))
        self.policy = load_policy(self.settings["model"])

    def reset_prefix_cache(self) -> None:
        self.calls.append(("reset_prefix_cache", None))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in where `import vllm` finds it."""
    package, lora, request = types.ModuleType("vllm"), types.ModuleType("vllm.lora"), types.ModuleType("request")
    package.LLM, package.SamplingParams = StandInLLM, SimpleNamespace  # type: ignore[attr-defined]
    request.LoRARequest = lambda *a: SimpleNamespace(name=a[0], number=a[1], path=a[2])  # type: ignore[attr-defined]
    for name, module in (("vllm", package), ("vllm.lora", lora), ("vllm.lora.request", request)):
        monkeypatch.setitem(sys.modules, name, module)


def run(engine: Any, stubs: list[Trajectory], limit: int = 12, k: int | None = None, **sampling: Any) -> Any:
    """A tree that has run to its end."""
    tree = engine.start(stubs, ACTORS, Sampling(**sampling), [limit] * len(stubs))
    while tree.live:
        tree.advance(k)
    return tree


def test_without_the_package_the_remedy_is_said() -> None:
    with pytest.raises(UserError, match=r"vLLM is not installed; pip install .evolvent\[vllm\]"):
        VllmEngine(random_policy(), Ledger())


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_tokens_logprobs_and_ledger_agree_with_the_local_engine(
    stand_in: None, tmp_path: Path, temperature: float
) -> None:
    policy = random_policy()
    engine = VllmEngine(policy, Ledger(), tmp_path)
    stubs = [stub(i, PROMPT[: 3 + i % 2]) for i in range(4)]
    ends = frozenset({2, *range(60, 70)})
    tree = run(engine, stubs, temperature=temperature, ends=ends, alternatives=3)
    assert engine.ledger.of("prefilled") == 7  # each distinct prompt once
    assert engine.ledger.of("sampled") == sum(int(b.mask.sum()) for b in tree.branches)
    for branch in tree.branches:  # the same tokens, scored by the training pass
        tokens = torch.from_numpy(branch.tokens[None].astype(np.int64))
        with torch.no_grad():
            logits = policy.logits(tokens, torch.from_numpy(branch.mask[None]))
        wanted = torch.log_softmax(logits / (temperature or 1), -1).gather(1, tokens[0][branch.mask][:, None])[:, 0]
        np.testing.assert_allclose(branch.logprob[branch.mask], wanted.numpy(), atol=1e-4)
        ids, values = branch.alternatives
        assert (np.diff(values[branch.mask]) <= 0).all()
        assert ids.shape == values.shape == (branch.length, 3)
        assert branch.stop == ("end" if int(branch.tokens[-1]) in ends else "length")
    if temperature == 0:
        near = run(LocalEngine(policy, Ledger()), stubs, temperature=0, ends=ends)
        for a, b in zip(tree.branches, near.branches, strict=True):
            assert a.tokens.tolist() == b.tokens.tolist()
            assert a.stop == b.stop


def test_what_is_asked_of_vllm(stand_in: None, tmp_path: Path) -> None:
    engine = VllmEngine(random_policy(), Ledger(), tmp_path, gpu_memory_utilization=0.5)
    llm: Any = engine.llm
    assert llm.settings == {
        "model": str(tmp_path / "model"),
        "generation_config": "vllm",
        "logprobs_mode": "processed_logprobs",
        "max_logprobs": 20,
        "enable_prefix_caching": True,
        "enable_sleep_mode": True,
        "skip_tokenizer_init": True,
        "gpu_memory_utilization": 0.5,
    }
    run(engine, [stub(1, PROMPT)], limit=9, k=4, temperature=0.7, ends=frozenset({2}))
    assert [len(tokens) for tokens, _, _ in llm.requests] == [4, 8, 12]  # continued from all that is there
    assert [how.max_tokens for _, how, _ in llm.requests] == [4, 4, 1]
    assert len({how.seed for _, how, _ in llm.requests}) == 3  # random numbers do not repeat
    how = llm.requests[0][1]
    assert (how.n, how.temperature, how.logprobs, how.detokenize) == (1, 0.7, 0, False)
    assert (how.stop_token_ids, how.ignore_eos) == ([2], True)
    assert engine.ledger.of("prefilled") == 4  # what vLLM wrote is in its cache


def test_chunks_forks_and_tool_replies(stand_in: None, tmp_path: Path) -> None:
    engine = VllmEngine(random_policy(), Ledger(), tmp_path)
    whole = run(engine, [stub(1, PROMPT)], temperature=0).branches[0]
    tree = engine.start([stub(1, PROMPT)], ACTORS, Sampling(temperature=0, alternatives=4), [12])
    tree.advance(6)
    first = tree.branches[0]
    second = int(first.alternatives[0][5, 1])
    twin, other = tree.fork(first, 2), tree.fork(first, 3, at=5, token=second)
    late = tree.fork(first, 4)
    tree.append(late, [50, 51])
    before = engine.ledger.of("prefilled")
    tree.advance(2)
    assert engine.ledger.of("prefilled") - before == 3  # the tool's two tokens and the forced one
    while tree.live:
        tree.advance(5)
    assert first.tokens.tolist() == twin.tokens.tolist() == whole.tokens.tolist()
    assert other.tokens[5] == second
    assert other.mask[5]
    assert other.logprob[5] == pytest.approx(first.alternatives[1][5, 1])
    assert [s.kind for s in late.segments] == ["prompt", "policy", "tool", "policy"]
    with pytest.raises(UserError, match=r"raise rollout\.alternatives"):
        tree.fork(first, 5, at=5, token=int(set(range(90)).difference(first.alternatives[0][5].tolist()).pop()))


def test_new_versions_reach_vllm_and_empty_its_cache(stand_in: None, tmp_path: Path) -> None:
    policy = random_policy()
    engine = VllmEngine(policy, Ledger(), tmp_path)
    llm: Any = engine.llm
    before = run(engine, [stub(1, PROMPT)], temperature=0).branches[0].tokens.tolist()
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.mul_(1.5)
    policy.bump()
    after = run(engine, [stub(1, PROMPT)], temperature=0).branches[0].tokens.tolist()
    local = run(LocalEngine(policy, Ledger()), [stub(1, PROMPT)], temperature=0)
    near = local.branches[0].tokens.tolist()
    assert after == near != before
    assert [c for c, _ in llm.calls] == ["load", "generate", "reload_weights", "reset_prefix_cache", "generate"]


def test_the_gpu_is_given_back_for_training(stand_in: None, tmp_path: Path) -> None:
    policy = random_policy()
    engine = VllmEngine(policy, Ledger(), tmp_path)
    llm: Any = engine.llm
    engine.release()
    engine.release()
    policy.bump()
    run(engine, [stub(1, PROMPT)])
    assert llm.calls[1:-1] == [
        ("sleep", 2),
        ("wake_up", ["weights"]),
        ("reload_weights", None),
        ("wake_up", ["kv_cache"]),
        ("reset_prefix_cache", None),
    ]


def test_adapters_are_named_in_the_requests(stand_in: None, tmp_path: Path) -> None:
    random_policy().save(tmp_path / "base")
    policy = load_policy(str(tmp_path / "base"))
    for name in ("judge", "solver"):
        attach(policy, name, Lora(rank=2), stream(0, name))
    engine = VllmEngine(policy, Ledger(), tmp_path)
    llm: Any = engine.llm
    assert llm.settings["model"] == policy.source
    assert (llm.settings["enable_lora"], llm.settings["max_loras"], llm.settings["max_lora_rank"]) == (True, 2, 8)
    assert "adapters" in engine.offers
    for version in (0, 1):
        actors = {n: Actor(n, version, policy.low(n)) for n in policy.adapters} | {"base": Actor("base", version)}
        stubs = [stub(i, PROMPT, name) for i, name in enumerate(actors)]
        tree = engine.start(stubs, actors, Sampling(), [2] * 3)
        tree.advance()
        policy.bump()
    named = [a for _, _, a in llm.requests]
    assert [a and a.name for a in named] == ["judge-0", "solver-0", None, "judge-1", "solver-1", None]
    assert len({a.number for a in named if a}) == 4
    assert all((Path(a.path) / "adapter_model.safetensors").is_file() for a in named if a)
    engine.release()
    engine.refresh()
    assert llm.calls[-2:] == [("sleep", 1), ("wake_up", None)]
    with pytest.raises(UserError, match="`stranger` is none of them"):
        engine.start(stubs, {"stranger": Actor("stranger", 0, policy.low("judge"))}, Sampling(), [2] * 3)


def test_the_context_ends_a_branch_and_too_long_prompts_are_refused(stand_in: None, tmp_path: Path) -> None:
    engine = VllmEngine(random_policy(context=16), Ledger(), tmp_path, max_model_len=12)
    tree = run(engine, [stub(1, PROMPT)], limit=100, k=3)
    assert tree.branches[0].stop == "length"
    assert tree.branches[0].length == 12
    with pytest.raises(UserError, match="a prompt of 12 tokens leaves no room"):
        run(engine, [stub(1, list(range(4, 16)))])


@pytest.mark.parametrize(
    ("sampling", "low", "says"),
    [
        ({"entropy": True}, None, "no entropies"),
        ({"top_p": 0.9}, None, "truncated distribution"),
        ({"top_k": 5}, None, "truncated distribution"),
        ({}, Noise(1, 1, 0.1, 1), "no noise"),
    ],
)
def test_what_vllm_cannot_do_is_refused(
    stand_in: None, tmp_path: Path, sampling: dict[str, Any], low: Any, says: str
) -> None:
    engine = VllmEngine(random_policy(), Ledger(), tmp_path)
    with pytest.raises(UserError, match=says):
        engine.start([stub(1, PROMPT)], {"policy": Actor("policy", 0, low)}, Sampling(**sampling), [3])
