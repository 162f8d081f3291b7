"""Parent rules against their formulas, computed here in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.candidate import Candidate
from evolvent.search.parents import (
    ParentRule,
    Pool,
    boltzmann,
    elite,
    latest,
    mixed,
    power_law,
    seed,
    uniform,
    weighted,
)
from evolvent.tasks.evaluation import Evaluation

RULES: tuple[ParentRule, ...] = (uniform, seed, latest, elite, power_law, weighted, boltzmann, mixed)
DRAWS = 4000


def pool(values: list[float], children: list[int] | None = None) -> Pool:
    members = [Candidate(i, {"program": ""}, Evaluation(v)) for i, v in enumerate(values)]
    counts = np.array(children or [0] * len(values), float)
    return Pool(members, counts, members[0], members[-1])


def shares(rule: ParentRule, made: Pool, **settings: float) -> list[float]:
    rng = np.random.default_rng(0)
    found = Counter(rule(made, rng, **settings).uid for _ in range(DRAWS))
    return [found[c.uid] / DRAWS for c in made.members]


def close(found: list[float], wanted: list[float]) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert abs(a - b) < 4 * math.sqrt(b * (1 - b) / DRAWS) + 1e-3, (found, wanted)


def parts(weights: list[float]) -> list[float]:
    return [w / sum(weights) for w in weights]


def test_uniform() -> None:
    close(shares(uniform, pool([5, 1, 3, 3])), [0.25] * 4)


def test_the_sure_ones() -> None:
    made = pool([2, 9, 9, 1])
    assert shares(seed, made)[0] == 1
    assert shares(latest, made)[3] == 1
    assert shares(elite, made)[1] == 1  # the first of equals


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_power_law(alpha: float) -> None:
    close(shares(power_law, pool([1, 7, 3]), alpha=alpha), parts([3**-alpha, 1, 2**-alpha]))


def test_weighted() -> None:
    values, children = [1.0, 2.0, 4.0, 4.5], [0, 3, 1, 7]
    middle = median(values)
    mad = median([abs(v - middle) for v in values])
    wanted = [1 / (1 + math.exp(-10 * (v - middle) / mad)) / (1 + n) for v, n in zip(values, children, strict=True)]
    close(shares(weighted, pool(values, children)), parts(wanted))


def test_weighted_where_all_are_equal() -> None:
    close(shares(weighted, pool([3.0, 3.0, 3.0], [0, 1, 3])), parts([1, 1 / 2, 1 / 4]))


def test_boltzmann() -> None:
    close(shares(boltzmann, pool([0.0, 1.0, 2.0]), temperature=0.7), parts([math.exp(v / 0.7) for v in (0, 1, 2)]))


def test_mixed() -> None:
    values = [float(v) for v in range(20)]
    wanted = [0.2 / 20 + 0.1 * max(v, 0.001) / (sum(values) + 0.001) for v in values]
    for best in (18, 19):
        wanted[best] += 0.7 / 2
    close(shares(mixed, pool(values)), wanted)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6), st.integers(0, 99))
def test_every_rule_gives_a_member_and_repeats_itself(rule: ParentRule, values: list[float], number: int) -> None:
    made = pool(values)
    chosen = [rule(made, np.random.default_rng(number)).uid for _ in range(2)]
    assert chosen[0] == chosen[1]
    assert 0 <= chosen[0] < len(values)
