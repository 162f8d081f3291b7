"""What a search evolves: candidates, with what their evaluation said."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evolvent.tasks.evaluation import Evaluation

PROGRAM = "program"  # the name of the text, where a candidate is a single program


@dataclass(frozen=True, slots=True)
class Candidate:
    """One proposal that was evaluated.

    uid       its place in the history, from 0; the seed program is number 0
    payload   named texts; a single program is called `program`
    parents   uids, the one that was varied first
    operator  what made it; `seed` for the one that the user gave
    notes     what else is to be known of how it was made: the model that wrote it, a plan, a lesson
    revision  how many times it was evaluated further since it was made
    """

    uid: int
    payload: Mapping[str, str]
    evaluation: Evaluation
    parents: tuple[int, ...] = ()
    operator: str = "seed"
    step: int = 0
    island: int = 0
    notes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    revision: int = 0

    @property
    def text(self) -> str:
        """The program."""
        return self.payload[PROGRAM]

    @property
    def valid(self) -> bool:
        """Whether it may be a parent."""
        return self.evaluation.value is not None

    @property
    def value(self) -> float:
        """Its value; -inf if it is not valid."""
        return float("-inf") if self.evaluation.value is None else self.evaluation.value

    @property
    def merit(self) -> tuple[bool, float, int]:
        """What candidates are ranked by: evaluated wholly or not, then the value; of equals the first is best."""
        return self.evaluation.complete, self.value, -self.uid

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for the record."""
        return dataclasses.asdict(self)

    def revised(self, evaluation: Evaluation) -> Candidate:
        """The same candidate after a further evaluation; `evaluation` is all that is known of it then."""
        return dataclasses.replace(self, evaluation=evaluation, revision=self.revision + 1)

    def news(self) -> dict[str, Any]:
        """Of `as_dict` what a further evaluation has changed."""
        return {"uid": self.uid, "revision": self.revision, "evaluation": dataclasses.asdict(self.evaluation)}


def candidate_of(data: Mapping[str, Any]) -> Candidate:
    """The candidate that `as_dict` wrote down."""
    evaluation = Evaluation(**data["evaluation"])
    return Candidate(**{**data, "evaluation": evaluation, "parents": tuple(data["parents"])})


def island_of(members: Iterable[Candidate]) -> int:
    """The island that most of some candidates were made on: whose members they are."""
    return Counter(c.island for c in members).most_common(1)[0][0]


def ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best first."""
    return sorted(candidates, key=lambda c: c.merit, reverse=True)
