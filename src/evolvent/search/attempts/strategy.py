"""Strategies of the scripted repair agent, and the rules that make one of earlier attempts.

A rule has the pool of a bug's summaries, oldest first, and gives the next strategy. They stand where a model would
write one; with a model see `search/prompts/attempts`. Revision, recombination and refinement are SE-Agent's (arXiv
2508.02085), `distilled` is the second wave of PDR (arXiv 2604.16529); what these say to a model in words is said here
to a program in data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

import numpy as np

from evolvent.search.attempts.summary import Summary

Item = TypeVar("Item")
ENTRIES = ("failing", "ochiai", "top", "bottom")
ORDERS = ("weighted", "in_turn", "rare_first")


@dataclass(frozen=True)
class Strategy:
    """What `tasks/worlds/repair/scripted.py` follows; as a text it is the prefix of an attempt."""

    operators: tuple[str, ...]
    entry: str
    order: str
    known: tuple[str, ...] = ()
    focus: tuple[tuple[str, int], ...] = ()
    avoid: tuple[str, ...] = ()

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Toolbox:
    """What a scripted attempt may draw from: names of operators, how many an attempt has, and a habit.

    With a habit above 0 an attempt that has no strategy is like all others: operators are drawn with p ~ rank^-habit,
    in the order of the toolbox. Strategies are free of it.
    """

    operators: tuple[str, ...]
    each: int = 4
    habit: float = 0.0

    def base(self, rng: np.random.Generator) -> Strategy:
        """Nothing is known."""
        weights = np.arange(1, len(self.operators) + 1, dtype=float) ** -self.habit
        return Strategy(self.some(self.operators, rng, weights), one(ENTRIES, rng), one(ORDERS, rng))

    def some(
        self,
        names: Sequence[str],
        rng: np.random.Generator,
        weights: np.ndarray | None = None,
        count: int | None = None,
    ) -> tuple[str, ...]:
        """Up to `count` different names (as many as an attempt has), evenly or by weights."""
        size = min(self.each if count is None else count, len(names))
        p = None if weights is None else weights / weights.sum()
        return tuple(names[int(i)] for i in rng.choice(len(names), size, replace=False, p=p)) if size > 0 else ()


Rule = Callable[[Sequence[Summary], Toolbox, np.random.Generator], Strategy | None]  # None: nothing to go by


def base(pool: Sequence[Summary], box: Toolbox, rng: np.random.Generator) -> Strategy | None:
    """An attempt that knows of no other."""
    return None


def revision(pool: Sequence[Summary], box: Toolbox, rng: np.random.Generator) -> Strategy | None:
    """Orthogonal to the latest attempt that failed: other operators, another place to begin at, another order."""
    latest = next((s for s in reversed(pool) if not s.solved), None)
    if latest is None:
        return None
    others = [name for name in box.operators if name not in latest.tools]
    entry = [name for name in ENTRIES if f"`{name}`" not in latest.assumptions]
    return Strategy(box.some(others, rng), one(entry, rng), one([o for o in ORDERS if o != latest.pattern], rng))


def recombination(pool: Sequence[Summary], box: Toolbox, rng: np.random.Generator) -> Strategy | None:
    """Of the two latest attempts: what helped in either, then what neither has tried; `None` with fewer than two.

    An operator helped where a change of it made a failing visible test pass. The places where that was are looked at
    first, and what both have tried is left out. The released code takes the two latest attempts, too.
    """
    if len(pool) < 2:
        return None
    a, b = pool[-2:]
    helped = unique([name for s in (a, b) for name, _ in promising(s)])
    blind = [name for name in box.operators if name not in (*a.tools, *b.tools)]
    operators = helped[: box.each] + box.some(blind, rng, count=box.each - len(helped))
    better = max((b, a), key=lambda s: s.passed)
    return Strategy(
        operators or box.some(box.operators, rng),
        entry_of(better, rng),
        better.pattern if better.pattern in ORDERS else one(ORDERS, rng),
        focus=unique([*promising(a), *promising(b)]),
        avoid=unique([t[0] for s in (a, b) for t in s.tried]),
    )


def refinement(pool: Sequence[Summary], box: Toolbox, rng: np.random.Generator) -> Strategy | None:
    """The most promising attempt once more, without what failed anywhere in the pool, and where it got furthest first.

    If its operators have nothing left, those that nobody has tried take their place. A patch of it that passes all
    visible tests is handed in again, at the price of one program's tests.
    """
    if not pool:
        return None
    best = max(pool, key=lambda s: (s.passed, s.left))
    tried = unique([t[0] for s in pool for t in s.tried])
    open_ = best.tools if len(best.tried) < best.offered else unique([name for name, _ in promising(best)])
    fresh = [name for name in box.operators if all(name not in s.tools for s in pool)]
    operators = open_[: box.each] + box.some(fresh, rng, count=box.each - len(open_[: box.each]))
    return Strategy(
        operators or box.some(box.operators, rng),
        entry_of(best, rng),
        best.pattern if best.pattern in ORDERS else one(ORDERS, rng),
        known=(best.patch,) if best.solved else (),
        focus=promising(best),
        avoid=tuple(d for d in tried if d not in {t[0] for t in best.tried if t[3] == best.shown}),
    )


def distilled(pool: Sequence[Summary], box: Toolbox, rng: np.random.Generator) -> Strategy | None:
    """A fresh start that has read the pool: its patches first, then what helped and what nobody has tried."""
    if not pool:
        return None
    best = sorted(pool, key=lambda s: -s.passed)
    helped = unique([name for s in best for name, _ in promising(s)])[: box.each]
    fresh = [name for name in box.operators if all(name not in s.tools for s in pool)]
    operators = helped + box.some(fresh, rng, count=box.each - len(helped))
    known = unique([s.patch for s in best if s.changed])
    return Strategy(
        operators or box.some(box.operators, rng),
        one(ENTRIES, rng),
        one(ORDERS, rng),
        known,
        unique([pair for s in best for pair in promising(s)]),
        unique([t[0] for s in pool for t in s.tried if t[3] < s.shown]),
    )


RULES: dict[str, Rule] = {rule.__name__: rule for rule in (base, revision, recombination, refinement, distilled)}


def promising(s: Summary) -> tuple[tuple[str, int], ...]:
    """Operators and lines of changes that made the first failing visible test pass, the best first."""
    found = sorted((t for t in s.tried if t[3] > 0 and t[1] != "known"), key=lambda t: -t[3])
    return unique([(name, line) for _, name, line, _ in found])


def entry_of(s: Summary, rng: np.random.Generator) -> str:
    """Where an attempt began."""
    return next((name for name in ENTRIES if f"`{name}`" in s.assumptions), None) or one(ENTRIES, rng)


def one(names: Sequence[str], rng: np.random.Generator) -> str:
    """One of several, evenly."""
    return names[int(rng.integers(len(names)))]


def unique(items: Iterable[Item]) -> tuple[Item, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(items))
