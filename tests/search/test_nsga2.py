"""NSGA-II: fronts and crowding as DEAP has them, contests and the rule of admission by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.search.candidate import Candidate
from evolvent.search.nsga2 import crowding, distances, fronts, nsga2, tournaments
from evolvent.search.objectives import objectives
from evolvent.search.parents import Pool
from evolvent.search.parents import nsga2 as parent
from evolvent.tasks.evaluation import Evaluation, invalid

REFERENCE = json.loads((Path(__file__).parents[1] / "fixtures" / "pareto.json").read_text())
POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=14)


@pytest.mark.parametrize("case", REFERENCE["sorted"])
def test_fronts_and_distances_are_those_of_deap(case: dict[str, list[float]]) -> None:
    points = np.array(case["points"], float)
    assert fronts(points).tolist() == case["front"]
    np.testing.assert_allclose(distances(points), [float(x) for x in case["crowding"]])


@given(POINTS)
def test_a_front_is_what_nobody_left_dominates(rows: list[tuple[int, int]]) -> None:
    left, level, wanted = set(range(len(rows))), 0, {}

    def beats(a: tuple[int, int], b: tuple[int, int]) -> bool:
        return a != b and a[0] >= b[0] and a[1] >= b[1]

    while left:
        now = {i for i in left if not any(beats(rows[j], rows[i]) for j in left)}
        wanted |= dict.fromkeys(now, level)
        left, level = left - now, level + 1
    assert fronts(np.array(rows, float)).tolist() == [wanted[i] for i in range(len(rows))]


def test_crowding_by_hand() -> None:
    points = np.array([[0.0, 10.0], [1.0, 6.0], [3.0, 5.0], [4.0, 0.0]])
    # 1: (3 - 0) / 4 + (10 - 5) / 10; 2: (4 - 1) / 4 + (6 - 0) / 10
    np.testing.assert_allclose(crowding(points), [np.inf, 1.25, 1.35, np.inf])
    assert crowding(np.zeros((1, 2))).tolist() == [np.inf]


def test_contests() -> None:
    rng = np.random.default_rng(0)
    points = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert set(tournaments(points, 40, rng)) == {1}  # the first is dominated
    line = np.array([[0.0, 4.0], [1.0, 3.0], [1.1, 2.9], [4.0, 0.0]])
    won = Counter(tournaments(line, 400, rng))
    # pairs are all alike likely: an end wins against both in the middle, and half of the time against the other end;
    # the third one, with gaps 3 + 3, wins against the second, with 1.1 + 1.1
    assert won[1] == 0
    assert won[2] / 400 == pytest.approx(1 / 6, abs=0.06)
    assert won[0] / 400 == pytest.approx(5 / 12, abs=0.07)


def test_everybody_takes_part_before_anybody_does_again() -> None:
    points = np.array([[float(i), float(-i)] for i in range(8)])
    for seed in range(20):
        winners = tournaments(points, 8, np.random.default_rng(seed))
        assert max(Counter(winners).values()) <= 2  # two lists, in each of which everybody is once


def candidates(rows: list[tuple[float | None, float]]) -> list[Candidate]:
    return [
        Candidate(i, {"program": "x" * 9}, invalid("no") if v is None else Evaluation(v, {"parameters": size}))
        for i, (v, size) in enumerate(rows)
    ]


def test_the_parent_rule_prefers_who_dominates() -> None:
    made = candidates([(0.5, 100), (0.9, 50)])
    pool = Pool(made, np.zeros(2), made[0], made[-1], made)
    assert {parent(pool, np.random.default_rng(i)).uid for i in range(20)} == {1}
    assert {parent(pool, np.random.default_rng(i), metrics=("-value",)).uid for i in range(20)} == {0}
    alone = Pool(made[:1], np.zeros(1), made[0], made[0], made[:1])
    assert parent(alone, np.random.default_rng(0)).uid == 0


def test_admission_by_front_then_by_crowding() -> None:
    # (value, parameters): 0, 2, 3, 4 are not dominated; 1 is, by 2; of the front 3 is the most crowded
    rows = [(0.1, 10.0), (0.4, 60.0), (0.5, 50.0), (0.52, 52.0), (0.9, 90.0), (None, 1.0)]
    members: list[Candidate] = []
    for c in candidates(rows):  # type: ignore[arg-type]
        members = nsga2(c, members, size=4)
    assert [c.uid for c in members] == [0, 2, 3, 4]
    for c in candidates(rows)[:5]:  # type: ignore[arg-type]
        members = nsga2(c, members[:0] if c.uid == 0 else members, size=3)
    assert [c.uid for c in members] == [0, 2, 4]


def test_objectives() -> None:
    made = candidates([(0.5, 100.0), (0.75, 300.0), (1.0, 200.0)])
    np.testing.assert_allclose(objectives(made, ("value", "-size")), [[0, 1], [0.5, 0], [1, 0.5]])
    without = [Candidate(0, {"program": "ab"}, Evaluation(1.0)), Candidate(1, {"program": "abcd"}, Evaluation(1.0))]
    np.testing.assert_allclose(objectives(without, ("value", "-size")), [[0, 1], [0, 0]])
    with pytest.raises(UserError, match="speed"):
        objectives(made, ("value", "speed"))
    assert objectives([], ("value",)).shape == (0, 1)


def test_objectives_of_huge_values() -> None:
    made = [Candidate(i, {"program": "x" * i}, Evaluation(v)) for i, v in enumerate([-1.7e308, 0.0, 1.7e308])]
    np.testing.assert_allclose(objectives(made, ("value", "size")), [[0, 0], [0.5, 0.5], [1, 1]])
