"""Boltzmann choice of parents at a temperature that follows the diversity of the population (LoongFlow)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from evolvent.core.ranges import Count, Positive, Share, Whole
from evolvent.search.candidate import Candidate, island_of
from evolvent.search.grid import looks_of
from evolvent.search.magnitude import moderate
from evolvent.search.parents import Pool

SAMPLED = 50  # candidates that the diversity is computed of
LEAST, MOST = 0.5, 2.0  # temperatures


def adaptive_boltzmann(
    pool: Pool,
    rng: np.random.Generator,
    *,
    base: Positive = 1.0,
    explore: Share = 0.2,
    elites: Count = 3,
    others: Whole = 2,
    population: Count = 100,
    archive: Count = 50,
    adapts: bool = True,
) -> Candidate:
    """With probability `explore` anybody of the population, else one of a few at the temperature T (LoongFlow, arXiv
    2512.24077, and its code, memory/evolution).

        p ~ exp((value - best) / T)    among `elites` of the archive and `others` of the population that are not in it
        T = 0.8 clip(base (1 + (2 D - 1)), 0.5, 2) + 0.2 base,  D the diversity; T = base if not `adapts`

    The best `population` candidates of all islands live, and the latest; the best `archive` of these are the elites, of
    whichever island. The population is who lives on the island whose turn it is, members that have come to it included.
    If there are too few of one kind the other fills up. In the published code 0.2 of the temperature is that of the
    step before, which is the base each time; the others are drawn from everybody, by a comparison that is never true;
    and there is a weight for each candidate that nothing sets.
    """
    valid = [c for c in pool.history if c.valid]
    living = heapq.nlargest(population, valid, key=lambda c: c.merit)
    alive, members = {c.uid for c in [*living, *valid[-1:]]}, {c.uid for c in pool.members}
    home = island_of(pool.members)
    everybody = [c for c in valid if c.uid in alive and (c.island == home or c.uid in members)] or list(pool.members)
    if rng.random() < explore:
        return everybody[int(rng.integers(len(everybody)))]
    best = living[:archive]
    known = {c.uid for c in best}
    ordinary = [c for c in everybody if c.uid not in known]
    ups = [best[i] for i in rng.permutation(len(best)).tolist()]
    rest = [ordinary[i] for i in rng.permutation(len(ordinary)).tolist()]
    few = [*ups[:elites], *rest[:others]]
    few += [*ups[elites:], *rest[others:]][: elites + others - len(few)]
    t = temperature_at(diversity(everybody, rng), base) if adapts else base
    values = moderate(np.array([c.value for c in few]))
    p = np.exp((values - values.max()) / t)
    return few[int(rng.choice(len(few), p=p / p.sum()))]


def temperature_at(diversity: float, base: float = 1.0) -> float:
    """T = 0.8 clip(base 2 D, 0.5, 2) + 0.2 base."""
    return 0.8 * float(np.clip(base * (1 + (2 * diversity - 1)), LEAST, MOST)) + 0.2 * base


def diversity(candidates: Sequence[Candidate], rng: np.random.Generator) -> float:
    """Mean over pairs of at most 50 of them, from 0 (all alike) to about 1.

    d(a, b) = 0.4 |difference in length| / longer + 0.3 |in newlines| / more + 0.3 |characters of one only| / more
    """
    if len(candidates) < 2:
        return 0.0
    drawn = [candidates[i] for i in rng.permutation(len(candidates))[:SAMPLED].tolist()]
    looks = [looks_of(c.text) for c in drawn]
    found = []
    for (long, lines, letters), (long2, lines2, letters2) in combinations(looks, 2):
        apart = abs(long - long2) / max(1, long, long2), abs(lines - lines2) / max(1, lines, lines2)
        other = len(letters ^ letters2) / max(1, len(letters), len(letters2))
        found.append(0.4 * apart[0] + 0.3 * apart[1] + 0.3 * other)
    return float(np.mean(found))
