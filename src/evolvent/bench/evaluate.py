"""Measure a policy on problems: greedy, sampled, pass@k, and what voting or choosing with the verifier would give.

Together with the rest of this package the only code that reads the test split.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evolvent.bench.statistics import Interval, average, t_interval, wilson
from evolvent.core.ledger import Ledger
from evolvent.core.records import Group, Problem, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.base import Engine
from evolvent.judge.elect import elected
from evolvent.judge.verify import verify
from evolvent.rollout.sample import Sample
from evolvent.tasks.base import Task

if TYPE_CHECKING:
    from evolvent.models.policy import Policy

TEMPERATURES = (0.3, 0.5, 0.7, 1.0)
CHUNK = 2048  # trajectories rolled out at once


@dataclass
class Evaluation:
    """Accuracies of one policy; intervals are 97.5 % over problems."""

    problems: int
    greedy: Interval
    sampled: Interval
    temperature: float
    k: int
    pass_at_k: Interval
    majority_at_k: Interval
    length: float
    errors: int
    by_category: dict[str, tuple[float, float]] = field(default_factory=dict)  # greedy, sampled
    distinct_answers: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for files."""
        return asdict(self)


@dataclass
class Subject:
    """What is evaluated: a policy on its engine, for a task. Spending goes to the account `evidence`."""

    policy: Policy
    engine: Engine
    task: Task
    ledger: Ledger
    seed: int = 0
    adapter: str | None = None

    def roll(self, problems: Sequence[Problem], n: int, temperature: float, label: str) -> list[Group]:
        """`n` judged trajectories of each problem; the draws depend on the seed and the label only."""
        role = Role("evaluate", self.task, self.policy, self.engine, self.ledger, self.seed, adapter=self.adapter)
        sample = Sample(temperature=temperature)
        groups: list[Group] = []
        with self.ledger.account("evidence"):
            size = max(1, CHUNK // n)
            for start in range(0, len(problems), size):
                s = Step(start, role, [role.policy_actor()], label=f"{label}/{temperature}")
                groups += sample([Request(p, n) for p in problems[start : start + size]], s)
            rows = [t for g in groups for t in g.trajectories]
            for t, score in zip(rows, verify(self.task, rows, self.ledger), strict=True):
                if isinstance(score, Exception):
                    t.error = t.error or f"verifier: {score}"
                else:
                    t.reward("outcome", score.outcome)
                    t.info["answer"] = score.answer
        return groups


def evaluate(
    subject: Subject, problems: Sequence[Problem], k: int = 16, temperature: float = 1.0, label: str = "evaluate"
) -> Evaluation:
    """Greedy once and sampled k times on every problem. Trajectories with an error are left out and counted."""
    greedy = subject.roll(problems, 1, 0.0, label)
    return summarise(greedy, subject.roll(problems, k, temperature, label), k, temperature)


def summarise(greedy: Sequence[Group], sampled: Sequence[Group], k: int, temperature: float) -> Evaluation:
    """The figures of judged groups: one greedy trajectory and k sampled ones of each problem.

    nan where no trajectory is left to take a figure of.
    """
    outcome = [np.array([t.outcome for t in g.valid]) for g in sampled]
    usable = [float(x.mean()) for x in outcome if len(x)]
    solved = [float((x >= 1).any()) for x in outcome if len(x) == k]
    first = [g.valid[0].outcome for g in greedy if g.valid]
    votes = [vote(g) for g in sampled if g.valid]
    rows = [t for g in [*greedy, *sampled] for t in g.trajectories]
    categories: dict[str, tuple[list[float], list[float]]] = {}
    for a, b in zip(greedy, sampled, strict=True):
        if a.valid and b.valid:
            lists = categories.setdefault(a.problem.category, ([], []))
            lists[0].append(a.valid[0].outcome)
            lists[1].append(float(np.mean([t.outcome for t in b.valid])))
    return Evaluation(
        problems=len(sampled),
        greedy=wilson(sum(first), len(first)),
        sampled=t_interval(usable) if usable else Interval(math.nan, 0.0, 1.0),
        temperature=temperature,
        k=k,
        pass_at_k=wilson(sum(solved), len(solved)),
        majority_at_k=wilson(sum(votes), len(votes)),
        length=float(np.mean([t.sampled for t in rows])),
        errors=sum(t.error is not None for t in rows),
        by_category={c: (float(np.mean(x)), float(np.mean(y))) for c, (x, y) in categories.items()},
        distinct_answers=average([len({t.info.get("answer") for t in g.valid}) for g in sampled if g.valid]),
    )


def vote(group: Group) -> float:
    """Outcome of the most frequent extracted answer; ties go to the one that came first."""
    winner = elected([t.info.get("answer") for t in group.valid])
    return next((t.outcome for t in group.valid if winner is not None and t.info.get("answer") == winner), 0.0)


def best_temperature(subject: Subject, problems: Sequence[Problem], samples: int = 4) -> float:
    """The temperature with the highest sampled accuracy on (gate) problems; 0 competes as greedy.

    One at which every answer failed does not compete; 0 where that is so of all.
    """
    scores: dict[float, float] = {}
    for temperature in (0.0, *TEMPERATURES):
        groups = subject.roll(problems, 1 if temperature == 0 else samples, temperature, "temperature")
        if outcomes := [t.outcome for g in groups for t in g.valid]:
            scores[temperature] = average(outcomes)
    return max(scores, key=lambda t: (scores[t], -t), default=0.0)
