"""Context rules: which other members the operator sees beside the parent, as inspirations or to cross with.

rule(parent, pool, rng) -> [Candidate]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evolvent.search.candidate import Candidate, ranked
from evolvent.search.parents import Pool

ContextRule = Callable[[Candidate, Pool, np.random.Generator], list[Candidate]]


def alone(parent: Candidate, pool: Pool, rng: np.random.Generator) -> list[Candidate]:
    """Nobody."""
    return []


def best_and_random(
    parent: Candidate, pool: Pool, rng: np.random.Generator, *, best: int = 1, others: int = 1
) -> list[Candidate]:
    """The `best` members and some drawn ones, without the parent and without repeats."""
    order = ranked(c for c in pool.members if c.uid != parent.uid)
    rest = order[best:]
    drawn = rng.permutation(len(rest))[:others].tolist()
    return [*order[:best], *(rest[i] for i in drawn)]
