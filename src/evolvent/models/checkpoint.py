"""Model folders in Hugging Face format: read into our decoder, and written so that `transformers` loads them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from evolvent.core.errors import UserError
from evolvent.models.decoder import Decoder, DecoderConfig
from evolvent.models.policy import Policy

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


def read_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of a model folder."""
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(f"{folder} is not a model folder: it has no config.json")
    try:
        return json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as reason:
        raise UserError(f"{path} cannot be read ({reason}); save the model again") from None


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of a model folder, sharded or not."""
    if (folder / WEIGHTS).is_file():
        names = [WEIGHTS]
    elif (folder / INDEX).is_file():
        names = sorted(set(json.loads((folder / INDEX).read_text())["weight_map"].values()))
    else:
        raise UserError(
            f"{folder} has no weights ({WEIGHTS}); convert them with `save_pretrained(safe_serialization=True)`"
        )
    tensors: dict[str, torch.Tensor] = {}
    for name in names:
        try:
            tensors.update(load_file(folder / name))
        except Exception as reason:
            raise UserError(f"{folder / name} cannot be read ({reason}); copy or save the model again") from None
    return tensors


def read_decoder(folder: Path, dtype: torch.dtype = torch.float32) -> Decoder:
    """Our decoder with a folder's weights. ValueError if the architecture is another (see `DecoderConfig.read`)."""
    config = DecoderConfig.read(read_config(folder))
    tensors = read_weights(folder)
    model = Decoder(config)
    if config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    wanted = dict(model.named_parameters())
    missing = sorted(set(wanted) - set(tensors))
    if missing:
        raise UserError(f"{folder}: the weights lack {missing[0]} and {len(missing) - 1} more; the folder is not whole")
    with torch.no_grad():
        for name, parameter in wanted.items():
            if parameter.shape != tensors[name].shape:
                raise UserError(
                    f"{folder}: {name} is {list(tensors[name].shape)}, but config.json says {list(parameter.shape)}"
                )
            parameter.copy_(tensors[name])
    return model.to(dtype)


def write_weights(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Write one safetensors file, whole or not at all."""
    part = path.with_suffix(".part")
    save_file({k: v.detach().contiguous().cpu() for k, v in tensors.items()}, part, metadata={"format": "pt"})
    os.replace(part, path)


def seed_config(layers: int, width: int, heads: int, inner: int, context: int, vocabulary: int) -> dict[str, Any]:
    """The `config.json` of a seed model: a small Llama with tied embeddings."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": width // heads,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
    }


def write_policy(policy: Policy, folder: Path) -> None:
    """Write config, weights and tokenizer, each file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(policy.model, Decoder):
        from evolvent.models.lora import merged

        (folder / "config.json").write_text(json.dumps(policy.config, indent=2) + "\n")
        write_weights(folder / WEIGHTS, merged(policy))
    else:
        from evolvent.models.lora import unloaded

        unloaded(policy).save_pretrained(folder, safe_serialization=True)
    policy.format.save(folder)
