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


def above(
    evaluation: Evaluation, stage: int, archive: Archive, *, thresholds: tuple[float, ...] = (0.5, 0.75, 0.9)
) -> bool:
    """Whose value has reached the threshold of the stage; the last threshold holds for all that follow (OpenEvolve)."""
    return evaluation.value is not None and evaluation.value >= thresholds[min(stage, len(thresholds)) - 1]
