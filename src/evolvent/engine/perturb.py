"""Seeded low-rank noise of a population member, drawn the same way by the engine and by the learner."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from evolvent.core.random import stream
from evolvent.engine.base import Noise
from evolvent.models.decoder import Low, LowRank


def linear_modules(model: nn.Module) -> dict[str, nn.Linear]:
    """The linear maps that noise is added to, by name; the output head and the embedding stay as they are."""
    return {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear) and not n.endswith("lm_head")}


def draw(seed: int, module: str, out: int, inner: int, rank: int) -> tuple[Tensor, Tensor]:
    """A [out, rank] and B [in, rank], standard normal, a function of the seed and the module's name."""
    rng = stream(seed, "noise", module)
    values = rng.standard_normal((out + inner) * rank, dtype=np.float32)
    a, b = torch.from_numpy(values[: out * rank]), torch.from_numpy(values[out * rank :])
    return a.view(out, rank), b.view(inner, rank)


def perturbation(model: nn.Module, noise: Noise) -> LowRank:
    """The member's change of every linear map, scaled by sign * sigma / sqrt(rank)."""
    scale = noise.sign * noise.sigma / noise.rank**0.5
    changes = {}
    for name, module in linear_modules(model).items():
        a, b = draw(noise.seed, name, module.out_features, module.in_features, noise.rank)
        weight = module.weight
        changes[name] = Low((a * scale).to(weight.device, weight.dtype), b.to(weight.device, weight.dtype))
    return changes
