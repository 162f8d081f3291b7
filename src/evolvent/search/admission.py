"""Admission rules: who may be a parent after a candidate has been evaluated. Nobody leaves the history.

rule(candidate, members) -> members
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evolvent.core.errors import unknown
from evolvent.core.ranges import Count
from evolvent.search.candidate import Candidate, ranked
from evolvent.search.grid import map_elites as map_elites  # so that keep.admit=map_elites finds it
from evolvent.search.normal import similarity
from evolvent.search.nsga2 import nsga2 as nsga2
from evolvent.search.objectives import scores, views_by
from evolvent.search.spea2 import spea2 as spea2

Admission = Callable[[Candidate, list[Candidate]], list[Candidate]]


def keep_all(candidate: Candidate, members: list[Candidate]) -> list[Candidate]:
    """Everybody who is valid."""
    return [*members, candidate] if candidate.valid else members


def complete(candidate: Candidate, members: list[Candidate]) -> list[Candidate]:
    """Everybody who is valid and was evaluated on everything (GEPA, arXiv 2507.19457: who was accepted)."""
    return keep_all(candidate, members) if candidate.evaluation.complete else members


def top(candidate: Candidate, members: list[Candidate], *, size: Count = 40) -> list[Candidate]:
    """The best `size`; of equals those who came first. In the order in which they were made."""
    if not candidate.valid:
        return members
    return sorted(ranked([*members, candidate])[:size], key=lambda c: c.uid)


def improved(candidate: Candidate, members: list[Candidate]) -> list[Candidate]:
    """One member: the candidate, if it is better than the one before, or there was none (arXiv 2605.05724)."""
    return [candidate] if candidate.valid and all(candidate.merit > c.merit for c in members) else members


def crowding(candidate: Candidate, members: list[Candidate], *, size: Count = 40) -> list[Candidate]:
    """Once there are `size` members, a newcomer takes the place of the most similar one, if it is strictly better.

    The archive strategy `crowding` of ShinkaEvolve's code (arXiv 2509.19349), with the cosine of the programs' n-grams
    in the place of embeddings. There the mean of the other metrics decides between equals, then the newer one wins.
    """
    if not candidate.valid:
        return members
    if len(members) < size:
        return [*members, candidate]
    nearest = max(members, key=lambda c: similarity(candidate.text, c.text))  # the first of equals
    return [*(c for c in members if c is not nearest), candidate] if candidate.value > nearest.value else members


def pareto(candidate: Candidate, members: list[Candidate], *, metrics: tuple[str, ...]) -> list[Candidate]:
    """Who is not dominated: nobody else is at least as good in all of the `metrics` and better in one.

    A metric is one of the evaluator's, or `value`; more is better, and with a minus before its name less is. Of those
    that are equal in all of them the first one stays. Who lacks one of them is the worst there; the seed program must
    have all: `UserError` otherwise.
    """
    if not candidate.valid:
        return members
    new, old = scores(candidate, metrics), [scores(c, metrics) for c in members]
    for name, score in zip(metrics, new, strict=True):
        if not members and score == -np.inf:
            choices = sorted({"value", *candidate.evaluation.metrics})
            raise unknown("metric", name, choices, f"the seed program has {', '.join(choices)}")
    if any((score >= new).all() for score in old):
        return members
    return [*(c for c, score in zip(members, old, strict=True) if not (new >= score).all()), candidate]


def several(
    candidate: Candidate,
    members: list[Candidate],
    *,
    metrics: tuple[str, ...] = ("value", "simplicity"),
    rule: Admission = map_elites,
) -> list[Candidate]:
    """Whoever the `rule` keeps by one of the `metrics`, each in the place of the value: several objectives at once
    (AlphaEvolve, arXiv 2506.13131, section 2.4). What nobody has is no objective yet."""
    if not candidate.valid:
        return members
    everybody, kept = {c.uid: c for c in [*members, candidate]}, set[int]()
    for view in views_by([*members, candidate], metrics):
        kept |= {c.uid for c in rule(view[-1], view[:-1])}
    return [everybody[uid] for uid in sorted(kept)]
