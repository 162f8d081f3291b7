"""A model's opinion of programs, as one more objective: how simple they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Trajectory
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.asking import Prompts, ask

MARK = re.compile(r"\d+(?:\.\d+)?")
MOST = 10.0


@dataclass
class Opinion:
    """Around a judge of programs: of every program that is valid a model says how simple it is, from 0 to 10, and a
    tenth of that is its metric `metric` (AlphaEvolve, arXiv 2506.13131, section 2.4: what is hard to write into an
    evaluator is graded by a model, and added to the scores).

    With `--model none` there is nobody to ask. Without an answer that begins with such a number the program has no such
    metric. Metrics: `opinions`, the share of those asked for that came.

    metric   what it is called; for another quality name that, and give a prompt of your own
    prompts  folder with an `opinion.md` of your own
    """

    inner: Any
    metric: str = "simplicity"
    prompts: str = ""
    evaluates: ClassVar = True  # programs, not answers

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge, then ask about what is valid and new."""
        self.inner(groups, s)
        if isinstance(s.role.policy, AbsentPolicy):
            return
        rows = [
            t for g in groups for t in g.valid if "candidate" not in t.info and t.info["evaluation"].value is not None
        ]
        if not rows:
            return
        texts = [Prompts(self.prompts).render("opinion", program=t.info["program"]) for t in rows]
        marks = [mark_of(answer) for answer in ask(texts, rows[0].problem, s, f"opinion-{s.round}")]
        for t, mark in zip(rows, marks, strict=True):
            if mark is not None:
                verdict = t.info["evaluation"]
                t.info["evaluation"] = replace(verdict, metrics={**verdict.metrics, self.metric: mark / MOST})
        s.log("opinions", float(np.mean([mark is not None for mark in marks])))

    def check(self, system: object) -> None:
        """A name, and a prompt that can be read."""
        if not self.metric:
            raise UserError("judge.opinion.metric must have a name; `simplicity` is the default")
        Prompts(self.prompts).check(["opinion"])


def mark_of(answer: Trajectory) -> float | None:
    """The number that an answer begins with, from 0 to 10; None if there is none, or nobody answered."""
    found = MARK.match(answer.completion.strip().lstrip("*")) if answer.error is None else None
    mark = float(found[0]) if found else MOST + 1
    return mark if mark <= MOST else None
