"""What a program of the world `adapters` may give back, and what is said of everything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evolvent.tasks.worlds.adapters.genome import LARGEST, MOST, SEEDS, read
from evolvent.tasks.worlds.adapters.world import judge


def test_sizes_of_equal_seeds_are_added_up_and_the_order_does_not_matter() -> None:
    pairs = [[7, 0.1], [3, 0.5], [7, 1e-17], [0, -1], [7, -0.1], [SEEDS - 1, 0.0]]
    assert read(pairs) == read(pairs[::-1]) == ((0, -1.0), (3, 0.5), (7, 1e-17))
    assert read([[3, 0.5], [3, -0.5]]) == read([]) == ()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "a list of"),
        ({"1": 0.5}, "a list of"),
        ([[1, 0.0]] * (MOST + 1), f"add was called {MOST + 1} times, and {MOST} are allowed"),
        ([[1, 0.1], 5], "call 2 of add: there should be a seed and a size"),
        ([[1, 0.1, 2]], "a seed and a size"),
        ([[1.0, 0.1]], "the seed should be a whole number from 0 to 4294967295"),
        ([[True, 0.1]], "the seed should be"),
        ([[-1, 0.1]], "the seed should be"),
        ([[SEEDS, 0.1]], "the seed should be"),
        ([["1", 0.1]], "the seed should be"),
        ([[1, True]], "the size should be a number from -10 to 10"),
        ([[1, "0.1"]], "the size should be"),
        ([[1, None]], "the size should be"),
        ([[1, float("nan")]], "the size should be"),
        ([[1, float("inf")]], "the size should be"),
        ([[1, 10.5]], "the size should be"),
        ([[1, 10**400]], "the size should be"),
    ],
)
def test_what_is_no_genome_is_invalid_and_says_why(value: Any, reason: str) -> None:
    verdict = judge(value, ("train",), 10)
    assert (verdict.value, verdict.status) == (None, "invalid")
    assert reason in verdict.feedback
    assert "\n" not in verdict.feedback


def test_what_the_sandbox_sends_is_read_as_it_was_written() -> None:
    assert read(json.loads("[[4294967295, 1e-300], [2, 1]]")) == ((2, 1.0), (4294967295, 1e-300))


def test_sizes_of_one_seed_may_not_add_up_to_more_than_one_may_be() -> None:
    assert read([[1, LARGEST], [1, -LARGEST]]) == ()
    assert "add up to 20" in read([[1, LARGEST], [1, LARGEST]])
