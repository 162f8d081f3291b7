"""Counter-based randomness: a stream is a function of a seed and a path, so there is no state to save.

Adding a part shifts nobody else's draws, and a resumed run draws what the uninterrupted one would have drawn.
"""

from __future__ import annotations

import hashlib

import numpy as np


def digest(*path: object, size: int = 16) -> bytes:
    """Hash of a path of strings, numbers and None; `("a", 1)` and `("a1",)` differ."""
    text = "\x1f".join(f"{type(p).__name__}:{p}" for p in path)
    return hashlib.blake2b(text.encode(), digest_size=size).digest()


def stream(seed: int, *path: object) -> np.random.Generator:
    """Independent generator for (seed, path)."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest(seed, *path), "little")))


def identifier(seed: int, *path: object) -> int:
    """63-bit number for (seed, path); names the noise stream of a branch."""
    return int.from_bytes(digest(seed, *path, size=8), "little") >> 1
