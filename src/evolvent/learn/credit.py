"""Credit of policy gradients: baseline, scale and filters, each a small function of a group's scores.

    advantage = (score - baseline) / scale

Axes see one group at a time, float64 [group], and all scores of the step, float64 [batch]. A recipe picks one
function for each axis; recipes that need another write one and put it there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Group, Trajectory
from evolvent.core.step import Step

Scores = Float[np.ndarray, " group"]
Everyone = Float[np.ndarray, " batch"]


def mean(scores: Scores, everyone: Everyone) -> Scores:
    """Group mean (GRPO, arXiv 2402.03300)."""
    return np.full_like(scores, scores.mean())


def leave_one_out(scores: Scores, everyone: Everyone) -> Scores:
    """Mean of the others in the group (RLOO, arXiv 2402.14740, eq. 9); 0 for a group of one."""
    if len(scores) == 1:
        return np.zeros_like(scores)
    return (scores.sum() - scores) / (len(scores) - 1)


def median(scores: Scores, everyone: Everyone) -> Scores:
    """Group median (MC-GRPO, arXiv 2601.22582). A group of even size has no member at its median: use an odd one."""
    return np.full_like(scores, np.median(scores))


def batch_mean(scores: Scores, everyone: Everyone) -> Scores:
    """Mean of all scores of the step (REINFORCE with a batch baseline)."""
    return np.full_like(scores, everyone.mean())


def no_baseline(scores: Scores, everyone: Everyone) -> Scores:
    """Zero."""
    return np.zeros_like(scores)


def std(scores: Scores, everyone: Everyone, *, eps: float = 1e-4) -> float:
    """Sample standard deviation of the group (GRPO, eq. 3 with ddof 1 as in TRL and verl); 1 for a group of one."""
    return float(scores.std(ddof=1)) + eps if len(scores) > 1 else 1.0


def batch_std(scores: Scores, everyone: Everyone, *, eps: float = 1e-4) -> float:
    """Sample standard deviation over all scores of the step."""
    return float(everyone.std(ddof=1)) + eps if len(everyone) > 1 else 1.0


def mad(scores: Scores, everyone: Everyone, *, eps: float = 1e-3) -> float:
    """Median absolute deviation from the group median (MC-GRPO, arXiv 2601.22582)."""
    return float(np.median(np.abs(scores - np.median(scores)))) + eps


def no_scale(scores: Scores, everyone: Everyone) -> float:
    """One."""
    return 1.0


def every_row(advantages: Scores) -> np.ndarray:
    """All rows take part: bool [group]."""
    return np.ones(len(advantages), bool)


def every_group(groups: list[Group]) -> list[Group]:
    """All groups take part."""
    return groups


def with_signal(groups: list[Group]) -> list[Group]:
    """Groups whose outcomes are not all equal (DAPO, arXiv 2503.14476, eq. 11: 0 < correct < G).

    It looks at the verifier's outcome, not at the shaped score: shaping makes groups that all fail look different.
    """
    return [g for g in groups if len({t.outcome for t in g.valid}) > 1]


Baseline = Callable[[Scores, Everyone], Scores]
Scale = Callable[[Scores, Everyone], float]
RowFilter = Callable[[Scores], np.ndarray]
GroupFilter = Callable[[list[Group]], list[Group]]


@dataclass
class GroupCredit:
    """Advantages of every valid trajectory relative to its group, as one batch."""

    baseline: Baseline = mean
    scale: Scale = std
    rows: RowFilter = every_row
    groups: GroupFilter = every_group

    def __call__(self, s: Step) -> list[Batch]:
        """One batch `fresh` of all rows kept, with the number of their group in column `group`."""
        groups = [g for g in self.groups(s.groups) if g.valid]
        if not groups:
            return []
        return [to_batch(groups, self.advantages(groups), self.rows)]

    def advantages(self, groups: list[Group]) -> list[np.ndarray]:
        """Advantages of the valid trajectories of each group, float64 [group]."""
        scores = [np.array([t.score for t in g.valid]) for g in groups]
        everyone = np.concatenate(scores)
        return [(x - self.baseline(x, everyone)) / self.scale(x, everyone) for x in scores]

    def check(self, system: object) -> None:
        """A median of an even group is nobody's score."""
        if self.baseline is not median:
            return
        for role in getattr(system, "roles", {}).values():
            n = getattr(role.slots.get("propose"), "n", None)
            if role.slots.get("credit") is self and isinstance(n, int) and n % 2 == 0:
                raise UserError(
                    f"the median baseline needs an odd group, but propose.n is {n}; choose --set propose.n={n - 1}"
                )


def to_batch(groups: list[Group], advantages: list[np.ndarray], rows: RowFilter = every_row) -> Batch:
    """Trajectories and their advantages as a batch."""
    kept: list[Trajectory] = []
    weight: list[float] = []
    number: list[int] = []
    for place, (group, values) in enumerate(zip(groups, advantages, strict=True)):
        keep = rows(values)
        for trajectory, value, use in zip(group.valid, values, keep, strict=True):
            if use:
                kept.append(trajectory)
                weight.append(float(value))
                number.append(place)
    return Batch(kept, np.array(weight, np.float32), columns={"group": np.array(number)})
