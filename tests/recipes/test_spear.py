"""Dr.BoT's filters and SPEAR's mechanisms, each on real episodes with the calculator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.recipes.recipe_runs import build, steps, without

from evolvent.core.records import Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.recipes.rollout.dr_bot import overlong, repetitive, void, widest

TASK = "calc:1x1"
PROBLEM = Problem("key", (), {})


def row(tokens: list[int], score: float = 0.0, **info: Any) -> Trajectory:
    """A trajectory of which the policy wrote all but the first token."""
    size = len(tokens)
    made = Trajectory(0, PROBLEM, np.array(tokens, np.int32), np.arange(size) > 0, np.zeros(size, np.float32))
    made.reward("outcome", score)
    made.info |= info
    made.stop = "end"
    return made


def test_the_widest_groups_stay_in_their_order() -> None:
    spreads = [(0, 1), (0, 0), (0.4, 0.6), (1, 1), (0, 0.5)]
    groups = [Group(PROBLEM, [row([0, 1], float(x)) for x in pair], {"place": i}) for i, pair in enumerate(spreads)]

    def places(share: float) -> list[int]:
        return [g.info["place"] for g in widest(groups, share=share)]

    assert places(0.75) == [0, 2, 4]  # int(0.75 * 5)
    assert places(0.4) == [0, 4]
    assert places(0.01) == [0]
    assert places(0.8) == [0, 1, 2, 4]  # of equals the first
    assert widest([]) == []


def test_what_is_masked() -> None:
    cut = row([0, 1])
    cut.stop = "length"
    assert overlong(cut)
    assert not overlong(row([0, 1]))
    assert void(row([0, 1], answer=None))
    assert void(row([0, 1], answer=None, calls=0))
    assert not void(row([0, 1], answer=None, calls=1))
    assert not void(row([0, 1], answer="7"))
    assert not void(row([0, 1]))  # nobody has looked for an answer
    again = list(range(20)) * 10
    assert repetitive(row([99, *again]))
    assert not repetitive(row([99, *again[:-1]]))
    assert repetitive(row([99, 5, 6, 5, 6, 5]), length=2, times=2)
    assert not repetitive(row([99, 5, 6, 7]), length=2, times=2)
    assert not repetitive(row([99]))


def test_masked_rows_have_no_weight_but_keep_their_place_in_the_mean() -> None:
    made = build("dr-bot", TASK, rollout__max_tokens=9)  # too few for some
    (s,) = steps(made.system, 1)
    cut = [i for i, t in enumerate(s.batches[0].rows) if t.stop == "length"]
    assert 0 < len(cut) < len(s.batches[0].rows)
    assert s.metrics["masked"] >= len(cut) / len(s.batches[0].rows)
    assert all(s.batches[0].weight[i] == 0 for i in cut)
    with without("dr-bot", "credit") as ablated:
        (off,) = steps(build(ablated, TASK, rollout__max_tokens=9).system, 1)
    open_rows = [i for i in range(len(off.batches[0].rows)) if s.batches[0].weight[i] != 0]
    assert s.batches[0].weight[open_rows] == pytest.approx(off.batches[0].weight[open_rows])
    assert any(off.batches[0].weight[i] != 0 for i in cut)


def test_narrow_groups_leave_the_update() -> None:
    (on,) = steps(build("dr-bot", TASK, propose__problems=8).system, 1)
    with without("dr-bot", "credit.groups") as ablated:
        (off,) = steps(build(ablated, TASK, propose__problems=8).system, 1)
    assert len(on.batches[0].rows) == 6 * 4
    assert len(off.batches[0].rows) == 8 * 4


# --- SPEAR ---------------------------------------------------------------------------------------------------------


def spear(count: int, composition: str = "spear", **settings: Any) -> list[Step]:
    """Steps with enough episodes that the buffer fills."""
    options = {"propose__problems": 8, "propose__n": 8, "keep__capacity": 10, "keep__warmup": 4, **settings}
    return steps(build(composition, TASK, **options).system, count)


def test_tool_calls_are_rewarded_while_it_lasts() -> None:
    (first,) = spear(1)
    rows = [t for g in first.groups for t in g.valid]
    assert any(t.info.get("calls") for t in rows)
    assert all(t.score == pytest.approx(t.outcome + min(1, 0.1 * t.info.get("calls", 0))) for t in rows)
    faded = spear(3, judge__tool_bonus__decay=2)
    assert all(t.score == t.outcome for g in faded[2].groups for t in g.valid)
    with without("spear", "judge") as ablated:
        (off,) = spear(1, ablated)
    assert all("tools" not in t.rewards for g in off.groups for t in g.valid)


def test_successes_are_replayed_with_the_weight_of_the_warm_up() -> None:
    taken = spear(6)
    replays = [(s.t, b) for s in taken for b in s.batches if b.name == "replay"]
    assert replays
    for t, batch in replays:
        assert batch.coefficient == pytest.approx(min(1.0, (1 - np.cos(np.pi * t / 4)) / 2) if t < 4 else 1.0)
        assert all(r.info["calls"] > 0 and r.version < taken[t].actors[0].version for r in batch.rows)
        assert (batch.weight > 0).all()
    with without("spear", "keep") as ablated:
        assert all(b.name == "fresh" for s in steps(build(ablated, TASK).system, 4) for b in s.batches)


def test_replay_costs_no_episode() -> None:
    on, off = spear(6), spear(6, keep__capacity=10_000)
    assert sum(len(b.rows) for s in on for b in s.batches) > sum(len(b.rows) for s in off for b in s.batches)
    assert all(len(s.groups) == 8 for s in on)


def test_clip_cov_hits_tokens_of_both_batches() -> None:
    taken = spear(6, learn__clip_cov__low=0.0, learn__clip_cov__ratio=0.02)
    assert all(0 < s.metrics["clip_cov"] <= 0.021 for s in taken if s.metrics["learn/rows"])
    none = spear(6, learn__clip_cov__ratio=0.0)
    assert all(s.metrics["clip_cov"] == 0 for s in none)
    with without("spear", "learn") as ablated:
        assert "clip_cov" not in spear(1, ablated)[0].metrics


def test_without_tools_it_is_its_base_with_clip_cov() -> None:
    taken = steps(build("spear", "arith:1x1").system, 3)
    assert all(s.metrics["replay/stored"] == 0 for s in taken)
