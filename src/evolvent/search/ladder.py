"""Rewards for whoever writes programs: what a failure costs, that a repeated program is one, and how values are scaled.

Values of programs say which is best; a policy that is trained needs to be told of the others, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from evolvent.core.errors import UserError
from evolvent.core.ranges import Nonnegative
from evolvent.core.records import Group, Trajectory
from evolvent.core.step import Step
from evolvent.engine.text import FixedPolicy
from evolvent.search.archive import archive_of
from evolvent.search.normal import tree_hash
from evolvent.search.novelty import forms
from evolvent.search.write import UNCHANGED
from evolvent.tasks.evaluation import invalid

LAZY = "the program is one that is there already"
LEVELS = 3

Shape = Callable[[float], float]


def raw(value: float) -> float:
    """The value itself."""
    return value


def power(
    value: float, *, low: float = 0.0, high: float = 2.635, alpha: Nonnegative = 3.0, scale: float = 5.0
) -> float:
    """scale ((clip(value, low, high) - low) / (high - low))^alpha (ThetaEvolve, arXiv 2511.23473).

    Without settings those of 26 discs in a square. Values are the higher the better here, so bounds of what is to be
    small are negative: low = -1.53, high = -1.5, alpha = 1, scale = 3 for the first autocorrelation inequality.
    `UserError` for bounds that are none.
    """
    if not low < high:
        raise UserError(f"judge.ladder.shape.low must be below .high, got {low} and {high}")
    return float(scale * ((np.clip(value, low, high) - low) / (high - low)) ** alpha)


@dataclass
class Ladder:
    """Around the evaluation: rewards by rung, the worst first (ThetaEvolve, arXiv 2511.23473, and its code).

    unusable  no edit in the answer that could be applied
    lazy      a program that is there already; it is not evaluated
    failed    running it failed: an exception, a limit, no Python
    invalid   it ran, and what it gave is wrong
    shape     of the value of a valid one, which is never worth less than a failure

    `level` says with whom a program is compared: 1 with its parent, 2 with everybody who was in the history before the
    step, 3 with the programs of the step as well; at 0 with nobody. The same are programs that differ in layout and in
    the names of local variables only, and the history has those that failed, too; the published code compares texts.

    The rewards take the place of the evaluation's own. Metrics, shares of the step's children: `unusable_rung`, `lazy`,
    `failed_rung`, `invalid_rung`; `better`, those above their parent; `forms`, different programs. `batch_best`: the
    highest value of a valid child. With `score` and the length of the answers these are what execution-grounded
    research watches for collapse (arXiv 2601.14525).
    """

    inner: Any
    level: Annotated[int, Field(ge=0, le=LEVELS)] = 2
    unusable: float = -0.4
    lazy: float = -0.3
    failed: float = -0.2
    invalid: float = -0.1
    shape: Shape = raw

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate whoever is new, and reward everybody."""
        rows = [t for g in groups for t in g.valid if "candidate" not in t.info]
        self._find_lazy([t for t in rows if t.uses and "evaluation" not in t.info], s)
        self.inner(groups, s)
        rungs: dict[str, int] = {}
        better, history, children = 0, archive_of(s.role).history, [t for t in rows if t.uses and t.error is None]
        for t in rows:
            if t.error is None:
                t.rewards.pop("value", None)
                rung, reward = self._reward(t, s)
                t.reward("rung", reward, s.role.task.name)
                if t.uses:
                    rungs[rung] = rungs.get(rung, 0) + 1
                    value = t.info["evaluation"].value
                    better += value is not None and value > history[int(t.uses[0])].value
        for rung, name in (
            ("unusable", "unusable_rung"),
            ("lazy", "lazy"),
            ("failed", "failed_rung"),
            ("invalid", "invalid_rung"),
        ):
            s.log(name, rungs.get(rung, 0) / max(1, len(children)))
        s.log("better", better / max(1, len(children)))
        programs = [t.info["program"] for t in children if "unusable" not in t.info]
        s.log("forms", len({form_of(program) for program in programs}) / max(1, len(children)))
        if values := [v for t in children if (v := t.info["evaluation"].value) is not None]:
            s.log("batch_best", max(values))

    def _find_lazy(self, rows: Sequence[Trajectory], s: Step) -> None:
        archive = archive_of(s.role)
        known = set(forms(archive)) if self.level > 1 else set()
        for t in rows:
            if "unusable" in t.info:
                if self.level and t.info["unusable"] == UNCHANGED:
                    t.info["evaluation"] = invalid(LAZY, "lazy")
                continue
            try:
                form = tree_hash(t.info["program"])
            except SyntaxError:
                continue
            if form in known or (self.level == 1 and form == tree_hash(archive.history[int(t.uses[0])].text)):
                t.info["evaluation"] = invalid(LAZY, "lazy")
            elif self.level > 2:
                known.add(form)

    def _reward(self, t: Trajectory, s: Step) -> tuple[str, float]:
        found = t.info["evaluation"]
        if found.value is not None:
            shaped = self.shape(found.value)
            worst = min(self.unusable, self.lazy, self.failed, self.invalid)
            if not t.uses and shaped <= worst and not isinstance(s.role.policy, FixedPolicy):
                raise UserError(
                    f"the seed program's value {found.value:g} is rewarded with {shaped:g}, a failure with {worst:g}; "
                    "scale values with --set judge.ladder.shape=power --set judge.ladder.shape.low=... and .high=..."
                )
            return "valid", max(shaped, self.unusable, self.lazy, self.failed, self.invalid)
        rungs = {"unusable": self.unusable, "lazy": self.lazy, "invalid": self.invalid}
        rung = found.status if found.status in rungs else "failed"
        return rung, rungs.get(rung, self.failed)


def form_of(program: str) -> str:
    """What makes two programs the same: the hash of the normal form, or, of what is no Python, the text."""
    try:
        return tree_hash(program)
    except SyntaxError:
        return program
