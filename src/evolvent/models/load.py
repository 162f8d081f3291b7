"""Models by name: the seed models `tiny`, `tiny-1` ... `small`, a Hugging Face folder, a hub id, or an adapter of one.

Llama, Mistral and Qwen models run on our decoder, all others as `transformers` has them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer

from evolvent.core.errors import UserError, nearest, unknown
from evolvent.core.random import stream
from evolvent.models import lora
from evolvent.models.checkpoint import read_config, read_decoder, read_json, weight_files
from evolvent.models.decoder import DecoderConfig
from evolvent.models.lora import Lora
from evolvent.models.policy import Policy
from evolvent.models.tokenizer import Format, SeedFormat

if TYPE_CHECKING:
    from torch import nn

SEEDS = Path(__file__).parent / "seeds"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HUB = re.compile(r"(?P<id>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
FILES = ["*.json", "*.jinja", "*.safetensors", "*.txt", "*.model", "*.tiktoken"]
LEFT_OUT = ["onnx/*", "original/*", "metal/*", "openvino/*", "*.onnx*"]


def seed_models() -> list[str]:
    """Names of the models that ship with the package."""
    return sorted(p.name for p in SEEDS.iterdir() if (p / "config.json").is_file()) if SEEDS.is_dir() else []


def find_model(spec: str) -> Path:
    """The folder of a model; a hub id is downloaded unless it is in the local cache."""
    name = "tiny-0" if spec == "tiny" else spec
    if name in seed_models():
        return SEEDS / name
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise UserError(f"{spec} is a file; give the folder of the model that it belongs to, as {folder.parent}")
    known = ["tiny", *seed_models()]
    at_hub = HUB.fullmatch(spec)
    if at_hub and not spec.startswith("."):
        return from_hub(at_hub["id"], at_hub["revision"])
    near = nearest(spec, known) or near_folder(spec)
    raise UserError(
        f"unknown model `{spec}`{near} (seed models: {', '.join(known)}; or give the folder or the "
        "hub id of a Hugging Face model, as in Qwen/Qwen2.5-0.5B-Instruct)"
    )


def near_folder(spec: str) -> str:
    """`; did you mean x?` for the folder here whose name is nearest, or an empty string."""
    path = Path(spec).expanduser()
    try:
        folders = sorted(str(p) for p in path.parent.iterdir() if p.is_dir())
    except OSError:
        return ""
    return nearest(str(path), folders)


def weights_size(spec: str) -> int:
    """Bytes of the weights of a model that is on this machine, by name or folder; 0 if it is not."""
    name = "tiny-0" if spec == "tiny" else spec
    folder = SEEDS / name if name in seed_models() else Path(spec or "-").expanduser()
    return sum(f.stat().st_size for f in folder.glob("*.safetensors")) if folder.is_dir() else 0


def from_hub(name: str, revision: str | None = None) -> Path:
    """The local snapshot of a hub id."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    endpoint = os.environ.get("HF_ENDPOINT")

    def download(*patterns: str) -> Path:
        return Path(
            snapshot_download(
                name, revision=revision, endpoint=endpoint, allow_patterns=list(patterns), ignore_patterns=LEFT_OUT
            )
        )

    try:
        folder = download(*FILES)
        if not list(folder.glob("*.safetensors")):
            folder = download("pytorch_model*.bin", "adapter_model.bin")
    except GatedRepoError:
        raise UserError(f"`{name}` is gated: accept its licence on the hub, then set HF_TOKEN") from None
    except RevisionNotFoundError:
        raise UserError(f"`{name}` has no revision `{revision}` on the hub; leave it out for the newest one") from None
    except RepositoryNotFoundError:
        raise UserError(f"the hub has no model `{name}`, or it is private; check the name, or set HF_TOKEN") from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError) as reason:
        first = str(reason).strip().splitlines()[0]
        raise UserError(
            f"`{name}` is neither a folder here nor in the local cache, and the hub cannot be reached ({first})"
            f"{near_folder(name)}; check the name and the network, or give the folder of a model"
        ) from None
    return folder


def find_device(name: str) -> torch.device:
    """The device of a name; `UserError` unless it is there."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise unknown("device", name, ["cpu", "cuda", "mps"], "devices: cpu, cuda, cuda:1, mps") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(
            f"device `{name}`: torch sees no CUDA device; use --device cpu, or install a CUDA build of torch"
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f"device `{name}`: there are {torch.cuda.device_count()} CUDA devices, counted from cuda:0")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UserError(f"device `{name}`: torch sees no Apple GPU; use --device cpu")
    if device.type not in ("cpu", "cuda", "mps"):
        raise unknown("device", name, ["cpu", "cuda", "mps"], "devices: cpu, cuda, cuda:1, mps")
    return device


def load_policy(
    spec: str,
    device: str = "cpu",
    dtype: str = "float32",
    adapters: Mapping[str, Lora] | None = None,
    seed: int = 0,
) -> Policy:
    """A policy with the weights of a model, and new LoRA adapters by name, drawn from `seed`.

    Where `spec` is a PEFT adapter, the policy has its base model and the adapter, under the name `policy` or under
    each of the names in `adapters`, whose options then count for nothing.
    """
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES, "dtypes: " + ", ".join(DTYPES))
    place = find_device(device)
    folder = find_model(spec)
    adapter = folder if (folder / lora.CONFIG).is_file() and not (folder / "config.json").is_file() else None
    source = spec
    if adapter is not None:
        source = str(lora.read_adapter_config(adapter).get("base_model_name_or_path") or "")
        if not source:
            raise UserError(f"{adapter} is an adapter that does not name its base model; add it to {lora.CONFIG}")
        folder = find_model(source)
    config = read_config(folder)
    model = read_model(folder, DTYPES[dtype], place)
    format = read_format(folder, config)
    policy = Policy(model, format, config, spec, str(folder.resolve()) if Path(source).is_dir() else source)
    for name, options in (adapters or ({"policy": Lora()} if adapter else {})).items():
        if adapter is not None:
            lora.load_adapter(policy, name, adapter)
        else:
            lora.attach(policy, name, options, stream(seed, "adapter", name))
    return policy


def read_model(folder: Path, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """Our decoder where the architecture is one that it knows, otherwise the model of transformers."""
    from evolvent.models import huggingface

    config = read_config(folder)
    huggingface.check_causal(folder, config)
    weight_files(folder)
    try:
        DecoderConfig.read(config)
    except ValueError:
        return huggingface.read_model(folder, dtype, device)
    except KeyError:
        pass  # `read_decoder` says what is missing
    return read_decoder(folder, dtype, device)


def read_format(folder: Path, config: Mapping[str, Any]) -> Format:
    """The format of the folder's tokenizer."""
    settings = folder / "tokenizer_config.json"
    if settings.is_file() and read_json(settings).get("evolvent_format") == "seed":
        try:
            return SeedFormat(Tokenizer.from_file(str(folder / "tokenizer.json")))
        except Exception as reason:
            raise UserError(f"{folder}: the tokenizer cannot be read ({reason}); save the model again") from None
    from evolvent.models.chat import ChatFormat

    return ChatFormat.read(folder, config)
