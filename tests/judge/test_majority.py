"""Votes: winners, ties, missing answers, failures; and that no label has a say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.toys import Digits, random_policy, role_of

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.judge.majority import Majority
from evolvent.judge.novelty import Novelty
from evolvent.tasks.base import Score


class Spelled(Digits):
    """The answer is the completion's first character; `x` is none, `!` breaks the verifier; `a` is right."""

    def score(self, problem: Problem, completion: str) -> Score:
        """See the class."""
        if completion[:1] == "!":
            raise VerifierError("down")
        answer = None if completion[:1] == "x" else completion[:1]
        return Score(float(answer == "a"), answer)


def vote(text: str, part: Any = None) -> tuple[Group, Step]:
    """One group, one character an answer, after judging."""
    problem = Problem("key", (), {})
    zeros = np.zeros(3, np.float32)
    role = role_of(random_policy(1, 16), Spelled())
    rows = []
    for i, c in enumerate(text):
        tokens = np.array([1, *role.policy.format.encode(c + c)], np.int32)
        rows.append(Trajectory(i, problem, tokens, np.array([False, True, True]), zeros, completion=c + c))
    group = Group(problem, rows)
    s = Step(0, role)
    (part or Majority())([group], s)
    return group, s


def rewards(group: Group, name: str = "majority") -> list[float | None]:
    """That reward of every trajectory; None where there is none."""
    return [t.rewards[name].value if name in t.rewards else None for t in group.trajectories]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("bab", [1, 0, 1]),
        ("ba", [1, 0]),  # a tie: who came first
        ("abba", [1, 0, 0, 1]),
        ("xxb", [0, 0, 1]),  # no answer is no vote
        ("xx", [0, 0]),
        ("a!a", [1, None, 1]),
        ("!", [None]),
    ],
)
def test_the_winner_is_rewarded(text: str, wanted: list[float | None]) -> None:
    assert rewards(vote(text)[0]) == wanted


def test_failures_are_errors_and_no_votes() -> None:
    group, s = vote("!!b")
    assert [t.error for t in group.trajectories] == ["verifier: down", "verifier: down", None]
    assert s.metrics["vote/share"] == 1.0


def test_verdicts_go_to_metrics_only() -> None:
    group, s = vote("aab")
    assert s.metrics["outcome"] == pytest.approx(2 / 3)
    assert s.metrics["vote/right"] == 1.0
    assert s.metrics["vote/share"] == pytest.approx(2 / 3)
    assert [t.outcome for t in group.trajectories] == [0, 0, 0]  # there is no such reward
    assert vote("bba")[1].metrics["vote/right"] == 0.0


BANDS = Majority(agree=0.5, differ=-1.0)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("aab", [0.75, 0.75, -0.5]),  # equal ones share the middle of their band, one alone has its top
        ("abc", [1.0, -0.75, -0.75]),  # a tie; b and c are equally far from everyone
        ("aax", [0.75, 0.75, -1.0]),  # without an answer: the bottom
        ("ax", [1.0, -1.0]),
        ("xx", [-1.0, -1.0]),
    ],
)
def test_the_bands_of_evol_rl(text: str, wanted: list[float]) -> None:
    group, _ = vote(text, Novelty(BANDS))
    assert [t.score for t in group.trajectories] == pytest.approx(wanted)


def test_the_unusual_way_to_the_same_answer_is_worth_more() -> None:
    group, s = vote("aaab", Novelty(BANDS))
    for t, extra in zip(group.trajectories, ("1", "1", "7", "1"), strict=True):
        assert t.info["accepted"] == (t.uid < 3)
        t.tokens = np.array([1, *s.role.policy.format.encode(t.completion[0] + extra)], np.int32)
        t.rewards.clear()
    Novelty(BANDS)([group], s)
    assert [t.score for t in group.trajectories] == pytest.approx([0.5, 0.5, 1.0, -0.5])


def test_agreement_must_pay() -> None:
    with pytest.raises(UserError, match=r"agree must be above"):
        Majority(agree=0.0).check(None)


def upper(t: Trajectory) -> str | None:
    """Whatever the case; `b` and `c` are written alike, `d` is void."""
    return {"b": "B", "c": "B", "d": None}.get(t.info["answer"], t.info["answer"])


def test_votes_may_be_cast_for_what_an_answer_comes_to() -> None:
    group, _ = vote("abcaddd", Majority(ballot=upper))
    assert rewards(group) == [1, 0, 0, 1, 0, 0, 0]
    group, _ = vote("abcaddb", Majority(ballot=upper))
    assert rewards(group) == [0, 1, 1, 0, 0, 0, 1]
    assert group.info["share"] == pytest.approx(3 / 7)
