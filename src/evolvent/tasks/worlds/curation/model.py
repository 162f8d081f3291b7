"""A small language model of bytes, by which a cleaned corpus is measured: n-grams with Witten-Bell smoothing.

    p_n(w | h) = (c(hw) + T(h) p_{n-1}(w | h')) / (c(h) + T(h)),   p_0 = 1 / 256

c counts, T(h) is the number of different bytes seen after h, h' is h without its first byte (Witten and Bell, 1991).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

ORDER = 5  # bytes of an n-gram; up to 7 fit into 64 bits beside their length


def bits_per_byte(training: bytes, text: bytes, order: int = ORDER) -> float:
    """Cross-entropy of `text` under the model of `training`, in bits per byte; both must have more than `order`
    bytes, and the first `order` - 1 bytes of `text` are given, not predicted."""
    seen, asked = (np.frombuffer(b, np.uint8).astype(np.int64) for b in (training, text))
    p = np.full(len(asked) - order + 1, 1 / 256)
    for n in range(1, order + 1):
        grams = _grams(seen, n)
        known, counts = np.unique(grams, return_counts=True)
        before, first, types = np.unique(known >> 8, return_index=True, return_counts=True)
        tokens = np.add.reduceat(counts, first)
        wanted = _grams(asked, n)[order - n :]
        c = _looked_up(known, counts, wanted)
        total = _looked_up(before, tokens, wanted >> 8)
        kinds = _looked_up(before, types, wanted >> 8)
        p = np.where(total > 0, (c + kinds * p) / np.maximum(total + kinds, 1), p)
    return float(-np.log2(p).mean())


def _grams(data: Int[np.ndarray, " bytes"], n: int) -> Int[np.ndarray, " grams"]:
    """Each n bytes in a row as one number."""
    found = np.zeros(len(data) - n + 1, np.int64)
    for i in range(n):
        found = (found << 8) | data[i : len(data) - n + 1 + i]
    return found


def _looked_up(
    keys: Int[np.ndarray, " known"], values: Int[np.ndarray, " known"], wanted: Int[np.ndarray, " asked"]
) -> Float[np.ndarray, " asked"]:
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0).astype(float)
