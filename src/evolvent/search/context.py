"""Context rules: which other members the operator sees beside the parent, as inspirations or to cross with.

rule(parent, pool, rng) -> [Candidate]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evolvent.core.ranges import Share, Whole
from evolvent.search.candidate import Candidate, ranked
from evolvent.search.parents import Pool

ContextRule = Callable[[Candidate, Pool, np.random.Generator], list[Candidate]]


def alone(parent: Candidate, pool: Pool, rng: np.random.Generator) -> list[Candidate]:
    """Nobody."""
    return []


def inspirations(
    parent: Candidate, pool: Pool, rng: np.random.Generator, *, archive: Whole = 4, elites: Share = 0.3, top: Whole = 2
) -> list[Candidate]:
    """Members without the parent, the best of them last: `archive` inspirations, which are the best one, then the
    `elites` share of the best, then random ones; and the `top` best of the rest (ShinkaEvolve, arXiv 2509.19349).

    All are of the parent's island. The number of elites is that of ranks looked at, as in the published code: with 4
    and 0.3 that is the best one.
    """
    order = ranked(c for c in pool.members if c.uid != parent.uid)
    chosen = order[: min(archive, max(1, int(archive * elites)))]
    rest = order[len(chosen) :]
    drawn = [rest[i] for i in rng.permutation(len(rest))[: archive - len(chosen)].tolist()]
    left = [c for c in rest if c not in drawn]
    return ranked([*chosen, *drawn, *left[:top]])[::-1]


def best_and_random(
    parent: Candidate, pool: Pool, rng: np.random.Generator, *, best: Whole = 1, others: Whole = 1
) -> list[Candidate]:
    """The `best` members and some drawn ones, without the parent and without repeats."""
    order = ranked(c for c in pool.members if c.uid != parent.uid)
    rest = order[best:]
    drawn = rng.permutation(len(rest))[:others].tolist()
    return [*order[:best], *(rest[i] for i in drawn)]
