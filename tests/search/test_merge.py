"""Merging: which segment comes from whom, which pairs are merged, on what a merged program is tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from evolvent.search.candidate import PROGRAM, Candidate
from evolvent.search.merge import ancestors, contested, merge, merged
from evolvent.tasks.evaluation import Evaluation


def text(*values: int) -> str:
    """A program of as many segments as numbers."""
    return "\n".join(f"# EVOLVE-BLOCK-START\nx{i} = {v}\n# EVOLVE-BLOCK-END" for i, v in enumerate(values)) + "\n"


def made(uid: int, source: str, value: float = 0.0, parents: Sequence[int] = (), **metrics: float) -> Candidate:
    return Candidate(uid, {PROGRAM: source}, Evaluation(value, metrics), tuple(parents))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_each_segment_comes_from_the_one_who_changed_it() -> None:
    one, other = made(1, text(5, 0, 0), 1.0, [0]), made(2, text(0, 6, 0), 2.0, [0])
    assert merged(one, other, made(0, text(0, 0, 0)), rng()) == text(5, 6, 0)
    assert merged(other, one, made(0, text(0, 0, 0)), rng()) == text(5, 6, 0)


@pytest.mark.parametrize(("first", "second", "chosen"), [(1.0, 2.0, 8), (2.0, 1.0, 7)])
def test_what_both_have_changed_comes_from_the_better_one(first: float, second: float, chosen: int) -> None:
    one, other = made(1, text(7, 0), first, [0]), made(2, text(8, 6), second, [0])
    assert merged(one, other, made(0, text(0, 0)), rng()) == text(chosen, 6)


def test_what_both_have_changed_is_drawn_between_equals() -> None:
    one, other = made(1, text(7, 0), 1.0, [0]), made(2, text(8, 6), 1.0, [0])
    found = {merged(one, other, made(0, text(0, 0)), rng(seed)) for seed in range(20)}
    assert found == {text(7, 6), text(8, 6)}


def test_there_is_nothing_to_merge_where_both_changed_the_same_segments_or_have_not_as_many() -> None:
    seed = made(0, text(0, 0))
    assert merged(made(1, text(7, 0)), made(2, text(8, 0)), seed, rng()) is None
    assert merged(made(1, text(7, 0)), made(2, text(8)), seed, rng()) is None


def test_ancestors_are_those_of_all_parents() -> None:
    history = [made(0, ""), made(1, "", 0, [0]), made(2, "", 0, [0]), made(3, "", 0, [1, 2]), made(4, "", 0, [3])]
    assert ancestors(history[4], history) == {0, 1, 2, 3}
    assert ancestors(history[0], history) == set()


def test_relatives_in_one_line_are_not_merged() -> None:
    history = [made(0, text(0, 0)), made(1, text(1, 0), 1.0, [0]), made(2, text(1, 2), 2.0, [1])]
    assert merge(history[1:], history, set(), rng()) is None


def test_the_ancestor_is_the_best_that_is_no_better_than_either() -> None:
    history = [
        made(0, text(0, 0, 0), 0.0),
        made(1, text(0, 0, 9), 0.5, [0]),
        made(2, text(5, 0, 9), 1.0, [1]),
        made(3, text(0, 6, 9), 2.0, [1]),
    ]
    found = merge(history[2:], history, set(), rng())
    assert found is not None
    assert found.ancestor.uid == 1
    assert found.text == text(5, 6, 9)
    history[1] = made(1, text(0, 0, 9), 1.5, [0])  # better than number 2
    found = merge(history[2:], history, set(), rng())
    assert found is not None
    assert found.ancestor.uid == 0


def test_nothing_is_merged_twice_or_made_again() -> None:
    history = [made(0, text(0, 0)), made(1, text(5, 0), 1.0, [0]), made(2, text(0, 6), 2.0, [0])]
    found = merge(history[1:], history, set(), rng())
    assert found is not None
    assert found.key == (1, 2, 0)
    assert merge(history[1:], history, {found.key}, rng()) is None
    assert merge(history[1:], [*history, made(3, found.text, 0.0, [2])], set(), rng()) is None
    assert merge(history[1:2], history, set(), rng()) is None


def test_a_merged_program_is_tried_where_its_parents_differ() -> None:
    one = made(
        1, "", 0.0, (), **{f"instance/{name}": v for name, v in zip("abcdefgh", (1, 1, 1, 0, 0, 0, 0, 0), strict=True)}
    )
    other = made(
        2, "", 0.0, (), **{f"instance/{name}": v for name, v in zip("abcdefgh", (0, 0, 0, 1, 0, 0, 0, 0), strict=True)}
    )
    for seed in range(10):
        names = contested(one, other, "instance/", 5, rng(seed))
        assert len(set(names)) == 5
        assert len(set(names) & set("abc")) == 2
        assert "d" in names
        assert len(set(names) & set("efgh")) == 2
    assert sorted(contested(one, other, "instance/", 99, rng())) == list("abcdefgh")
