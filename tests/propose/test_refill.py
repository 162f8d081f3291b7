"""Dynamic sampling: how often it asks again, and for how many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Request, Trajectory
from evolvent.core.step import Step
from evolvent.propose.refill import Refill

PROBLEM = Problem("key", (), {})


@dataclass
class Source:
    """`problems` requests a round; every round has the same problems, or its own."""

    problems: int = 4
    rounds: int = 1
    same: bool = False

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        for number in range(self.rounds):
            keys = [f"{i}" if self.same else f"{i}/{number}/{s.round}" for i in range(self.problems)]
            yield [Request(Problem(key, (), {}), 2) for key in keys]


def judged(informative: bool) -> Group:
    """A group with one right and one wrong answer, or with two right ones."""
    rows = [Trajectory(i, PROBLEM, np.zeros(1, np.int32), np.ones(1, bool), np.zeros(1, np.float32)) for i in (0, 1)]
    rows[0].reward("outcome", 1.0)
    rows[1].reward("outcome", 0.0 if informative else 1.0)
    return Group(PROBLEM, rows)


def play(part: Refill, informative: list[bool]) -> tuple[list[int], Step]:
    """Sizes of the rounds, when groups turn out as told one after the other."""
    s = Step(0, SimpleNamespace(seed=0, name=""))  # type: ignore[arg-type]
    turns = iter(informative)
    sizes = []
    for requests in part(s):
        sizes.append(len(requests))
        s.fresh = [judged(next(turns)) for _ in requests]
        s.groups += s.fresh
        s.round += 1
    return sizes, s


def test_it_asks_for_what_is_missing_until_the_batch_is_full() -> None:
    sizes, s = play(Refill(Source()), [True, False, False, True, False, True, True])
    assert sizes == [4, 2, 1]
    assert s.metrics["asked"] == 7 / 4
    assert len(s.groups) == 7


def test_a_full_batch_needs_one_pass() -> None:
    sizes, s = play(Refill(Source()), [True] * 4)
    assert sizes == [4]
    assert s.metrics["asked"] == 1


def test_it_gives_up_at_so_many_times_the_problems() -> None:
    assert play(Refill(Source(), most=3), [False] * 99)[0] == [4, 4, 4]
    assert play(Refill(Source(), most=2), [True, True, False, False] + [False] * 99)[0] == [4, 2, 2]


def test_at_most_once_is_no_refill() -> None:
    assert play(Refill(Source(), most=1), [False] * 9)[0] == [4]


def test_an_inner_part_of_several_rounds_is_run_through() -> None:
    """New problems in the second round count; asking again for the same ones, as hints do, does not."""
    assert play(Refill(Source(2, rounds=2), most=2), [False] * 9)[0] == [2, 2, 2, 2]
    assert play(Refill(Source(2, rounds=2, same=True), most=2), [True, False, True, False])[0] == [2, 2]


def test_less_than_once_is_refused() -> None:
    with pytest.raises(UserError, match="most"):
        Refill(Source(), most=0).check(None)
