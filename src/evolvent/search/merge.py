"""Merging: of two programs with a common ancestor each segment is taken from the one that has changed it (GEPA)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolvent.core.random import identifiers
from evolvent.core.records import Group, Request
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import written
from evolvent.search.segments import segments, with_segment

MERGED = "merged"  # in the data of a request's problem: the program, which nobody has to write
TRIES = 10  # pairs that are drawn before there is none


@dataclass(frozen=True)
class Merged:
    """A program made of two, and of whom."""

    text: str
    parents: tuple[Candidate, Candidate]
    ancestor: Candidate

    @property
    def key(self) -> tuple[int, int, int]:
        """To know it again."""
        a, b = sorted(c.uid for c in self.parents)
        return a, b, self.ancestor.uid


def merged(one: Candidate, other: Candidate, ancestor: Candidate, rng: np.random.Generator) -> str | None:
    """The program; None where no segment was changed by one of the two alone, or they have not as many segments.

    What both have changed comes from the better one, of equals from a drawn one.
    """
    old, a, b = (segments(c.text) for c in (ancestor, one, other))
    if not len(old) == len(a) == len(b):
        return None
    if not any((x == before) != (y == before) for before, x, y in zip(old, a, b, strict=True)):
        return None
    text = one.text
    for place, (before, x, y) in enumerate(zip(old, a, b, strict=True)):
        if x == y or y == before:
            continue
        equal = one.value == other.value
        second = rng.random() < 0.5 if equal else other.value > one.value
        if x == before or second:
            text = with_segment(text, place, y)
    return text


def merge(
    front: Sequence[Candidate],
    history: Sequence[Candidate],
    tried: set[tuple[int, int, int]],
    rng: np.random.Generator,
) -> Merged | None:
    """A merge of two drawn members of the front, none of which descends from the other, with their best ancestor that
    is no better than either; None where `TRIES` draws find none that is new (GEPA, arXiv 2507.19457, appendix F).

    The published code draws the ancestor, in proportion to its value; values can be negative here.
    """
    known = {c.text for c in history}
    for _ in range(TRIES if len(front) > 1 else 0):
        one, other = (front[int(i)] for i in rng.choice(len(front), 2, replace=False))
        above, below = ancestors(one, history), ancestors(other, history)
        if one.uid in below or other.uid in above:
            continue
        shared = [history[uid] for uid in above & below if history[uid].value <= min(one.value, other.value)]
        for ancestor in sorted(shared, key=lambda c: c.merit, reverse=True):
            text = merged(one, other, ancestor, rng)
            found = None if text is None or text in known else Merged(text, (one, other), ancestor)
            if found is not None and found.key not in tried:
                return found
    return None


def ancestors(candidate: Candidate, history: Sequence[Candidate]) -> set[int]:
    """Everybody whom a candidate descends from, by number."""
    found, left = set[int](), list(candidate.parents)
    while left:
        uid = left.pop()
        if uid not in found:
            found.add(uid)
            left += history[uid].parents
    return found


def contested(one: Candidate, other: Candidate, prefix: str, count: int, rng: np.random.Generator) -> list[str]:
    """So many instances to try a merged program on, as far as there are any: a third where the first parent is better,
    a third where the other one is, a third where they are equal, and whatever is missing from the rest."""
    a, b = one.evaluation.metrics, other.evaluation.metrics
    names = [name for name in a if name.startswith(prefix) and name in b]
    kinds: Mapping[int, list[str]] = {sign: [n for n in names if np.sign(a[n] - b[n]) == sign] for sign in (1, -1, 0)}
    share = -(-count // 3)
    chosen: list[str] = []
    for kind in kinds.values():
        chosen += [kind[int(i)] for i in rng.permutation(len(kind))[: min(share, count - len(chosen))]]
    rest = [name for name in names if name not in chosen]
    chosen += [rest[int(i)] for i in rng.permutation(len(rest))[: count - len(chosen)]]
    return [name.removeprefix(prefix) for name in chosen]


@dataclass
class Merging:
    """Around a roll-out: programs that were merged need nobody to write them."""

    inner: Any

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request, in their order."""
        rest = iter(self.inner([r for r in requests if MERGED not in r.problem.data], s))
        groups = []
        for place, request in enumerate(requests):
            if MERGED not in request.problem.data:
                groups.append(next(rest))
                continue
            assert archive_of(s.role).history
            uids = identifiers(request.n, s.role.seed, *s.path, "merge", s.round, place)
            text = request.problem.data[MERGED]
            groups.append(Group(request.problem, [written(uid, request, text, "merge") for uid in uids]))
        return groups
