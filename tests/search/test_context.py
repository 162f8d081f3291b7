"""What the operator sees beside the parent."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from evolvent.search.candidate import Candidate
from evolvent.search.context import alone, best_and_random, inspirations
from evolvent.search.parents import Pool
from evolvent.tasks.evaluation import Evaluation

VALUES = (0.0, 5.0, 3.0, 4.0, 1.0, 2.0, 6.0, -1.0)


def pool() -> Pool:
    members = [Candidate(i, {"program": str(i)}, Evaluation(v)) for i, v in enumerate(VALUES)]
    return Pool(members, np.zeros(len(members)), members[0], members[-1], members)


def test_alone() -> None:
    assert alone(pool().members[2], pool(), np.random.default_rng(0)) == []


def test_best_and_random() -> None:
    found = [best_and_random(pool().members[6], pool(), np.random.default_rng(i), best=2, others=1) for i in range(200)]
    assert all([c.value for c in row[:2]] == [5.0, 4.0] for row in found)
    drawn = Counter(row[2].value for row in found)
    assert set(drawn) == {0.0, 3.0, 1.0, 2.0, -1.0}
    assert min(drawn.values()) > 20


@pytest.mark.parametrize(
    ("archive", "elites", "top", "fixed"), [(4, 0.3, 2, {6.0}), (4, 0.5, 1, {6.0, 5.0}), (1, 0.3, 1, {6.0, 5.0})]
)
def test_inspirations_are_the_best_random_ones_and_the_best_of_the_rest(
    archive: int, elites: float, top: int, fixed: set[float]
) -> None:
    for i in range(50):
        found = inspirations(
            pool().members[0], pool(), np.random.default_rng(i), archive=archive, elites=elites, top=top
        )
        values = [c.value for c in found]
        assert values == sorted(values)
        assert 0.0 not in values
        assert len(set(values)) == len(values) == archive + top
        assert fixed <= set(values)
        # of those that the random draw has left over the best are there, too
        left = [v for v in sorted(VALUES, reverse=True) if v not in values and v != 0.0]
        assert not left or sum(v > left[0] for v in values) >= len(fixed)


def test_inspirations_of_a_small_archive() -> None:
    few = replace(pool(), members=pool().members[:2])
    assert [c.value for c in inspirations(few.members[0], few, np.random.default_rng(0))] == [5.0]
