"""Evaluations: figures of groups that were written by hand, and of a real model."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.toys import Digits, random_policy, stub

from evolvent.bench import evaluate as page
from evolvent.bench.evaluate import Subject, best_temperature, evaluate, summarise, vote
from evolvent.bench.statistics import t_interval, wilson
from evolvent.core.errors import VerifierError
from evolvent.core.ledger import Ledger
from evolvent.core.records import Group, Problem
from evolvent.engine.local import LocalEngine
from evolvent.tasks.base import Score, distinct


def group(*answers: str | None, right: str = "7", category: str = "easy", failed: int = 0) -> Group:
    """Judged trajectories with these answers; the last so many have failed."""
    problem = Problem("key", (), {}, category)
    rows = []
    for place, answer in enumerate(answers):
        row = stub(place, [1, 2])
        row.mask[:] = True
        row.info["answer"] = answer
        if place < len(answers) - failed:
            row.reward("outcome", float(answer == right))
        else:
            row.error = "verifier: out"
        rows.append(row)
    return Group(problem, rows)


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        (["7", "8", "7"], 1),
        (["8", "7", "8"], 0),
        (["7", "8"], 1),  # a tie goes to what came first
        (["8", "7"], 0),
        ([None, None, "7"], 1),  # no answer is no vote
        ([None, None], 0),
    ],
)
def test_the_majoritys_answer(answers: list[str | None], outcome: float) -> None:
    assert vote(group(*answers)) == outcome


def test_figures_by_hand() -> None:
    greedy = [group("7"), group("8"), group("7", category="hard")]
    sampled = [group("7", "7", "8", "8"), group("8", "8", "8", "7"), group("9", "9", "9", "9", category="hard")]
    found = summarise(greedy, sampled, 4, 1.0)
    assert found.greedy == wilson(2, 3)
    assert found.sampled == t_interval([0.5, 0.25, 0.0])
    assert found.pass_at_k == wilson(2, 3)
    assert found.majority_at_k == wilson(1, 3)
    assert found.by_category == {"easy": (0.5, 0.375), "hard": (1.0, 0.0)}
    assert found.distinct_answers == pytest.approx((2 + 2 + 1) / 3)
    assert found.length == 2
    assert found.errors == 0


def test_failures_are_left_out_and_counted() -> None:
    greedy = [group("7"), group("7", failed=1)]
    sampled = [group("7", "8", "7", failed=1), group("8", "8", failed=2)]
    found = summarise(greedy, sampled, 3, 1.0)
    assert found.greedy == wilson(1, 1)
    assert found.sampled.mean == 0.5
    assert found.errors == 4
    assert (found.pass_at_k.low, found.pass_at_k.high) == (0, 1)  # no problem has all its samples


def test_what_has_nothing_behind_it_is_no_number() -> None:
    found = summarise([group("7", failed=1)], [group("7", "7", failed=2)], 2, 1.0)
    for figure in (found.greedy, found.sampled, found.pass_at_k, found.majority_at_k):
        assert math.isnan(figure.mean)
        assert (figure.low, figure.high) == (0, 1)
    assert math.isnan(found.distinct_answers)
    assert found.errors == 3


def subject(ledger: Ledger, task: Digits | None = None) -> Subject:
    """A random model on the toy task, where it is right now and then."""
    policy = random_policy(spread=1.0)
    return Subject(policy, LocalEngine(policy, ledger), task or Digits(), ledger)


def test_a_real_model_on_the_account_of_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger()
    one = subject(ledger)
    problems = distinct(one.task, "test", 12)
    found = evaluate(one, problems, k=8)
    assert ledger.of("sampled") == 0
    assert ledger.of("verifier_calls", "evidence") == 12 + 12 * 8
    assert found.sampled.mean <= found.pass_at_k.mean
    assert found.problems == 12
    assert evaluate(one, problems, k=8) == found
    assert evaluate(one, problems, k=8, label="again") != found
    monkeypatch.setattr(page, "CHUNK", 24)  # three problems at a time: other draws, the same greedy answers
    assert evaluate(one, problems, k=8).greedy == found.greedy


def test_the_best_temperature_is_one_of_those_tried() -> None:
    one = subject(Ledger())
    problems = distinct(one.task, "gate", 12)
    best = best_temperature(one, problems)
    assert best in (0.0, *page.TEMPERATURES)
    means = {}
    for temperature in (0.0, *page.TEMPERATURES):
        rolled = one.roll(problems, 1 if temperature == 0 else 4, temperature, "temperature")
        means[temperature] = np.mean([t.outcome for g in rolled for t in g.trajectories])
    assert means[best] == max(means.values())


def test_a_temperature_at_which_everything_failed_does_not_compete() -> None:
    class Shy(Digits):
        """Never right, and out of order for greedy answers, which are the first."""

        asked = 0

        def score(self, problem: Problem, completion: str) -> Score:
            self.asked += 1
            if self.asked <= 3:
                raise VerifierError("out")
            return Score(0.0, completion)

    one = subject(Ledger(), Shy())
    assert best_temperature(one, distinct(one.task, "gate", 3), samples=2) == page.TEMPERATURES[0]


def test_with_a_verifier_that_is_out_there_is_still_a_temperature() -> None:
    class Out(Digits):
        def score(self, problem: Problem, completion: str) -> Score:
            raise VerifierError("out")

    one = subject(Ledger(), Out())
    assert best_temperature(one, distinct(one.task, "gate", 3), samples=2) == 0.0
