"""Models by name: the seed models `tiny`, `tiny-1` ... `small`, a Hugging Face folder, or a hub id."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer

from evolvent.core.errors import UserError, nearest
from evolvent.models.checkpoint import read_config, read_decoder
from evolvent.models.policy import Policy
from evolvent.models.tokenizer import SeedFormat

SEEDS = Path(__file__).parent / "seeds"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def seed_models() -> list[str]:
    """Names of the models that ship with the package."""
    return sorted(p.name for p in SEEDS.iterdir() if (p / "config.json").is_file()) if SEEDS.is_dir() else []


def find_model(spec: str) -> Path:
    """The folder of a model."""
    name = "tiny-0" if spec == "tiny" else spec
    if name in seed_models():
        return SEEDS / name
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return folder
    known = ["tiny", *seed_models()]
    raise UserError(
        f"unknown model `{spec}`{nearest(spec, known)} (seed models: {', '.join(known)}; or give the folder of a "
        "Hugging Face model)"
    )


def load_policy(spec: str, device: str = "cpu", dtype: str = "float32") -> Policy:
    """A policy with the weights of a model folder."""
    folder = find_model(spec)
    config = read_config(folder)
    model = read_decoder(folder, DTYPES[dtype]).to(device)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    if settings.get("evolvent_format") != "seed":
        raise UserError(f"{folder}: chat formats are not read yet")
    format = SeedFormat(Tokenizer.from_file(str(folder / "tokenizer.json")))
    return Policy(model, format, config, spec)
