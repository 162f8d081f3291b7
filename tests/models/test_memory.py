"""The memory estimate against what autograd and the process really hold, and the words for when it was too much."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.hub import hub_model
from tests.toys import random_policy

from evolvent.models.decoder import Decoder
from evolvent.models.lora import Lora, attach
from evolvent.models.memory import activation_bytes, estimate, kept_bytes, shortage
from evolvent.models.policy import Policy
from evolvent.models.tokenizer import SeedFormat, character_tokenizer

RUN = {"rows": 64, "prompts": 8, "prompt": 20, "completion": 60, "micro_tokens": 2048}


def test_weights_gradients_and_moments_are_counted() -> None:
    policy = random_policy()
    weights = sum(p.numel() for p in policy.model.parameters()) * 4
    made = estimate(policy, **RUN)
    assert (made.weights, made.gradients, made.moments, made.reference) == (weights, weights, 2 * weights, 0)
    assert made.checkpoint == 3 * weights
    assert estimate(policy, **RUN, reference=True).reference == weights
    frozen = estimate(policy, **RUN, training=False)
    assert (frozen.gradients, frozen.moments, frozen.activations, frozen.checkpoint) == (0, 0, 0, 0)
    assert frozen.cache == made.cache


def test_the_cache_is_that_of_the_engine() -> None:
    """Keys and values of 64 rows of 80 tokens, 2 layers of width 32, and half as much again while they are copied."""
    assert estimate(random_policy(), **RUN).cache == 1.5 * 64 * 80 * 2 * 2 * 32 * 4
    grouped = hub_model("qwen3", 99)  # 2 of 4 heads, each of 16
    policy = Policy(grouped, SeedFormat(character_tokenizer()), grouped.config.to_dict())
    assert estimate(policy, **RUN).cache == 1.5 * 64 * 80 * 2 * 2 * (2 * 16) * 4
    policy.model.bfloat16()
    assert estimate(policy, **RUN).cache == 1.5 * 64 * 80 * 2 * 2 * (2 * 16) * 2


@pytest.mark.parametrize("kind", ["decoder", "gpt2", "gemma2"])
def test_activations_are_what_autograd_keeps(kind: str) -> None:
    """Three short passes predict a long one."""
    policy = random_policy(context=256)
    if kind != "decoder":
        model = hub_model(kind, 99)
        policy = Policy(model, SeedFormat(character_tokenizer()), model.config.to_dict())
    linear, square = activation_bytes(policy)
    assert linear > 2 * 32 * 4  # more than one tensor of the model's width in each layer
    assert linear * 200 + square * 200**2 == pytest.approx(kept_bytes(policy, 200), rel=0.1)


def test_adapters_and_recomputation_take_less() -> None:
    policy = random_policy(layers=4)
    full = estimate(policy, **RUN)
    again = estimate(policy, **RUN, recompute=True)
    assert again.activations < 0.5 * full.activations
    attach(policy, "policy", Lora(2), np.random.default_rng(0))
    low = estimate(policy, **RUN, adapter="policy", reference=True)
    assert low.gradients == sum(p.numel() for p in policy.trainable("policy").values()) * 4
    assert low.gradients < 0.3 * full.gradients
    assert low.reference == low.gradients
    assert low.moments == 2 * low.gradients


def test_a_table_for_people() -> None:
    text = estimate(random_policy(), **RUN).table()
    assert "activations" in text
    assert "peak while learning" in text
    assert "reference" not in text  # nothing is held


def test_what_does_not_fit_is_said_with_a_remedy() -> None:
    policy = random_policy()
    assert shortage(estimate(policy, **RUN), policy.device) is None
    huge = estimate(policy, rows=10**9, prompts=8, prompt=20, completion=60, micro_tokens=2048)
    said = shortage(huge, policy.device)
    assert said is not None
    assert "more than is free on cpu; lower propose.problems" in said
    said = shortage(estimate(policy, 8, 8, 20, 60, micro_tokens=10**10), policy.device)
    assert said is not None
    assert "lower learn.micro_tokens" in said


MEASURE = """
import sys
import numpy as np, psutil, torch
torch.set_num_threads(1)
from evolvent.core.ledger import Ledger
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.local import LocalEngine
from evolvent.learn.forward import padded, token_logprobs
from evolvent.models.load import load_policy
from evolvent.models.memory import estimate
from evolvent.rollout.sample import harvest
from tests.toys import stub
policy = load_policy(sys.argv[1])
before = psutil.Process().memory_info().rss
rows, prompt, completion, micro = 256, 24, 64, 4096
made = estimate(policy, rows, 32, prompt, completion, micro)
rng, actors = np.random.default_rng(0), {"policy": Actor("policy", 0)}
stubs = [stub(i, [1, *rng.integers(4, 90, prompt - 1).tolist()]) for i in range(rows)]
optimizer = torch.optim.AdamW(policy.trainable().values(), 1e-4)
for _ in range(2):
    tree = LocalEngine(policy, Ledger()).start(stubs, actors, Sampling(), [completion] * rows)
    tree.advance()
    found = [harvest(b, stubs[0], policy.format, actors, 1.0) for b in tree.branches]
    del tree
    optimizer.zero_grad(set_to_none=True)
    size = micro // (prompt + completion)
    for i in range(0, rows, size):
        tokens, mask, _, heat = padded(found[i : i + size], 0, policy.device)
        token_logprobs(policy, tokens, mask, heat)[0].sum().backward()
    optimizer.step()
with open("/proc/self/status") as status:  # getrusage knows the peak of whoever started this process, too
    peak = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
print(before - made.weights + made.peak, peak)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is counted in other units elsewhere")
@pytest.mark.parametrize(("layers", "width"), [(2, 64), (4, 128)])
def test_the_peak_of_a_process_is_within_the_stated_factor(layers: int, width: int, tmp_path: Path) -> None:
    policy = random_policy(layers, width)
    assert isinstance(policy.model, Decoder)
    policy.save(tmp_path)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(tmp_path)], capture_output=True, text=True, check=True)
    predicted, measured = map(int, done.stdout.split())
    assert 1 / 1.5 < predicted / measured < 1.5
