"""SEC on real steps: values from the batch, draws that follow them, and every mixture of tasks."""

from __future__ import annotations

import numpy as np
import pytest
from tests.recipes.recipe_runs import build, steps, without

from evolvent.propose.bandit import Bandit

TASK = "arith:1x1,6x1"  # sometimes right; never right


def test_values_are_those_of_the_batch() -> None:
    made = build("sec", TASK, propose__problems=12)
    bandit = made.system.parts["propose.choose"]
    assert isinstance(bandit, Bandit)
    assert (bandit.alpha, bandit.tau) == (0.5, 1.0)
    before = {"1x1": 0.0, "6x1": 0.0}
    for s in steps(made.system, 3):
        (batch,) = s.batches
        for category in before:
            sizes = [
                abs(w) for t, w in zip(batch.rows, batch.weight.tolist(), strict=True) if t.problem.category == category
            ]
            assert sizes
            before[category] = 0.5 * float(np.mean(sizes)) + 0.5 * before[category]
    assert bandit.values == pytest.approx(before, rel=1e-5)
    assert before["1x1"] > before["6x1"] == 0.0


def share(composition: str, **settings: object) -> float:
    """Of the problems after the first steps, how many are of the level that can be learned."""
    taken = steps(build(composition, TASK, propose__problems=20, **settings).system, 8)[3:]
    return float(np.mean([g.problem.category == "1x1" for s in taken for g in s.groups]))


def test_more_is_drawn_where_advantages_are_large() -> None:
    sharp = share("sec", propose__choose__tau=0.1)
    assert sharp > 0.8
    assert sharp > share("sec") > 0.5
    with without("sec", "propose.choose") as ablated:
        assert share(ablated) == pytest.approx(0.5, abs=0.12)


def test_groups_without_signal_become_fewer() -> None:
    def flat(composition: str, **settings: object) -> float:
        taken = steps(build(composition, TASK, propose__problems=20, **settings).system, 8)[3:]
        return float(np.mean([s.metrics["flat_groups"] for s in taken]))

    assert flat("sec", propose__choose__tau=0.1) < flat("grpo") - 0.1


def test_a_fixed_order_starts_with_the_easiest() -> None:
    made = build("grpo", TASK, propose__choose="in_order", propose__choose__steps=4)
    seen = [{g.problem.category for g in s.groups} for s in steps(made.system, 4)]
    assert seen == [{"1x1"}, {"1x1"}, {"6x1"}, {"6x1"}]


def test_arms_of_a_mixture() -> None:
    made = build("sec", "arith:1x1+calc:1x1", propose__problems=12)
    taken = steps(made.system, 2)
    assert set(made.system.parts["propose.choose"].values) == {"arith:1x1/1x1", "calc:1x1/1x1"}
    chances = [taken[-1].metrics[f"bandit/{c}"] for c in made.task.categories]
    assert sum(chances) == pytest.approx(1.0)


def test_it_composes_with_other_credit() -> None:
    for names in ("dapo+sec", "nft+sec", "spear+sec", "evol-rl+sec"):
        made = build(names, TASK, propose__problems=8)
        steps(made.system, 2)
        values = made.system.parts["propose.choose"].values
        assert values["1x1"] > values.get("6x1", 0.0)
        assert "evol-rl" in names or values.get("6x1", 0.0) == 0.0  # novelty gives a signal everywhere
