"""Variation by rules, without a model: operators on syntax trees, by fixed shares or by what they have brought."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.random import identifiers
from evolvent.core.ranges import Count
from evolvent.core.records import Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import Archive, archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.choice import Choice, outcomes
from evolvent.search.loop import begin_groups, programs_of, written
from evolvent.search.normal import tree_hash
from evolvent.search.novelty import Novelty, anything, forms
from evolvent.search.variation.syntax import OPERATORS, mutate

Shares = Mapping[str, float] | None
Vary = Callable[[Sequence[Candidate], Any, np.random.Generator, Shares], tuple[str, str]]


def syntax(parents: Sequence[Candidate], task: Any, rng: np.random.Generator, shares: Shares) -> tuple[str, str]:
    """Program and operator: a change of the first one's syntax tree, perhaps with pieces of the others."""
    made = mutate(parents[0].text, rng, [p.text for p in parents[1:]], task.components, shares)
    return made.source, made.operator


@dataclass
class Mutate:
    """Roll out: vary the parent by rules, without a model.

    A program that was seen before, whatever its layout and its names, or that `novel` rejects, is varied anew, up to
    `tries` times; then it is evaluated all the same. `choice` says which operator is next (`search.choice`); without
    one they have fixed shares. Metrics: `repeats`, the share of the step's programs that are not new; `rejected`, how
    many variations `novel` turned down.
    """

    vary: Vary = syntax
    tries: Count = 5
    novel: Novelty = anything
    choice: Choice | None = None
    told: int = field(default=0, init=False)  # of the history: what the choice has learned from

    def setup(self, role: Role) -> None:
        """The arms of the choice are the operators. One that has nothing to do is a try, and brings nothing."""
        if self.choice is not None:
            self.choice.begin(list(OPERATORS))

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group of one for each request: the seed program without a parent, what is resumed as it is."""
        archive, task, repeats, rejected = archive_of(s.role), programs_of(s.role), 0, 0
        groups, unwritten = begin_groups(requests, s)
        self._learn(archive)
        before: set[str] = forms(archive)
        now: set[str] = set()  # of this step
        for place, request, group in unwritten:
            parents = archive.named(request)
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                rng = s.rng("vary", place, i)
                for _ in range(self.tries):
                    shares = None if self.choice is None else {self.choice.choose(rng): 1.0}
                    program, operator = self.vary(parents, task, rng, shares)
                    form = tree_hash(program)
                    if form in before or form in now:
                        continue
                    if self.novel(program, archive):
                        break
                    rejected += 1
                else:
                    repeats += 1
                now.add(form)
                group.trajectories.append(written(uid, request, program, operator))
        s.log("repeats", repeats / max(1, sum(r.n for r in requests)))
        if self.novel is not anything:
            s.log("rejected", rejected)
        return groups

    def _learn(self, archive: Archive) -> None:
        if self.choice is not None:
            for c, reward in outcomes(archive.history, self.told):
                if c.operator in self.choice.arms:
                    self.choice.update(c.operator, reward)
        self.told = len(archive.history)

    def state_dict(self) -> dict[str, Any]:
        """How far the choice has learned; what it has learned is a state of its own."""
        return {"told": self.told}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.told = state["told"]
