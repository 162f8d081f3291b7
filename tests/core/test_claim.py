"""Claims that could not be refuted, or not by the protocol, are refused when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from evolvent.core.claim import Claim, Component, claim, down, up
from evolvent.core.errors import UserError

BETTER = up("test.sampled", 0.01, "grpo")


def test_a_claim_knows_its_baselines() -> None:
    made = claim(
        "it is better and shorter",
        up("test.sampled", 0.01, "grpo", "rloo"),
        down("test.length", 0.1, "rloo", "dapo", kind="non-inferiority", scale="log"),
        task="arith",
        budget="200 steps",
    )
    assert made.baselines == ("grpo", "rloo", "dapo")
    assert [(c.direction, c.kind, c.scale) for c in made.components] == [
        ("up", "superiority", "linear"),
        ("down", "non-inferiority", "log"),
    ]


def test_without_a_component_nothing_could_refute_it() -> None:
    with pytest.raises(UserError, match="no component"):
        claim("all is well", task="arith", budget="200 steps")
    with pytest.raises(UserError, match="names no baseline"):
        up("test.sampled", 0.01)


@pytest.mark.parametrize("delta", [0.0, -0.1, float("nan")])
def test_a_least_effect_is_above_zero(delta: float) -> None:
    with pytest.raises(UserError, match="a least effect above 0"):
        up("test.sampled", delta, "grpo")


@pytest.mark.parametrize("fields", [{"direction": "higher"}, {"kind": "better"}])
def test_words_that_the_protocol_does_not_know(fields: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"metric": "test.sampled", "direction": "up", "delta": 0.01, "against": ("grpo",)}
    with pytest.raises(UserError, match="no direction|or kind"):
        Component(**{**usual, **fields})


def test_the_budget_is_one_and_tuning_is_bounded() -> None:
    with pytest.raises(UserError, match="has no unit"):
        Claim("it is better", (BETTER,), "arith", "200")
    Claim("it is better", (BETTER,), "arith", "200 steps", tune=({},) * 5)
    with pytest.raises(UserError, match="the protocol allows 5"):
        Claim("it is better", (BETTER,), "arith", "200 steps", tune=({},) * 6)
