"""Pairs of recipes: they build and take a step, or are refused with a sentence, whichever comes first."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from tests.recipes.recipe_runs import build, steps

from evolvent.core.errors import UserError
from evolvent.recipes import all_recipes

PAIRS = random.Random(0).sample(list(itertools.combinations(sorted(all_recipes()), 2)), 600)  # some twenty of each
SOME = [
    ("dapo", "mc-grpo"),
    ("dapo", "sec"),
    ("dr-grpo", "gspo"),
    ("gspo", "rloo"),
    ("best-of-n", "grpo"),
    ("raft", "sft"),
    ("cispo", "pipo"),
    ("dpo", "grpo"),
]


def outcome(composition: str) -> tuple[str, str]:
    """`steps`, or `refused` and why."""
    try:
        made = build(composition)
        taken = steps(made.system, 1)
    except UserError as reason:
        return "refused", str(reason)
    assert all(math.isfinite(v) for s in taken for v in s.metrics.values())
    return "steps", ""


def both_orders(pair: tuple[str, str]) -> tuple[str, str]:
    """What becomes of a pair, the same in both orders."""
    first, second = outcome("+".join(pair)), outcome("+".join(reversed(pair)))
    assert first[0] == second[0], (first, second)
    if first[0] == "refused":
        assert "\n" not in first[1]
        assert len(first[1]) > 30
    return first


@pytest.mark.parametrize("pair", SOME, ids="+".join)
def test_some_pairs(pair: tuple[str, str]) -> None:
    both_orders(pair)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_pairs(pair: tuple[str, str]) -> None:
    both_orders(pair)


def test_a_recipe_with_its_ancestor_is_itself() -> None:
    alone, doubled = (build(c).system for c in ("dapo", "grpo+dapo"))
    for one, other in zip(steps(alone, 2), steps(doubled, 2), strict=True):
        kept = [k for k in one.metrics if not k.startswith("seconds/")]
        assert [one.metrics[k] for k in kept] == [other.metrics[k] for k in kept]


def test_strangers_that_differ_are_refused_until_one_is_taken() -> None:
    kind, why = both_orders(("dr-grpo", "gspo"))
    assert kind == "refused"
    assert "--take" in why


def test_wraps_of_strangers_stack() -> None:
    """DAPO refills, MC-GRPO makes the groups odd and centres them on the median."""
    made = build("dapo+mc-grpo", learn__minibatches=1)
    parts = set(made.system.parts)
    assert {"propose", "propose.refill", "judge", "judge.overlong"} <= parts
    (taken,) = steps(made.system, 1)
    assert {len(g.trajectories) for g in taken.groups} == {5}
