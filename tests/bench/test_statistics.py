"""The protocol's arithmetic, against SciPy and values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evolvent.bench.statistics import (
    Interval,
    combine,
    decide,
    holm,
    pass_at,
    sign_flip_p,
    t_interval,
    t_quantile,
    wilson,
)

SPREAD = np.array([-3.0, -2.0, -1.0, 0.0, 0.0, 1.0, 2.0, 3.0])


def around(mean: float, half: float) -> list[float]:
    """Eight values whose 97.5 % interval is mean - half to mean + half."""
    return (mean + SPREAD * half / t_interval(SPREAD.tolist()).high).tolist()


def test_the_quantiles_that_the_protocol_names() -> None:
    assert t_quantile(0.975, 7) == pytest.approx(2.84, abs=0.005)
    assert t_quantile(0.975, 15) == pytest.approx(2.49, abs=0.005)


def test_t_interval_by_hand() -> None:
    found = t_interval([1, 2, 3, 4, 5])  # deviation sqrt(2.5), error sqrt(0.5), t with 4 degrees 3.4954
    assert found.mean == 3
    assert found.high - 3 == pytest.approx(3.4954 * math.sqrt(0.5), abs=1e-4)
    assert found.high - 3 == pytest.approx(3 - found.low)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20).filter(lambda x: np.std(x) > 1e-3))
def test_t_interval_as_scipy_has_it(values: list[float]) -> None:
    found = t_interval(values)
    low, high = stats.t.interval(0.975, len(values) - 1, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_one_value_tells_nothing() -> None:
    assert t_interval([0.7]) == Interval(0.7, -math.inf, math.inf)
    assert decide([5.0], 0.1, "superiority")[0] == "inconclusive"


@pytest.mark.parametrize(("right", "of"), [(0, 1), (1, 1), (0, 50), (3, 7), (500, 1000), (50, 50)])
def test_wilson_as_scipy_has_it(right: int, of: int) -> None:
    found = wilson(right, of)
    theirs = stats.binomtest(right, of).proportion_ci(0.975, "wilson")
    assert found.mean == right / of
    assert (found.low, found.high) == (pytest.approx(theirs.low, abs=1e-12), pytest.approx(theirs.high, abs=1e-12))


def test_wilson_by_hand_and_without_trials() -> None:
    found = wilson(1, 2, 0.95)  # z^2 = 3.8415: half of (1 +- sqrt(z^2 / (2 + z^2)))
    assert found.low == pytest.approx(0.5 - 0.5 * math.sqrt(3.8415 / 5.8415), abs=1e-4)
    none = wilson(0, 0)
    assert math.isnan(none.mean)
    assert (none.low, none.high) == (0, 1)


@pytest.mark.parametrize(
    ("mean", "half", "kind", "verdict"),
    [
        (0.10, 0.05, "superiority", "holds"),
        (0.05, 0.04, "superiority", "holds"),  # the least effect, and surely above zero
        (0.06, 0.07, "superiority", "inconclusive"),  # enough, but perhaps nothing
        (0.04, 0.03, "superiority", "inconclusive"),  # surely something, perhaps too little
        (0.02, 0.01, "superiority", "does-not-hold"),  # surely something, surely too little
        (0.00, 0.04, "superiority", "does-not-hold"),
        (-0.10, 0.05, "superiority", "does-not-hold"),
        (0.00, 0.20, "superiority", "inconclusive"),
        (0.00, 0.04, "non-inferiority", "holds"),
        (-0.03, 0.01, "non-inferiority", "holds"),  # surely worse, but by less than delta
        (0.50, 0.10, "non-inferiority", "holds"),
        (-0.05, 0.04, "non-inferiority", "inconclusive"),
        (-0.10, 0.04, "non-inferiority", "does-not-hold"),
        (0.00, 0.04, "equivalence", "holds"),
        (0.00, 0.06, "equivalence", "inconclusive"),
        (0.04, 0.03, "equivalence", "inconclusive"),
        (0.10, 0.04, "equivalence", "does-not-hold"),
        (-0.10, 0.04, "equivalence", "does-not-hold"),
    ],
)
def test_every_verdict(mean: float, half: float, kind: str, verdict: str) -> None:
    found, interval = decide(around(mean, half), 0.05, kind)  # type: ignore[arg-type]
    assert interval.low == pytest.approx(mean - half)
    assert found == verdict


def test_missing_numbers_decide_nothing() -> None:
    for kind in ("superiority", "non-inferiority", "equivalence"):
        assert decide([0.5] * 7 + [math.nan], 0.05, kind)[0] == "inconclusive"


def test_without_an_effect_a_claim_seldom_holds() -> None:
    """The promise of the protocol's page: 2.0 %, with more seeds where eight decide nothing."""
    rng = np.random.default_rng(0)
    held, studies = 0, 3000
    for _ in range(studies):
        values = rng.standard_normal(16).tolist()
        verdict, _ = decide(values[:8], 0.01, "superiority")
        if verdict == "inconclusive":
            verdict, _ = decide(values, 0.01, "superiority")
        held += verdict == "holds"
    assert held / studies < 0.027


def test_a_claim_is_as_good_as_its_worst_component() -> None:
    assert combine(["holds", "holds"]) == "holds"
    assert combine(["holds", "inconclusive"]) == "inconclusive"
    assert combine(["holds", "inconclusive", "does-not-hold"]) == "does-not-hold"


def test_sign_flips_by_hand() -> None:
    assert sign_flip_p([1, 2, 3]) == 2 / 8  # only all signs alike give as much
    assert sign_flip_p([1, 2, -1]) == 6 / 8  # totals 4, 2, 0, 2 and their negatives
    assert sign_flip_p([0, 0]) == 1
    assert sign_flip_p([0.1] * 8) == 2 / 256
    for bad in ([], [1.0] * 17):
        with pytest.raises(ValueError, match="1 to 16"):
            sign_flip_p(bad)


def test_sign_flips_as_scipy_has_them() -> None:
    values = np.random.default_rng(1).normal(0.4, 1, 9)
    theirs = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip_p(values.tolist()) == pytest.approx(theirs.pvalue)


def test_holm_steps_down() -> None:
    # in order: 0.005 <= 0.05 / 4, 0.01 <= 0.05 / 3, 0.03 > 0.05 / 2, and nothing after that
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm([0.02, 0.02], 0.03) == [False, False]
    assert holm([0.014, 0.02], 0.03) == [True, True]


def test_pass_at_k_by_hand() -> None:
    assert pass_at(2, [1], 4) == pytest.approx(0.5)  # three of the six pairs miss the one that is right
    assert pass_at(1, [0, 2, 4], 4) == pytest.approx(0.5)
    assert pass_at(4, [0, 1], 4) == 0.5
