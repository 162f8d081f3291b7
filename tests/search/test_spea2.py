"""SPEA2: fitness and density by hand, truncation as DEAP has it, and the rule that keeps elites of a generation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evolvent.search.candidate import Candidate
from evolvent.search.spea2 import densities, elites, raw_fitness, select, spea2
from evolvent.tasks.evaluation import Evaluation, invalid

REFERENCE = json.loads((Path(__file__).parents[1] / "fixtures" / "pareto.json").read_text())
POINTS = np.array([[1.0, 3.0], [3.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 2.0]])


def test_raw_fitness_by_hand() -> None:
    # 0 dominates 2, 3, 4; 1 dominates 2, 3; 2 dominates 3; 4 dominates 3
    assert raw_fitness(POINTS).tolist() == [0, 0, 3 + 2, 3 + 2 + 1 + 1, 3]


def test_densities_by_hand() -> None:
    # five points: the distance to the second nearest other one
    second = [2.0, np.sqrt(8), np.sqrt(2), 2.0, np.sqrt(2)]
    np.testing.assert_allclose(densities(POINTS), [1 / (x + 2) for x in second])
    assert densities(POINTS[:1]).tolist() == [0.5]


def test_too_few_that_nobody_dominates_are_filled_up_by_fitness() -> None:
    assert select(POINTS, 2) == [0, 1]
    assert select(POINTS, 3) == [0, 1, 4]
    assert select(POINTS, 4) == [0, 1, 2, 4]
    assert select(POINTS, 9) == [0, 1, 2, 3, 4]
    # 1 and 2 have the same raw fitness; 2 is less crowded
    assert select(np.array([[9.0, 9.0], [1.0, 2.0], [8.0, -5.0], [0.9, 2.1]]), 2) == [0, 2]
    assert select(POINTS[:0], 3) == []


@pytest.mark.parametrize("case", REFERENCE["truncated"])
def test_truncation_is_that_of_deap(case: dict[str, list[int]]) -> None:
    assert select(np.array(case["points"], float), case["size"]) == case["kept"]  # type: ignore[arg-type]


def test_truncation_by_hand() -> None:
    line = np.array([[x, -x] for x in (0.0, 1.0, 1.5, 4.0, 6.0)])
    # 1 and 1.5 are the nearest; the second nearest of 1 is at 1, that of 1.5 at 1.5: 1 goes. Then 1.5 has gaps of 1.5
    # and 2.5, 0 of 1.5 and 4: 1.5 goes
    assert select(line, 4) == [0, 2, 3, 4]
    assert select(line, 3) == [0, 3, 4]


def child(uid: int, step: int, value: float | None, size: float) -> Candidate:
    evaluation = invalid("no") if value is None else Evaluation(value, {"parameters": size})
    return Candidate(uid, {"program": ""}, evaluation, step=step)


def test_a_new_generation_joins_the_elites_of_the_last_population() -> None:
    members: list[Candidate] = []
    for c in [child(0, 0, 0.1, 10), child(1, 1, 0.2, 20), child(2, 1, 0.15, 30), child(3, 1, 0.3, 25)]:
        members = spea2(c, members, size=2)
    assert [c.uid for c in members] == [0, 1, 2, 3]  # 0 is of step 0, all others of one generation
    assert [c.uid for c in elites(members, 2)] == [0, 3]
    members = spea2(child(4, 2, None, 1), members, size=2)
    assert [c.uid for c in members] == [0, 3]  # also before a child that is not valid
    members = spea2(child(5, 2, 0.05, 90), members, size=2)
    assert [c.uid for c in members] == [0, 3, 5]  # whoever is new stays for one generation
    members = spea2(child(6, 3, 0.2, 9), members, size=2)
    assert [c.uid for c in members] == [0, 3, 6]
