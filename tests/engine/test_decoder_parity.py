"""Sampling in the local engine gives the log-probs of a training pass, for every architecture of the decoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.hub import hub_model
from tests.toys import stub

from evolvent.core.ledger import Ledger
from evolvent.core.records import Trajectory
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.local import LocalEngine
from evolvent.learn.forward import padded, token_logprobs
from evolvent.models.checkpoint import read_decoder
from evolvent.models.policy import Policy
from evolvent.models.tokenizer import SeedFormat, character_tokenizer
from evolvent.rollout.sample import harvest


def trajectories(policy: Policy) -> list[Trajectory]:
    """Several prompts of different length, a fork and a reply of a tool."""
    rng = np.random.default_rng(0)
    prompts = [[1, *rng.integers(4, 90, n).tolist()] for n in (2, 9, 17)]
    stubs = [stub(10 * i + j, prompts[i]) for i in range(3) for j in range(3)]
    actors = {"policy": Actor("policy", 0)}
    sampling = Sampling(ends=frozenset(range(2, 6)), hold=True)
    tree = LocalEngine(policy, Ledger()).start(stubs, actors, sampling, [20] * 9)
    tree.advance(6)
    tree.fork(tree.branches[4], 77, at=tree.branches[4].start + 2)
    for branch in tree.branches:
        if branch.stop == "end":
            tree.append(branch, [7, 8, 9])
    tree.advance()
    return [harvest(b, stubs[0], policy.format, actors, 1.0) for b in tree.branches]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("llama", {"attention_bias": True, "mlp_bias": True}),
        ("mistral", {}),
        ("qwen2", {"tie_word_embeddings": True}),
        ("qwen3", {}),
    ],
)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-4), (torch.bfloat16, 0.15)])
def test_sampled_logprobs_are_those_of_a_training_pass(
    kind: str, options: dict[str, bool], dtype: torch.dtype, bound: float, tmp_path: Path
) -> None:
    theirs = hub_model(kind, 99, **options)
    theirs.save_pretrained(tmp_path)
    policy = Policy(read_decoder(tmp_path, dtype), SeedFormat(character_tokenizer()), theirs.config.to_dict(), kind)
    rows = trajectories(policy)
    tokens, mask, sampled, heat = padded(rows, 0, policy.device)
    with torch.no_grad():
        trained, _ = token_logprobs(policy, tokens, mask, heat)
    assert trained.dtype == torch.float32
    assert mask.sum() > 60
    assert trained[mask].std() > 0.5
    assert (trained - sampled)[mask].abs().max() < bound
