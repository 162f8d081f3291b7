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
    clade_counts,
    drawn,
    elite,
    instance_pareto,
    latest,
    mixed,
    novel_sigmoid,
    power_law,
    seed,
    thompson_clade,
    tournament,
    uniform,
    weighted,
)
from evolvent.tasks.evaluation import Evaluation, invalid

RULES: tuple[ParentRule, ...] = (
    uniform, seed, latest, elite, power_law, weighted, boltzmann, mixed,
    tournament, novel_sigmoid, thompson_clade, instance_pareto,
)  # fmt: skip
DRAWS = 4000


def pool(values: list[float], children: list[int] | None = None) -> Pool:
    return pool_of([Candidate(i, {"program": ""}, Evaluation(v)) for i, v in enumerate(values)], children)


def pool_of(history: list[Candidate], children: list[int] | None = None) -> Pool:
    members = [c for c in history if c.valid]
    counts = np.array(children or [0] * len(members), float)
    return Pool(members, counts, history[0], history[-1], history)


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


@pytest.mark.parametrize("size", [1, 2, 5])
def test_tournament(size: int) -> None:
    wanted = {rank: ((4 - rank + 1) ** size - (4 - rank) ** size) / 4**size for rank in (1, 2, 3, 4)}
    close(shares(tournament, pool([3, 9, 9, 1]), size=size), [wanted[3], wanted[1], wanted[2], wanted[4]])


def test_novel_sigmoid() -> None:
    values, children = [0.2, 0.5, 0.6, 0.9], [0, 3, 1, 7]
    wanted = [1 / (1 + math.exp(-10 * (v - 0.5))) / (1 + n) for v, n in zip(values, children, strict=True)]
    close(shares(novel_sigmoid, pool(values, children)), parts(wanted))
    wanted = [1 / (1 + math.exp(-2 * (v - 0.1))) / (1 + n) for v, n in zip(values, children, strict=True)]
    close(shares(novel_sigmoid, pool(values, children), sharpness=2.0, middle=0.1), parts(wanted))


def lineage(rows: list[tuple[float | None, int | None, dict[str, float]]]) -> list[Candidate]:
    """Candidates of a value, a parent and metrics each."""
    return [
        Candidate(
            i, {"program": ""}, invalid("no") if v is None else Evaluation(v, metrics), () if p is None else (p, 0)
        )
        for i, (v, p, metrics) in enumerate(rows)
    ]


def below(a: int, parents: list[int | None]) -> list[int]:
    """The clade of a: walk up from everybody."""
    found = []
    for i in range(len(parents)):
        up: int | None = i
        while up is not None and up != a:
            up = parents[up]
        if up == a:
            found.append(i)
    return found


trees = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.tuples(*[st.integers(0, max(0, i - 1)) for i in range(1, n)]),
        st.lists(st.none() | st.integers(0, 3).map(float), min_size=n, max_size=n),
        st.lists(st.none() | st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=n, max_size=n),
    )
)


@given(trees)
def test_successes_and_failures_of_clades(
    tree: tuple[tuple[int, ...], list[float | None], list[tuple[int, int] | None]],
) -> None:
    first, values, trials = tree
    values[0] = 1.0
    parents = [None, *first]
    given_metrics = [{} if t is None else {"successes": float(t[0]), "failures": float(t[1])} for t in trials]
    found = clade_counts(lineage(list(zip(values, parents, given_metrics, strict=True))))
    own = []
    for i, up in enumerate(parents):
        counted, value = trials[i], values[i]
        if counted is not None and value is not None:  # what is not valid has no metrics
            own.append(counted)
        elif up is None:
            own.append((0, 0))
        else:
            over, better = values[up], False
            if value is not None:
                better = over is None or value > over
            own.append((1, 0) if better else (0, 1))
    for i in range(len(parents)):
        clade = below(i, parents)
        assert found[i] == (sum(own[k][0] for k in clade), sum(own[k][1] for k in clade))


def chance_to_lead(counts: list[tuple[int, int]]) -> list[float]:
    """P(theta_i is the largest) for theta ~ Beta(1 + S, 1 + F), by the midpoint rule; the distribution function of a
    beta with whole parameters is a binomial tail."""

    def density(x: float, s: int, f: int) -> float:
        return math.comb(s + f, s) * (s + f + 1) * x**s * (1 - x) ** f

    def up_to(x: float, s: int, f: int) -> float:
        n = s + f + 1
        return sum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(s + 1, n + 1))

    grid = [(i + 0.5) / 2000 for i in range(2000)]
    return [
        sum(density(x, *mine) * math.prod(up_to(x, *c) for k, c in enumerate(counts) if k != i) for x in grid) / 2000
        for i, mine in enumerate(counts)
    ]


