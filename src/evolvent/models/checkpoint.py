"""Model folders in Hugging Face format: read into our decoder, and written so that `transformers` loads them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from evolvent.core.errors import UserError
from evolvent.core.files import whole
from evolvent.models.decoder import Decoder, DecoderConfig, rotary_tables
from evolvent.models.lora import merged
from evolvent.models.policy import Policy

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHAPES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
)
PICKLED, PICKLED_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"


def read_json(path: Path) -> dict[str, Any]:
    """A file with one JSON object; `UserError` if it is not that."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as reason:
        raise UserError(f"{path} cannot be read ({reason}); save the model again") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} holds no JSON object; save the model again")
    return found


def read_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of a model folder."""
    if not (folder / "config.json").is_file():
        below = sorted(path.parent for path in folder.glob("*/config.json"))
        remedy = (
            f"give the folder of one model, as {below[-1]}"
            if below
            else "give one that `save_pretrained` or `evolvent export` wrote, or that was downloaded whole"
        )
        raise UserError(f"{folder} is not a model folder: it has no config.json; {remedy}")
    return read_json(folder / "config.json")


def weight_files(folder: Path) -> list[Path]:
    """The files that hold a folder's weights; `UserError` if there are none, or if one of several is missing."""
    for single, index in ((WEIGHTS, INDEX), (PICKLED, PICKLED_INDEX)):
        if (folder / single).is_file():
            return [folder / single]
        if (folder / index).is_file():
            files = [folder / n for n in sorted(set(read_json(folder / index).get("weight_map", {}).values()))]
            missing = [f for f in files if not f.is_file()]
            if missing or not files:
                raise UserError(
                    f"{folder} is not whole: it lacks {missing[0].name if missing else 'all weights'}; copy it again"
                )
            return files
    raise UserError(f"{folder} has no weights ({WEIGHTS}); copy the whole model, or save it with `save_pretrained`")


def not_whole(folder: Path, missing: Collection[str]) -> UserError:
    """The error for weights that lack tensors."""
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return UserError(
        f"{folder}: the weights lack {min(missing)}{more}; the folder is not whole, or its config.json is that of "
        "another model: copy or save the model again"
    )


def tensors(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """All tensors of a model folder, one after the other, sharded or not."""
    for path in weight_files(folder):
        try:
            if path.suffix == ".bin":
                yield from torch.load(path, map_location="cpu", weights_only=True, mmap=True).items()
            else:
                with safe_open(path, "pt") as file:
                    for name in file.keys():  # noqa: SIM118 (it is no mapping)
                        yield name, file.get_tensor(name)
        except Exception as reason:
            first = str(reason).strip().splitlines()[0]
            raise UserError(f"{path} cannot be read ({first}); copy or save the model again") from None


def read_decoder(folder: Path, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Decoder:
    """Our decoder with a folder's weights. ValueError if the architecture is another (see `DecoderConfig.read`).

    The model is made without memory, and every tensor takes its place as it is read: nothing is held twice.
    """
    try:
        config = DecoderConfig.read(read_config(folder))
    except KeyError as missing:
        raise UserError(f"{folder}: config.json lacks {missing}; save the model again") from None
    except TypeError as reason:
        raise UserError(f"{folder}: config.json cannot be used ({reason}); save the model again") from None
    for name in SHAPES:
        size = getattr(config, name)
        if not isinstance(size, int) or size < 1:
            raise UserError(f"{folder}: config.json says that {name} is {size!r}; save the model again")
    with torch.device("meta"):
        model = Decoder(config)
    wanted = dict(model.named_parameters())
    for name, tensor in tensors(folder):
        if name not in wanted:
            continue
        if wanted[name].shape != tensor.shape:
            raise UserError(
                f"{folder}: {name} is {list(tensor.shape)}, but config.json says {list(wanted[name].shape)}; weights "
                "and config.json belong to two models, so copy or save the model again"
            )
        module, _, leaf = name.rpartition(".")
        value = tensor.to(device=device, dtype=dtype, copy=True).contiguous()
        setattr(model.get_submodule(module), leaf, nn.Parameter(value))
        del wanted[name]
    if wanted:
        raise not_whole(folder, wanted)
    model.cos, model.sin = (table.to(device) for table in rotary_tables(config))
    return model


def write_weights(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Write one safetensors file, whole or not at all."""
    with whole(path) as part:
        save_file({k: v.detach().contiguous().cpu() for k, v in tensors.items()}, part, metadata={"format": "pt"})


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
    """Write config, weights and tokenizer in a folder of their own, then put the files into place, config.json last."""
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        if isinstance(policy.model, Decoder):
            write_weights(part / WEIGHTS, merged(policy))
            kind = {"dtype" if "dtype" in policy.config else "torch_dtype": str(policy.dtype).removeprefix("torch.")}
            (part / "config.json").write_text(json.dumps(policy.config | kind, indent=2) + "\n")
        else:
            from evolvent.models.huggingface import write_model

            write_model(policy, part)
        policy.format.save(part)
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(part.iterdir(), key=lambda f: f.name == "config.json"):
            if file.is_dir():
                shutil.rmtree(folder / file.name, ignore_errors=True)
            os.replace(file, folder / file.name)
    finally:
        shutil.rmtree(part, ignore_errors=True)
