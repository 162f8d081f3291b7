"""A bandit over the task's categories: more problems from where the advantages are large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from evolvent.core.errors import UserError
from evolvent.core.records import Problem, Trajectory
from evolvent.core.step import Step


@dataclass
class Bandit:
    """Boltzmann choice among categories by the size of their advantages (SEC, arXiv 2505.14970).

        r(c) = mean |A| over the step's rows of category c
        Q(c) <- alpha r(c) + (1 - alpha) Q(c)
        p(c) ~ exp(Q(c) / tau)

    Q starts at 0 and moves only for categories of which the step had problems. In a mixture of tasks an arm is a task
    and a category.
    """

    alpha: float = 0.5
    tau: float = 1.0
    values: dict[str, float] = field(default_factory=dict, init=False)

    def check(self, system: object) -> None:
        """Rates in range."""
        if not 0 < self.alpha <= 1 or not self.tau > 0:
            raise UserError(
                f"propose.choose.alpha must be in (0, 1] and .tau above 0, got {self.alpha} and {self.tau}; "
                "the paper uses 0.5 and 0.2 to 1"
            )

    def __call__(self, count: int, s: Step) -> list[str]:
        """The category of each of `count` problems, drawn independently."""
        categories = s.role.task.categories
        drawn = s.rng("bandit").choice(len(categories), count, p=self.chances(categories))
        return [categories[i] for i in drawn]

    def chances(self, categories: Sequence[str]) -> Float[np.ndarray, " categories"]:
        """Probability of each category."""
        preference = np.array([self.values.get(c, 0.0) for c in categories]) / self.tau
        weight = np.exp(preference - preference.max())
        return weight / weight.sum()

    def observe(self, s: Step) -> None:
        """Learn from the advantages that the step gave; `bandit/CATEGORY` is the probability of the next draws."""
        categories = s.role.task.categories
        for category, sizes in advantage_sizes(s).items():
            before = self.values.get(category, 0.0)
            self.values[category] = self.alpha * float(np.mean(sizes)) + (1 - self.alpha) * before
        for category, chance in zip(categories, self.chances(categories), strict=True):
            s.log(f"bandit/{category}", chance)

    def state_dict(self) -> dict[str, Any]:
        """The values of the arms."""
        return {"values": dict(self.values)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.values = dict(state["values"])


def advantage_sizes(s: Step) -> dict[str, list[float]]:
    """|A| of the step's fresh rows by category. A group that credit left out as a whole counts with zeros.

    Rows left out of a group that took part (a pivot, votes that are not trained on) do not count.
    """
    given = {
        row.uid: size(row, weight)
        for batch in s.batches
        if batch.name == "fresh"
        for row, weight in zip(batch.rows, batch.weight, strict=True)
    }
    found: dict[str, list[float]] = {}
    for group in s.groups:
        rows = group.valid
        sizes = [given[t.uid] for t in rows if t.uid in given] or [0.0] * len(rows)
        if sizes:
            found.setdefault(arm(group.problem, s.role.task.categories), []).extend(sizes)
    return found


def size(row: Trajectory, weight: Any) -> float:
    """|A| of a row, or its mean over the tokens that the policy wrote."""
    return float(np.abs(weight)[row.mask].mean()) if np.ndim(weight) else abs(float(weight))


def arm(problem: Problem, categories: Sequence[str]) -> str:
    """The category that a problem was drawn from, as the task lists it; in a mixture that is `task/category`."""
    name = f"{problem.task}/{problem.category}"
    return name if name in categories else problem.category
