"""Recursive tournament voting: small groups of summaries, several votes on each, the majority's winner goes on.

arXiv 2604.16529.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Problem
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.asking import Prompts, ask_once
from evolvent.search.attempts.summary import Summary

PROMPT = "attempts/vote"
NUMBER = re.compile(r"best\D{0,20}(\d+)", re.IGNORECASE)


@dataclass
class Tournament:
    """Picks the best of several attempts.

    group     how many are compared at once (G)
    votes     on each group (V); of equals in votes one is drawn
    accuracy  without a model: how often a vote goes to one that passes the most visible tests of a group of two
    prompts   folder with `attempts/vote.md` of your own

    Without a model the judge is simulated: it looks at visible tests, through noise, p(i) ~ accuracy for those that
    pass the most of the group and ~ 1 - accuracy for the others. Votes are independent then, as a model's are not.
    What is found of picking with it says nothing about language models. Metric `judged_right`: the share of groups of
    attempts that differ in visible tests whose winner passes the most.
    """

    group: int = 2
    votes: int = 8
    accuracy: float = 0.65
    prompts: str = ""
    simulated: ClassVar = True  # without a model, as claims are measured

    def setup(self, role: Role) -> None:
        """Settings in range, a prompt that can be read."""
        if self.group < 2 or self.votes < 1:
            raise UserError(f".group must be at least 2 and .votes at least 1, got {self.group} and {self.votes}")
        if not 0 < self.accuracy <= 1:
            raise UserError(f"the judge's accuracy is above 0 and at most 1, got {self.accuracy}")
        Prompts(self.prompts).check([PROMPT])

    def __call__(self, pool: Sequence[Summary], keep: int, problem: Problem, s: Step, label: str) -> list[int]:
        """The places of the `keep` that are left, in their order; all, if there are no more."""
        rng = s.rng("tournament", label)
        left = [int(i) for i in rng.permutation(len(pool))]
        right: list[bool] = []
        number = 0
        while len(left) > max(1, keep):
            groups, rest = self.draw(left, max(1, keep))
            ballots = self._ballots(pool, groups, problem, s, f"{label}-{number}", rng)
            left = rest
            for group, ballot in zip(groups, ballots, strict=True):
                winner = majority(group, ballot, rng)
                most = max(pool[i].passed for i in group)
                if any(pool[i].passed < most for i in group):
                    right.append(pool[winner].passed == most)
                left = [*left, winner]
            number += 1
        if right:
            s.log(f"judged_right/{label}", float(np.mean(right)))
        return sorted(left)

    def draw(self, left: Sequence[int], keep: int) -> tuple[list[list[int]], list[int]]:
        """Groups of a round, and who is in none: not more go out than may."""
        groups, at, surplus = list[list[int]](), 0, len(left) - keep
        while surplus > 0 and len(left) - at > 1:
            size = min(self.group, surplus + 1, len(left) - at)
            groups.append(list(left[at : at + size]))
            at, surplus = at + size, surplus - size + 1
        return groups, list(left[at:])

    def _ballots(
        self,
        pool: Sequence[Summary],
        groups: Sequence[Sequence[int]],
        problem: Problem,
        s: Step,
        label: str,
        rng: np.random.Generator,
    ) -> list[list[int]]:
        """Of each group the places that were voted for; votes that cannot be read are none."""
        if isinstance(s.role.policy, AbsentPolicy):
            return [self.noisy(pool, group, rng) for group in groups]
        texts = [Prompts(self.prompts).render(PROMPT, shown=[pool[i] for i in group]) for group in groups]
        answers = ask_once([text for text in texts for _ in range(self.votes)], problem, s, f"vote-{label}")
        ballots = []
        for at, group in enumerate(groups):
            mine = answers[at * self.votes : (at + 1) * self.votes]
            numbers = [read_vote(t.completion, len(group)) for t in mine if t.error is None]
            ballots.append([group[n - 1] for n in numbers if n])
        return ballots

    def noisy(self, pool: Sequence[Summary], group: Sequence[int], rng: np.random.Generator) -> list[int]:
        """Votes of a judge that is wrong now and then."""
        most = max(pool[i].passed for i in group)
        p = np.array([self.accuracy if pool[i].passed == most else 1 - self.accuracy for i in group])
        return [group[int(i)] for i in rng.choice(len(group), self.votes, p=p / p.sum())]


def majority(group: Sequence[int], ballot: Sequence[int], rng: np.random.Generator) -> int:
    """Who has the most votes; of equals, or without any vote, one is drawn."""
    counts = Counter(ballot)
    first = [i for i in group if counts[i] == max(counts.values(), default=0)]
    return first[int(rng.integers(len(first)))]


def read_vote(text: str, most: int) -> int:
    """The number after the last `Best:`; 0 if there is none in range."""
    numbers = [int(n) for n in NUMBER.findall(text)]
    return numbers[-1] if numbers and 1 <= numbers[-1] <= most else 0
