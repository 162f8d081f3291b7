"""Counter-based randomness: a stream is a function of a seed and a path, so there is no state to save.

Adding a part shifts nobody else's draws, and a resumed run draws what the uninterrupted one would have drawn.
"""

from __future__ import annotations

import hashlib

import numpy as np


def digest(*path: object, size: int = 16) -> bytes:
    """Hash of a path of strings, numbers and None; `("a", 1)` and `("a1",)` differ."""
    return hashlib.blake2b(_text(path), digest_size=size).digest()


def _text(path: tuple[object, ...]) -> bytes:
    return "\x1f".join([f"{type(p).__name__}:{p}" for p in path]).encode()


def stream(seed: int, *path: object) -> np.random.Generator:
    """Independent generator for (seed, path)."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest(seed, *path), "little")))


def identifier(seed: int, *path: object) -> int:
    """63-bit number for (seed, path); names the noise stream of a branch."""
    return int.from_bytes(digest(seed, *path, size=8), "little") >> 1


def identifiers(count: int, seed: int, *path: object) -> list[int]:
    """`identifier(seed, *path, i)` for every i below `count`, at half the cost."""
    begun, found = hashlib.blake2b(_text((seed, *path)), digest_size=8), []
    for i in range(count):
        state = begun.copy()
        state.update(b"\x1fint:%d" % i)
        found.append(int.from_bytes(state.digest(), "little") >> 1)
    return found
