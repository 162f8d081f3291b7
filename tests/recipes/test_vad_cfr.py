"""VAD-CFR: parents are drawn by one of the games at a time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from evolvent.recipes.search.vad_cfr import one_objective
from evolvent.search.candidate import PROGRAM, Candidate
from evolvent.search.parents import Pool
from evolvent.tasks.evaluation import Evaluation, over_instances


def pool_of(*evaluations: Evaluation) -> Pool:
    members = [Candidate(i, {PROGRAM: f"x = {i}"}, e, (), "seed", 0) for i, e in enumerate(evaluations)]
    return Pool(members, np.zeros(len(members)), members[0], members[-1], members)


def shares(pool: Pool, draws: int = 4000, **settings: float) -> list[float]:
    rng = np.random.default_rng(0)
    found = Counter(one_objective(pool, rng, **settings).uid for _ in range(draws))
    return [found[c.uid] / draws for c in pool.members]


def test_each_game_and_the_mean_are_drawn_alike() -> None:
    pool = pool_of(
        over_instances({"a": 3.0, "b": 0.0}),  # best in a; mean 1.5
        over_instances({"a": 1.0, "b": 3.0}),  # best in b and by the mean: 2
        over_instances({"a": 0.0, "b": 1.0}),
    )
    w = np.array([1, 1 / 2, 1 / 3]) / (11 / 6)
    ranks = [(0, 1, 2), (2, 0, 1), (1, 0, 2)]  # by a, by b, by the mean: the rank of each member
    expected = [sum(w[rank[i]] for rank in ranks) / 3 for i in range(3)]
    assert shares(pool) == pytest.approx(expected, abs=0.03)


def test_without_instances_it_is_the_rank_of_the_value() -> None:
    pool = pool_of(Evaluation(1.0), Evaluation(5.0))
    assert shares(pool) == pytest.approx([1 / 3, 2 / 3], abs=0.03)
    assert shares(pool, alpha=0.0) == pytest.approx([1 / 2, 1 / 2], abs=0.03)