def test_thompson_clade() -> None:
    # 0 - 1 - 2, 0 - 3 (not valid), 1 - 4 (worse than 1)
    history = lineage([(1.0, None, {}), (2.0, 0, {}), (3.0, 1, {}), (None, 0, {}), (1.5, 1, {})])
    counts = [(2, 2), (2, 1), (1, 0), (0, 1)]  # of 0, 1, 2 and 4
    wanted = chance_to_lead(counts)
    assert sum(wanted) == pytest.approx(1, abs=1e-4)
    close(shares(thompson_clade, pool_of(history)), wanted)


def test_thompson_clade_of_counted_trials() -> None:
    history = lineage(
        [
            (0.5, None, {"successes": 3.0, "failures": 3.0}),
            (0.2, 0, {"successes": 1.0, "failures": 4.0}),
            (0.6, 0, {"successes": 4.0, "failures": 2.0}),
        ]
    )
    close(shares(thompson_clade, pool_of(history)), chance_to_lead([(8, 9), (1, 4), (4, 2)]))


def instances(rows: list[list[float | None]]) -> Pool:
    metrics = [
        {f"instance/{k}": v for k, v in enumerate(row) if v is not None} | {"other": 99.0 - i}
        for i, row in enumerate(rows)
    ]
    return pool_of([Candidate(i, {"program": ""}, Evaluation(float(i), m)) for i, m in enumerate(metrics)])


def test_instance_pareto() -> None:
    rows: list[list[float | None]] = [
        [1.0, 0.0, 0.0, 0.0],  # best of instance 0, with the next one, who is better in 3: dominated
        [1.0, 0.0, 0.0, 0.5],
        [0.5, 1.0, 1.0, 0.0],  # best of 1 and 2
        [0.9, 0.9, 0.9, 0.4],  # best nowhere
        [None, 1.0, None, 1.0],  # best of 1 and 3
    ]
    close(shares(instance_pareto, instances(rows)), [0, 1 / 5, 2 / 5, 0, 2 / 5])


def test_instance_pareto_without_instances_is_the_best() -> None:
    close(shares(instance_pareto, pool([2, 9, 9, 1])), [0, 0.5, 0.5, 0])


@given(st.lists(st.lists(st.none() | st.integers(0, 2).map(float), min_size=3, max_size=3), min_size=1, max_size=6))
def test_only_who_is_best_somewhere_and_not_dominated_is_drawn(rows: list[list[float | None]]) -> None:
    made = instances(rows)
    chosen = {instance_pareto(made, np.random.default_rng(i)).uid for i in range(20)}
    table = [[-math.inf if v is None else v for v in row] for row in rows]
    if all(v is None for row in rows for v in row):
        return
    for uid in chosen:
        mine = table[uid]
        assert any(v > -math.inf and v == max(row[k] for row in table) for k, v in enumerate(mine))
        assert not any(row != mine and all(a >= b for a, b in zip(row, mine, strict=True)) for row in table)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6), st.integers(0, 99))
def test_every_rule_gives_a_member_and_repeats_itself(rule: ParentRule, values: list[float], number: int) -> None:
    made = pool(values)
    chosen = [rule(made, np.random.default_rng(number)).uid for _ in range(2)]
    assert chosen[0] == chosen[1]
    assert 0 <= chosen[0] < len(values)


HUGE = [1e308, 1.2e308, -1.7e308, 5.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_huge_values_can_be_drawn_from(rule: ParentRule) -> None:
    shares(rule, pool(HUGE))


def test_the_shares_of_huge_values() -> None:
    close(shares(mixed, pool([1e308, 1.2e308, 0.0]), explore=0.0, exploit=0.0), parts([1e308 / 1e308, 1.2, 0.0]))
    close(shares(boltzmann, pool(HUGE)), [0.0, 1.0, 0.0, 0.0])
    close(shares(weighted, pool([1e308, -1e308, 1e308])), parts([1.0, 0.0, 1.0]))


@given(st.lists(st.floats(0, 1e299), min_size=1, max_size=6))
def test_other_weights_are_divided_by_their_sum_and_nothing_else(weights: list[float]) -> None:
    made, w = pool([1.0] * len(weights)), np.array(weights)
    p = w / w.sum() if w.sum() > 0 else None
    for i in range(5):
        wanted = int(np.random.default_rng(i).choice(len(w), p=p))
        assert drawn(made, w, np.random.default_rng(i)).uid == wanted
