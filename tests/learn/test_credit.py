"""Advantages: invariances, signs and closed forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learn.learning_views import group_view

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Trajectory
from evolvent.learn import credit
from evolvent.learn.credit import GroupCredit, to_batch, with_signal

PROBLEM = Problem("key", (), {})
numbers = st.floats(-10, 10, allow_nan=False).map(lambda x: round(x, 3))
group = st.lists(numbers, min_size=2, max_size=9)
step = st.lists(st.lists(numbers, min_size=1, max_size=6), min_size=1, max_size=5)
CENTRED = [credit.mean, credit.leave_one_out, credit.median, credit.batch_mean]
SCALES = [credit.std, credit.batch_std, credit.centred_std, credit.mad, credit.no_scale]


def row(score: float, length: int = 3, outcome: float | None = None) -> Trajectory:
    """A judged answer."""
    made = Trajectory(0, PROBLEM, np.zeros(length, np.int32), np.ones(length, bool), np.zeros(length, np.float32))
    made.reward("outcome", score if outcome is None else outcome)
    if outcome is not None:
        made.reward("shaping", score - outcome)
    return made


def groups(scores: list[list[float]]) -> list[Group]:
    """Judged groups with these scores."""
    return [Group(PROBLEM, [row(x) for x in one]) for one in scores]


def advantages(scores: list[list[float]], **axes: Any) -> list[np.ndarray]:
    """What a GroupCredit makes of them."""
    return GroupCredit(**axes).advantages(groups(scores))


@given(group)
def test_advantages_sum_to_zero(scores: list[float]) -> None:
    for baseline in (credit.mean, credit.leave_one_out):
        assert sum(advantages([scores], baseline=baseline, scale=credit.no_scale)[0]) == pytest.approx(0, abs=1e-8)


@given(step)
def test_batch_mean_sums_to_zero_over_the_step(scores: list[list[float]]) -> None:
    found = advantages(scores, baseline=credit.batch_mean, scale=credit.no_scale)
    assert np.concatenate(found).sum() == pytest.approx(0, abs=1e-8)


@given(step, numbers)
@pytest.mark.parametrize("baseline", CENTRED)
@pytest.mark.parametrize("scale", SCALES)
def test_a_shift_of_all_scores_changes_nothing(baseline: Any, scale: Any, scores: list[list[float]], c: float) -> None:
    before = advantages(scores, baseline=baseline, scale=scale)
    after = advantages([[x + c for x in one] for one in scores], baseline=baseline, scale=scale)
    for a, b in zip(before, after, strict=True):
        # equal scores differ by rounding after the shift, and the smallest scale is 1e-8
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@given(group, st.floats(0.1, 10))
def test_a_scaling_of_all_scores_changes_nothing_but_for_eps(scores: list[float], c: float) -> None:
    """With eps the ratio of two scalings is (s + eps) / (s + eps / c)."""
    for scale, eps in ((credit.std, 1e-4), (credit.mad, 1e-3)):
        baseline = credit.median if scale is credit.mad else credit.mean
        spread = scale(group_view(scores)) - eps
        (before,) = advantages([scores], baseline=baseline, scale=scale)
        (after,) = advantages([[c * x for x in scores]], baseline=baseline, scale=scale)
        np.testing.assert_allclose(after, before * (spread + eps) / (spread + eps / c), rtol=1e-6, atol=1e-6)


@given(group, st.randoms(use_true_random=False))
@pytest.mark.parametrize("baseline", [*CENTRED, credit.length_weighted])
def test_order_within_a_group_does_not_matter(baseline: Any, scores: list[float], random: Any) -> None:
    order = list(range(len(scores)))
    random.shuffle(order)
    rows = [row(x, length=i + 1) for i, x in enumerate(scores)]
    learner = GroupCredit(baseline=baseline, scale=credit.std)
    (straight,) = learner.advantages([Group(PROBLEM, rows)])
    (shuffled,) = learner.advantages([Group(PROBLEM, [rows[i] for i in order])])
    np.testing.assert_allclose(shuffled, straight[order], atol=1e-9)


@given(group)
def test_leave_one_out_is_the_mean_stretched(scores: list[float]) -> None:
    n = len(scores)
    (loo,) = advantages([scores], baseline=credit.leave_one_out, scale=credit.no_scale)
    (centred,) = advantages([scores], baseline=credit.mean, scale=credit.no_scale)
    np.testing.assert_allclose(loo, centred * n / (n - 1), atol=1e-8)


@given(st.integers(1, 9), numbers)
@pytest.mark.parametrize("baseline", [credit.mean, credit.leave_one_out, credit.median, credit.length_weighted])
@pytest.mark.parametrize("scale", [credit.std, credit.mad, credit.no_scale])
def test_equal_scores_give_exactly_nothing(baseline: Any, scale: Any, n: int, score: float) -> None:
    """Not 1e-17 / eps: Adam would act on that."""
    (found,) = advantages([[score + 0.1] * n], baseline=baseline, scale=scale)
    assert not found.any()


def test_closed_forms() -> None:
    scores = [0.0, 1.0, 1.0, 4.0]
    view = group_view(scores, [scores, [2.0, 2.0]])
    assert credit.mean(view).tolist() == [1.5] * 4
    assert credit.leave_one_out(view).tolist() == [2.0, 5 / 3, 5 / 3, 2 / 3]
    assert credit.median(view).tolist() == [1.0] * 4
    assert credit.batch_mean(view).tolist() == [10 / 6] * 4
    assert credit.no_baseline(view).tolist() == [0.0] * 4
    assert credit.std(view, eps=0.0) == pytest.approx(np.sqrt(9 / 3))  # squares 2.25, .25, .25, 6.25
    assert credit.mad(view, eps=0.0) == 0.5  # |x - 1| = 1, 0, 0, 3
    assert credit.centred_std(view, eps=0.0) == pytest.approx(np.sqrt(9 / 5))
    assert credit.signal_share(view) == pytest.approx(4 / 6)
    assert credit.no_scale(view) == 1.0


def test_the_length_weighted_baseline() -> None:
    rows = [row(1.0, length=1), row(0.0, length=3)]
    (found,) = GroupCredit(credit.length_weighted, credit.no_scale).advantages([Group(PROBLEM, rows)])
    assert found.tolist() == [0.75, -0.25]


def test_the_length_weighted_baseline_has_the_least_variance() -> None:
    """OPO: b* = E[|g|^2 r] / E[|g|^2] minimises E[|g|^2 (r - b)^2]; here |g|^2 is the length."""
    rng = np.random.default_rng(0)
    lengths, scores = rng.integers(1, 30, 50), rng.random(50)
    rows = [row(float(x), length=int(n)) for x, n in zip(scores, lengths, strict=True)]
    best = float(
        scores[0] - GroupCredit(credit.length_weighted, credit.no_scale).advantages([Group(PROBLEM, rows)])[0][0]
    )

    def variance(b: float) -> float:
        return float((lengths * (scores - b) ** 2).mean())

    assert variance(best) < min(variance(best - 0.01), variance(best + 0.01), variance(float(scores.mean())))


def test_the_group_filter_looks_at_outcomes_not_at_shaping() -> None:
    """verl-recipe#125: shaping makes a group that all fails look informative."""
    shaped = Group(PROBLEM, [row(0.1, outcome=0.0), row(0.3, outcome=0.0)])
    mixed = Group(PROBLEM, [row(0.0, outcome=0.0), row(1.0, outcome=1.0)])
    assert with_signal([shaped, mixed]) == [mixed]


