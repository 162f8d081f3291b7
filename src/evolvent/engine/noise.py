"""Sampling noise as a hash of (branch uid, position): independent of the batch a branch is in, and of pauses."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_STEP, _MIX1, _MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def uniform(uids: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Uniform numbers in [0, 1), float64, one for each (uid, position); SplitMix64 over both counters."""
    with np.errstate(over="ignore"):
        return _mix(_mix(uids.astype(np.uint64)) ^ (positions.astype(np.uint64) * np.uint64(_STEP))) * 2.0**-64


def _mix(z: np.ndarray) -> np.ndarray:
    z = z + np.uint64(_STEP)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX2)
    return z ^ (z >> np.uint64(31))


def pick(probability: Tensor, noise: np.ndarray) -> Tensor:
    """Inverse-CDF draws, int64 [rows], from probabilities [rows, vocabulary] and uniform numbers [rows].

    Sums in float64, and a draw never lands on a token of probability zero.
    """
    cumulative = probability.cumsum(-1, dtype=torch.float64)
    target = torch.from_numpy(noise).to(probability.device)[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, target, right=True)[:, 0].clamp_(max=probability.shape[1] - 1)
