"""Rules of staged evaluation: whether a candidate goes on to the next stage.

rule(evaluation so far, stages that it has been through, archive) -> bool
"""

from __future__ import annotations

from collections.abc import Callable

from evolvent.search.archive import Archive
from evolvent.tasks.evaluation import Evaluation

Promote = Callable[[Evaluation, int, Archive], bool]


def everybody(evaluation: Evaluation, stage: int, archive: Archive) -> bool:
    """No stages: everything is evaluated at once."""
    return True


def second_best(evaluation: Evaluation, stage: int, archive: Archive, *, least: float = 0.4) -> bool:
    """To the second stage from `least` on; further, who is above it and above the second best of those that have been
    evaluated wholly, or the best if there is no other (DGM, arXiv 2505.22954).

    The published code counts the first agent twice.
    """
    if evaluation.value is None:
        return False
    if stage == 1:
        return evaluation.value >= least
    whole = sorted((c.value for c in archive.history if c.valid and c.evaluation.complete), reverse=True)
    return evaluation.value > max(least, *whole[:2][-1:])


def above(
    evaluation: Evaluation, stage: int, archive: Archive, *, thresholds: tuple[float, ...] = (0.5, 0.75, 0.9)
) -> bool:
    """Whose value has reached the threshold of the stage; the last threshold holds for all that follow (OpenEvolve)."""
    return evaluation.value is not None and evaluation.value >= thresholds[min(stage, len(thresholds)) - 1]
