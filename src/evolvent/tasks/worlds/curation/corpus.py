"""The documents of the world, by split; no clean document, and so no noisy one, is in two of them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from evolvent.core.random import stream
from evolvent.tasks.base import Split
from evolvent.tasks.worlds.curation.issues import Survey, survey
from evolvent.tasks.worlds.curation.noise import noisy
from evolvent.tasks.worlds.curation.texts import document

SIZES: dict[str, int] = {"train": 120, "gate": 60, "test": 240, "held out": 60}
SAMPLE = 48  # documents of a sample


class Documents(NamedTuple):
    """Of one category and split: as collected, as they were, and what a statistic of all of them says."""

    raw: tuple[str, ...]
    clean: tuple[str, ...]
    about: Survey


@lru_cache(maxsize=64)
def documents(category: str, split: str) -> Documents:
    """The documents of a category; `held out` are those that models are tested on, of which `clean` alone is used."""
    place = 0
    seen: set[str] = set()
    for name, size in SIZES.items():
        clean: list[str] = []
        raw: list[str] = []
        while len(clean) < size:
            rng = stream(0, "curation", category, place)
            place += 1
            text = document(category, rng)
            if text not in seen:
                seen.add(text)
                clean.append(text)
                raw.append(noisy(category, text, rng))
        if name == split:
            return Documents(tuple(raw), tuple(clean), survey(raw))
    raise KeyError(split)


def sample(category: str, split: Split, number: int, size: int = SAMPLE) -> tuple[str, ...]:
    """Sample `number` of the raw documents of a split, drawn without replacement, always the same."""
    raw = documents(category, split).raw
    rng = stream(0, "curation sample", category, split, number)
    return tuple(raw[i] for i in rng.permutation(len(raw))[:size].tolist())