def test_errors_take_no_part() -> None:
    broken = row(1.0)
    broken.error = "verifier: down"
    (found,) = GroupCredit(scale=credit.no_scale).advantages([Group(PROBLEM, [row(1.0), row(0.0), broken])])
    assert found.tolist() == [0.5, -0.5]


def test_a_batch_has_the_rows_that_the_filter_keeps() -> None:
    made = groups([[0.0, 1.0, 0.5], [1.0, 1.0]])
    batch = to_batch(made, [np.array([-1.0, 1.0, 0.0]), np.zeros(2)], rows=lambda values: values != 0)
    assert [t.score for t in batch.rows] == [0.0, 1.0]
    assert batch.weight.tolist() == [-1.0, 1.0]  # type: ignore[union-attr]
    assert batch.columns["group"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("baseline", "n", "remedy"), [(credit.median, 8, "have 8 answers.* one lower"), (credit.mean, 1, "propose.n=8")]
)
def test_impossible_groups_are_refused(baseline: Any, n: int, remedy: str) -> None:
    part = GroupCredit(baseline=baseline)
    inner = SimpleNamespace(n=n)
    role = SimpleNamespace(slots={"propose": SimpleNamespace(inner=inner), "credit": part}, parts={"credit": part})
    with pytest.raises(UserError, match=remedy):
        part.check(SimpleNamespace(roles={"": role}))


def test_shapes_are_checked_in_tests() -> None:
    """The contracts of the signatures are live: a baseline that returns the wrong shape is refused."""
    with pytest.raises(Exception, match=r"[Tt]ype-check"):
        credit.GroupView(np.zeros((2, 2)), [np.zeros(2)], np.zeros(2))
