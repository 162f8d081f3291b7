"""Racing: where evaluations are noisy, whoever may still be the best is evaluated again, and nobody else is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evolvent.core.random import identifiers
from evolvent.core.ranges import Count, Nonnegative
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.loop import written
from evolvent.tasks.evaluation import Evaluation, sound

REPEATS, SQUARES = "repeats", "squares"  # metrics: evaluations so far, sum of squared deviations from their mean


@dataclass
class Racing:
    """Around a judge of programs: newcomers race each other and everybody before them, and the mean of its evaluations
    is a candidate's value.

    noise    s = sqrt(sum of squared deviations / sum of (n - 1)), over all that were evaluated more than once, the seed
             program, which is evaluated `most` times, among them
    bounds   mean -+ width * s / sqrt(n)
    again    those with n < `most` whose upper bound is not below the highest lower bound of anybody else

    That is a race with one common spread, as the noise is the evaluator's (cf. Hoeffding races, Maron and Moore 1993;
    F-race, Birattari et al. 2002). Every evaluation is charged. Where nothing varies, s is 0 and only who is the best
    is run again; `most=1` switches it off. Who is evaluated on further instances does not race. A repetition that fails
    makes its program invalid; one that is lost is left out.

    Metrics: `repeats`, the mean number of evaluations of valid newcomers, and `noise`, which is s.
    """

    inner: Any
    most: Count = 5
    width: Nonnegative = 2.0

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate all, then the racers again until the race is decided."""
        new = [t for g in groups for t in g.valid if "evaluation" not in t.info and "earlier" not in t.info]
        self.inner(groups, s)
        racers = {t.uid: t for t in new if t.error is None and t.info["evaluation"].value is not None}
        before = [c.evaluation for c in archive_of(s.role).history if c.valid]
        for number in range(1, self.most):
            again = self._racing(racers.values(), before)
            if not again:
                break
            for t, found in self._repeated(again, number, s):
                t.info["evaluation"] = made = joined(t.info["evaluation"], found)
                if made.value is None:
                    del racers[t.uid]
        for t in new:
            if t.rewards.pop("value", None) and t.uid in racers:
                t.reward("value", t.info["evaluation"].value, s.role.task.name)
        if racers:
            s.log(REPEATS, sum(repeats(t.info["evaluation"]) for t in racers.values()) / len(racers))
        s.log("noise", noise([*before, *(t.info["evaluation"] for t in racers.values())]))

    def _racing(self, racers: Iterable[Trajectory], before: Sequence[Evaluation]) -> list[Trajectory]:
        mine = {t.uid: t.info["evaluation"] for t in racers}
        half = self.width * noise([*before, *mine.values()])
        again = []
        for t in racers:
            rivals = [*before, *(e for uid, e in mine.items() if uid != t.uid)]
            lowest = max((e.value - half / math.sqrt(repeats(e)) for e in rivals), default=-math.inf)
            own = mine[t.uid]
            if repeats(own) < self.most and (not t.uses or own.value + half / math.sqrt(repeats(own)) >= lowest):
                again.append(t)
        return again

    def _repeated(self, rows: Sequence[Trajectory], number: int, s: Step) -> list[tuple[Trajectory, Evaluation]]:
        """One more evaluation of each, without those that were lost."""
        uids = identifiers(len(rows), s.role.seed, *s.path, s.round, "race", number)
        groups = []
        for uid, t in zip(uids, rows, strict=True):
            request = Request(t.problem, 1, uses=t.uses)
            copy = written(uid, request, t.info["program"], t.info["operator"])
            copy.info |= {k: t.info[k] for k in ("instances",) if k in t.info}
            groups.append(Group(t.problem, [copy]))
        self.inner(groups, s)
        found = [(t, g.trajectories[0]) for t, g in zip(rows, groups, strict=True)]
        return [(t, copy.info["evaluation"]) for t, copy in found if copy.error is None]


def repeats(evaluation: Evaluation) -> float:
    """How many evaluations a value is the mean of."""
    return evaluation.metrics.get(REPEATS, 1.0)


def noise(evaluations: Iterable[Evaluation]) -> float:
    """The pooled standard deviation of single evaluations; 0 where nothing was evaluated twice."""
    squares, free = 0.0, 0.0
    for e in evaluations:
        squares, free = squares + e.metrics.get(SQUARES, 0.0), free + repeats(e) - 1
    return math.sqrt(squares / free) if free else 0.0


def joined(so_far: Evaluation, new: Evaluation) -> Evaluation:
    """The mean with one evaluation more, and the sum of squares (Welford's update); other metrics are averaged."""
    if new.value is None or so_far.value is None:
        return replace(new, metrics=so_far.metrics)
    n = repeats(so_far)
    ahead = new.value - so_far.value
    mean = so_far.value + ahead / (n + 1)
    squares = so_far.metrics.get(SQUARES, 0.0) + ahead * (new.value - mean)
    metrics = averaged(so_far.metrics, new.metrics, n)
    return sound(replace(so_far, value=mean, metrics={**metrics, REPEATS: n + 1, SQUARES: squares}))


def averaged(old: Mapping[str, float], new: Mapping[str, float], n: float) -> dict[str, float]:
    """Every metric as the mean of n numbers and a new one, where both have it."""
    return {name: x + (new[name] - x) / (n + 1) if name in new else x for name, x in old.items()}
