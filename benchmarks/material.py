"""The models and problems that the measurements are made with."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from evolvent.core.random import stream
from evolvent.models.decoder import Decoder, DecoderConfig, initialise
from evolvent.models.load import load_policy, seed_models
from evolvent.models.policy import Policy
from evolvent.models.pretrain import write_seed_model
from evolvent.models.shipped import shape_of
from evolvent.models.tokenizer import SeedFormat, character_tokenizer
from evolvent.tasks.registry import load_task


def random_model(folder: Path, shape: str) -> str:
    """A folder with a model of a seed model's shape and random weights, which both sides load."""
    format = SeedFormat(character_tokenizer())
    config = shape_of(shape).config(format.size)
    model = Decoder(DecoderConfig.read(config))
    initialise(model, torch.Generator().manual_seed(0))
    folder.mkdir(parents=True, exist_ok=True)
    write_seed_model(folder, model, config, format)
    return str(folder)


def model_of(name: str, folder: Path) -> str:
    """The seed model of this name; where it does not ship yet, one of its shape with random weights."""
    known = seed_models()
    return name if name in known or f"{name}-0" in known else random_model(folder / name, name)


def random_policy(folder: Path, shape: str) -> Policy:
    """The same, loaded."""
    return load_policy(random_model(folder, shape))


def write_problems(path: Path, task: str, count: int, seed: int = 0) -> Path:
    """Problems of a task for the peer, as JSON lines; `tokens` is what our side reads."""
    made, format = load_task(task), SeedFormat(character_tokenizer())
    rng = stream(seed, "benchmark", task)
    with path.open("w") as file:
        for problem in (made.draw("train", rng) for _ in range(count)):
            text = "<bos>" + "".join(m.content for m in problem.prompt)
            file.write(json.dumps({"prompt": text, "tokens": format.prompt(problem.prompt), **problem.data}) + "\n")
    return path
