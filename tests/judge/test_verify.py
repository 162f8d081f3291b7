"""The verifier as the judge: rewards by name, failures apart, everything on the ledger."""

from __future__ import annotations

from typing import Any

import pytest
from tests.toys import Digits, random_policy, role_of, stub

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Group, Problem, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.judge.verify import Verify
from evolvent.tasks.base import Attempt, Score


class Half(Digits):
    """Fails on completions with an x."""

    def score(self, problem: Problem, completion: str) -> Score:
        """See `Digits`."""
        if "x" in completion:
            raise VerifierError("the judge is out")
        return super().score(problem, completion)


class Together(Half):
    """Judges everything at once, and notes how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def score_many(self, attempts: list[Attempt]) -> list[Score | VerifierError]:
        """One by one, failures in their places."""
        self.asked.append(len(attempts))
        return [VerifierError("out") if "x" in a.completion else self.score(a.problem, a.completion) for a in attempts]


def judged(part: Verify, task: Any, completions: list[str], broken: int = 0) -> tuple[list[Trajectory], Role]:
    """Trajectories with these completions; the first so many had an error before they were judged."""
    role = role_of(random_policy(layers=1, width=16), task)
    rows = [stub(i, [1]) for i in range(len(completions))]
    for place, (row, text) in enumerate(zip(rows, completions, strict=True)):
        row.completion, row.error = text, "environment: down" if place < broken else None
    groups = [Group(rows[0].problem, rows[:2]), Group(rows[0].problem, rows[2:])]
    part(groups, Step(0, role))
    return rows, role


def test_the_outcome_is_a_reward_and_shaping_only_where_it_is_asked_for() -> None:
    for weights, score in (({}, 1.0), ({"share": 0.5}, 1.25), ({"other": 2.0}, 1.0)):
        rows, _ = judged(Verify(weights), Digits(), ["12ab", "a", "b"])
        assert rows[0].outcome == 1
        assert rows[0].score == score
        assert rows[0].info["shaping/share"] == 0.5
        assert rows[0].info["answer"] == "12ab"
        assert rows[1].score == 0
        assert rows[0].rewards["outcome"].source == "digits"


def test_failures_are_errors_and_no_rewards() -> None:
    for task in (Half(), Together()):
        rows, role = judged(Verify(), task, ["12", "x1", "34", "y"])
        assert [bool(t.error) for t in rows] == [False, True, False, False]
        assert str(rows[1].error).startswith("verifier: ")
        assert not rows[1].rewards
        assert role.ledger.of("verifier_calls") == 4


def test_what_had_an_error_is_not_judged() -> None:
    task = Together()
    rows, role = judged(Verify(), task, ["12", "34", "56"], broken=2)
    assert task.asked == [1]
    assert not rows[0].rewards
    assert rows[0].error == "environment: down"
    assert rows[2].outcome == 1
    assert role.ledger.of("verifier_calls") == 1
    assert role.ledger.of("verifier_seconds") > 0


def test_a_reward_that_is_no_finite_number_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Far(Digits):
        def score(self, problem: Problem, completion: str) -> Score:
            return Score(1.0, completion, {"share": 10.0 if "x" in completion else 0.5})

    rows, _ = judged(Verify({"share": 1e308}), Far(), ["x", "a", "b"])
    assert rows[0].error == "verifier: the reward is no finite number (outcome + 1e+308 x share)"
    assert not rows[0].rewards
    assert rows[1].score == 1 + 5e307


def test_shaping_that_the_verifier_does_not_give_is_refused_before_the_run() -> None:
    role = role_of(random_policy(layers=1, width=16), Digits())
    Verify({"share": 0.5}).setup(role)
    with pytest.raises(UserError, match=r"unknown shaping `shore`; did you mean share.*it gives share"):
        Verify({"shore": 0.5}).setup(role)
