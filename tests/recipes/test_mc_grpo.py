"""MC-GRPO: its advantages by hand, the pivot, the probe that it is judged by, and how it composes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.recipes.recipe_runs import build, steps, without

from evolvent.bench.probes import probe_groups, sign_flips
from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Trajectory
from evolvent.learn.credit import GroupCredit, mad, mean, median, std
from evolvent.recipes.policy_gradient.mc_grpo import without_pivot, without_smallest

PROBLEM = Problem("key", (), {})
MC = GroupCredit(median, mad, without_pivot)


def group(*scores: float) -> Group:
    """A judged group."""
    rows = []
    for i, score in enumerate(scores):
        rows.append(Trajectory(i, PROBLEM, np.zeros(2, np.int32), np.arange(2) > 0, np.zeros(2, np.float32)))
        rows[-1].reward("outcome", score)
    return Group(PROBLEM, rows)


@pytest.mark.parametrize(
    ("scores", "advantages", "kept"),
    [
        ((0.2, 0.9, 0.4), (-0.2 / 0.201, 0.5 / 0.201, 0.0), (0, 1)),
        ((0.0, 0.5, 1.0, 0.25, 0.25), (-0.25 / 0.251, 0.25 / 0.251, 0.75 / 0.251, 0.0, 0.0), (0, 1, 2, 4)),
        ((1.0, 1.0, 0.0), (0.0, 0.0, -1.0 / 0.001), (1, 2)),  # ties with the median: one leaves
        ((0.3, 0.3, 0.3), (0.0, 0.0, 0.0), (1, 2)),
        ((0.0, 1.0), (-0.5 / 0.501, 0.5 / 0.501), (0, 1)),  # one failed: an even group has no pivot
    ],
)
def test_advantages_and_pivot_by_hand(
    scores: tuple[float, ...], advantages: tuple[float, ...], kept: tuple[int, ...]
) -> None:
    found = MC.advantages([group(*scores)])[0]
    assert found == pytest.approx(advantages)
    assert np.flatnonzero(without_pivot(found)).tolist() == list(kept)


def test_the_control_drops_the_smallest() -> None:
    assert without_smallest(np.array([0.5, -0.1, 0.3])).tolist() == [True, False, True]
    assert without_smallest(np.array([0.0, 0.0, 0.0])).tolist() == [False, True, True]


@pytest.mark.parametrize("name", ["mc-grpo", "grpo-plus-one"])
def test_one_rollout_more_is_sampled_and_one_leaves_the_update(name: str) -> None:
    on = steps(build(name, propose__n=2).system, 1)[0]
    assert [len(g.trajectories) for g in on.groups] == [3] * 6
    assert len(on.batches[0].rows) == 2 * 6
    with without(name, "credit.rows") as ablated:
        off = steps(build(ablated, propose__n=2).system, 1)[0]
    assert len(off.batches[0].rows) == 3 * 6
    with without(name, "propose.n") as ablated:
        off = steps(build(ablated, propose__n=3).system, 1)[0]
    assert [len(g.trajectories) for g in off.groups] == [3] * 6


def flips(credit: GroupCredit, size: int, draws: np.ndarray, truth: float) -> float:
    """Share of advantages with another sign than score - truth, zeros left out."""
    signs, real = [], []
    for start in range(0, len(draws) - size + 1, size):
        scores = draws[start : start + size]
        signs += np.sign(credit.advantages([group(*scores)])[0]).tolist()
        real += np.sign(scores - truth).tolist()
    pairs = [(a, b) for a, b in zip(signs, real, strict=True) if a and b]
    return sum(a != b for a, b in pairs) / len(pairs)


def test_the_median_turns_fewer_signs_than_the_mean() -> None:
    """Graded rewards with rare high ones, the distribution that the paper draws: mostly little, sometimes a lot."""
    draws = np.random.default_rng(0).beta(0.4, 1.6, 3000)
    ours = flips(MC, 3, draws, 0.2)
    theirs = flips(GroupCredit(mean, std), 2, draws, 0.2)
    assert ours < theirs - 0.02


@pytest.mark.parametrize("name", ["grpo", "mc-grpo"])
def test_the_probe_counts_what_a_plain_loop_does(name: str) -> None:
    role = build(name, propose__n=2, propose__problems=4).system.roles[""]
    size = 3 if name == "mc-grpo" else 2
    wrong = counted = 0
    for g in probe_groups(role, 5, 64, "sign-flips"):
        scores = [t.score for t in g.valid]
        oracle = sum(scores) / len(scores)
        for start in range(0, 64 - size + 1, size):
            some = scores[start : start + size]
            centre = sorted(some)[1] if size == 3 else sum(some) / 2
            for x in some:
                if not math.isclose(x, centre) and not math.isclose(x, oracle):
                    counted += 1
                    wrong += (x > centre) != (x > oracle)
    assert counted > 20
    assert sign_flips(role, 5) == pytest.approx(wrong / counted)


def test_it_composes() -> None:
    for names in ("grpo+sec+mc-grpo", "mc-grpo+pipo", "mc-grpo+dapo"):
        taken = steps(build(names, propose__n=2, propose__problems=4).system, 2)
        assert all(len(g.trajectories) == 3 for s in taken for g in s.groups)
    with pytest.raises(UserError, match="odd group"):
        build("mc-grpo", propose__n=3)
