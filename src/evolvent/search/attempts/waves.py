"""Waves of attempts at a bug: many at once, the best summaries picked by votes, then many that have read those.

arXiv 2604.16529: recursive tournament voting (RTV) and Parallel-Distill-Refine (PDR).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.attempts.plan import hand_in
from evolvent.search.attempts.remember import Remember
from evolvent.search.attempts.tournament import Tournament


@dataclass
class Waves:
    """Propose: for the bug of the step `waves` rounds of `n` attempts each. After each but the last one `keep` (K) are
    picked, and the next wave begins afresh with their summaries; of the last one the one that is left is handed in.

    distil  whether the next wave is told anything; without, it is made of attempts that know of no other

    Metrics: `solved`, `repeated`, `covered` as in `plan.Iterations`; `first` and `second`, the shares of wave 0 and of
    the last one that pass all visible tests; `picked`, how many of the K do; `second/given-I`, the share of the last
    wave where I of the K do.
    """

    n: int = 16
    keep: int = 4
    waves: int = 2
    distil: bool = True
    tournament: Any = Tournament
    remember: Any = Remember

    def setup(self, role: Role) -> None:
        """At least one of each."""
        if min(self.n, self.keep, self.waves) < 1:
            raise UserError("propose.n, .keep and .waves must be at least 1")

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round for each wave."""
        problem = self.remember.bug(s)
        pool, every, wave = [], [], []  # type: ignore[var-annotated]
        distil, keep = self.distil, self.keep
        for number in range(self.waves):
            operator = "distilled" if pool and distil else "base"
            told = self.remember.strategies(operator, pool, self.n, problem, s)
            yield [self.remember.request(problem, strategy) for strategy in told]
            made = [(t, operator, told[i]) for i, g in enumerate(s.fresh) for t in g.valid]
            wave = list(zip((t for t, _, _ in made), self.remember.summaries(made, s), strict=True))
            every += wave
            passing = float(np.mean([x.solved for _, x in wave])) if wave else 0.0
            if number == 0:
                s.log("first", passing)
            if pool:
                s.log("second", passing)
                s.log(f"second/given-{sum(x.solved for x in pool)}", passing)
            summaries = [x for _, x in wave]
            last = number == self.waves - 1
            places = self.tournament(summaries, 1 if last else keep, problem, s, f"wave-{number}")
            pool = [summaries[i] for i in places]
            if not last:
                s.log("picked", sum(x.solved for x in pool))
        hand_in(every, len(every) - len(wave) + places[0] if places else None, s)
