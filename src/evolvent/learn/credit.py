"""Credit of policy gradients: baseline, scale and filters, each a small function of one group.

    advantage = (score - baseline) / scale

Baselines and scales are given one view, `GroupView`. A recipe picks one function for each axis; recipes that need
another write one and put it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from pydantic import PositiveFloat

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Group, Trajectory
from evolvent.core.role import find_field, reads_outcome
from evolvent.core.step import Step

Scores = Float[np.ndarray, " group"]
ROUNDING = 1e-9  # differences of equal scores that arithmetic leaves; without this, Adam would act on them


@dataclass(frozen=True)
class GroupView:
    """What a baseline or scale sees of one group.

    scores    of its valid trajectories, float64
    batch     the scores of every group of the step, this one included
    everyone  the same in one array
    rows      its valid trajectories, in the order of `scores`
    """

    scores: Scores
    batch: Sequence[Float[np.ndarray, " _"]]
    everyone: Float[np.ndarray, " batch"]
    rows: Sequence[Trajectory] = ()


# --- baseline ------------------------------------------------------------------------------------------------------


def mean(k: GroupView) -> Scores:
    """Group mean (GRPO, arXiv 2402.03300)."""
    return np.full_like(k.scores, k.scores.mean())


def leave_one_out(k: GroupView) -> Scores:
    """Mean of the others in the group (RLOO, arXiv 2402.14740, section 3.2). One that is alone is its own baseline."""
    if len(k.scores) == 1:
        return k.scores.copy()
    return (k.scores.sum() - k.scores) / (len(k.scores) - 1)


def median(k: GroupView) -> Scores:
    """Group median (MC-GRPO, arXiv 2601.22582). A group of even size has no member at its median: use an odd one."""
    return np.full_like(k.scores, np.median(k.scores))


def length_weighted(k: GroupView) -> Scores:
    """Group mean weighted by the tokens written (OPO, arXiv 2505.23585): the baseline of least gradient variance,
    if the squared norm of a row's gradient grows with its length."""
    lengths = np.array([t.sampled for t in k.rows], float)
    return np.full_like(k.scores, (lengths * k.scores).sum() / max(1.0, lengths.sum()))


def batch_mean(k: GroupView) -> Scores:
    """Mean of all scores of the step (REINFORCE with a batch baseline)."""
    return np.full_like(k.scores, k.everyone.mean())


def no_baseline(k: GroupView) -> Scores:
    """Zero."""
    return np.zeros_like(k.scores)


# --- scale ---------------------------------------------------------------------------------------------------------


def std(k: GroupView, *, eps: PositiveFloat = 1e-4) -> float:
    """Sample standard deviation of the group (GRPO, arXiv 2402.03300, section 4.1.2); 1 for a group of one.

    The paper leaves open the number of degrees of freedom and has no eps; this is n - 1, as in TRL and verl.
    """
    return float(k.scores.std(ddof=1)) + eps if len(k.scores) > 1 else 1.0


def batch_std(k: GroupView, *, eps: PositiveFloat = 1e-4) -> float:
    """Sample standard deviation over all scores of the step (Lite PPO, arXiv 2508.08221)."""
    return float(k.everyone.std(ddof=1)) + eps if len(k.everyone) > 1 else 1.0


def centred_std(k: GroupView, *, eps: PositiveFloat = 1e-8) -> float:
    """Sample standard deviation over the step of the scores less their group's mean (REINFORCE++ with a group
    baseline, arXiv 2501.03262)."""
    centred = np.concatenate([x - x.mean() for x in k.batch])
    return float(centred.std(ddof=1)) + eps if len(centred) > 1 else 1.0


def mad(k: GroupView, *, eps: PositiveFloat = 1e-3) -> float:
    """Median absolute deviation from the group median (MC-GRPO, arXiv 2601.22582)."""
    return float(np.median(np.abs(k.scores - np.median(k.scores)))) + eps


def signal_share(k: GroupView) -> float:
    """Share of the step's rows that are in groups with unequal scores (GPG, arXiv 2504.02546): dividing by it makes
    up for the rows that add nothing to the gradient. 1 where no group has a signal."""
    live = sum(len(x) for x in k.batch if np.ptp(x) > ROUNDING)
    return live / len(k.everyone) if live else 1.0


def no_scale(k: GroupView) -> float:
    """One."""
    return 1.0


# --- filters -------------------------------------------------------------------------------------------------------


def every_row(advantages: Scores) -> Bool[np.ndarray, " group"]:
    """All rows take part."""
    return np.ones(len(advantages), bool)


def every_group(groups: list[Group]) -> list[Group]:
    """All groups take part."""
    return groups


@reads_outcome
def with_signal(groups: list[Group]) -> list[Group]:
    """Groups whose outcomes are not all equal (DAPO, arXiv 2503.14476, eq. 11: 0 < correct < G).

    It looks at the verifier's outcome, not at the shaped score: shaping makes groups that all fail look different.
    """
    return [g for g in groups if len({t.outcome for t in g.valid}) > 1]


Baseline = Callable[[GroupView], Scores]
Scale = Callable[[GroupView], float]
RowFilter = Callable[[Scores], np.ndarray]
GroupFilter = Callable[[list[Group]], list[Group]]
OF_GROUP = (mean, leave_one_out, median, length_weighted)


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

    def advantages(self, groups: Sequence[Group]) -> list[np.ndarray]:
        """Advantages of the valid trajectories of each group, float64 [group]."""
        batch = [np.array([t.score for t in g.valid]) for g in groups]
        everyone = np.concatenate(batch)
        return [self._of(GroupView(x, batch, everyone, g.valid)) for x, g in zip(batch, groups, strict=True)]

    def _of(self, k: GroupView) -> np.ndarray:
        difference = k.scores - self.baseline(k)
        difference[np.abs(difference) <= ROUNDING * np.abs(k.scores).max()] = 0.0
        return difference / self.scale(k)

    def check(self, system: object) -> None:
        """A group of one is its own mean, and the median of an even group is nobody's score."""
        for role in getattr(system, "roles", {}).values():
            n = find_field(role.slots.get("propose"), "n")
            if not isinstance(n, int) or all(part is not self for part in role.parts.values()):
                continue
            if n == 1 and self.baseline in OF_GROUP:
                raise UserError(
                    "propose.n is 1, and a group of one has no signal relative to itself; choose --set propose.n=8, "
                    "or --set credit.baseline=batch_mean"
                )
            if n % 2 == 0 and self.baseline is median:
                raise UserError(
                    f"the median baseline needs an odd group, and groups have {n} answers; set propose.n (see "
                    "`evolvent show RECIPE` for what it is, and what adds to it) one lower or higher"
                )


def to_batch(groups: Sequence[Group], advantages: Sequence[np.ndarray], rows: RowFilter = every_row) -> Batch:
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
    return Batch(kept, np.array(weight, np.float32), columns={"group": np.array(number, np.int64)})
