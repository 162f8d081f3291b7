"""Our decoder against transformers: the same logits from the same folder, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.hub import hub_model

from evolvent.models.checkpoint import read_decoder, write_policy
from evolvent.models.decoder import Decoder, DecoderConfig
from evolvent.models.policy import Policy
from evolvent.models.tokenizer import SeedFormat, character_tokenizer

LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 32}  # fmt: skip
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama with grouped queries": ("llama", {}),
    "llama with tied embeddings": ("llama", {"tie_word_embeddings": True, "num_key_value_heads": 4}),
    "llama with biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama 3 scaling": ("llama", {"rope_parameters": LLAMA3}),
    "linear scaling": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}}),
    "mistral": ("mistral", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "qwen2": ("qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("qwen3", {"attention_bias": True, "rms_norm_eps": 1e-5}),
}


def logits(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        if isinstance(model, Decoder):
            return model.head(model(tokens))
        return model(tokens).logits


@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_transformers_and_survive_both_ways(case: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    kind, options = CASES[case]
    theirs = hub_model(kind, 100, **options)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = read_decoder(tmp_path / "theirs")
    tokens = torch.randint(0, 100, (3, 90), generator=torch.Generator().manual_seed(1))
    expected = logits(theirs, tokens)
    assert expected.std() > 0.3  # a model whose predictions are all alike would prove nothing
    torch.testing.assert_close(logits(ours, tokens), expected, atol=1e-4, rtol=1e-4)

    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.mul_(1.1)
    policy = Policy(ours, SeedFormat(character_tokenizer()), theirs.config.to_dict(), "case")
    write_policy(policy, tmp_path / "ours")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "ours").eval()
    assert type(again) is type(theirs)
    torch.testing.assert_close(logits(again, tokens), logits(ours, tokens), atol=1e-4, rtol=1e-4)


def test_bfloat16_is_close_to_transformers_in_bfloat16(tmp_path: Path) -> None:
    theirs = hub_model("qwen3", 100)
    theirs.save_pretrained(tmp_path)
    tokens = torch.randint(0, 100, (2, 40), generator=torch.Generator().manual_seed(1))
    exact = torch.log_softmax(logits(theirs, tokens), -1)
    ours = torch.log_softmax(logits(read_decoder(tmp_path, torch.bfloat16), tokens).float(), -1)
    rounded = torch.log_softmax(logits(theirs.bfloat16(), tokens).float(), -1)
    assert 0 < (ours - exact).abs().mean() < 1.5 * (rounded - exact).abs().mean() < 0.1


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "gpt2"},
        {"hidden_act": "gelu"},
        {"sliding_window": 128, "model_type": "mistral"},
        {"layer_types": ["full_attention", "sliding_attention"]},
        {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}},
    ],
)
def test_what_it_cannot_run_is_said(change: dict[str, Any]) -> None:
    config = {"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 8,
              "num_hidden_layers": 2, "num_attention_heads": 2}  # fmt: skip
    DecoderConfig.read(config)
    with pytest.raises(ValueError, match=r"model type|activation|sliding|rope"):
        DecoderConfig.read(config | change)


def test_more_tokens_than_the_context_are_refused() -> None:
    config = {"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
              "num_attention_heads": 2, "max_position_embeddings": 16}  # fmt: skip
    with pytest.raises(ValueError, match="17 tokens for a context of 16"):
        Decoder(DecoderConfig.read(config))(torch.zeros(1, 17, dtype=torch.long))
