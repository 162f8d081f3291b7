"""What the blackboard says of a history."""

from __future__ import annotations

import pytest

from evolvent.search.blackboard import failed_patterns, label_of, pattern_of, trials_of, yields
from evolvent.search.candidate import Candidate
from evolvent.tasks.evaluation import Evaluation, invalid

SEED = "a = 1\nb = 2\n"


def made(uid: int, text: str, evaluation: Evaluation, agent: str = "", parent: int = 0) -> Candidate:
    notes = {"agent": agent, "scope": agent} if agent else {}
    return Candidate(uid, {"program": text}, evaluation, (parent,) if uid else (), notes=notes)


@pytest.mark.parametrize(
    ("evaluation", "label"),
    [
        (Evaluation(0.5), ""),
        (invalid("ZeroDivisionError", "raised"), "crash"),
        (invalid("it took more than 0.5 s of the processor", "timeout"), "over budget"),
        (invalid("ValueError: the model has 10001 parameters, at most 10000 are allowed", "raised"), "size"),
        (invalid("the weights must be at most 10000 finite numbers"), "size"),
        (invalid("accuracy is 0.5, which is less than 0.9", "gate"), "gate"),
        (invalid("the edit goes beyond f", "scope"), "scope"),
        (invalid("predict must return 400 whole numbers"), "invalid"),
    ],
)
def test_failures_have_labels(evaluation: Evaluation, label: str) -> None:
    assert label_of(made(1, SEED, evaluation)) == label


def test_patterns_yields_and_gains() -> None:
    crash = invalid("oops", "raised")
    history = [
        made(0, SEED, Evaluation(0.5)),
        made(1, "a = 1\nb = 3\n", Evaluation(0.6), "b"),
        made(2, "a = 1 / 0\nb = 2\n", crash, "a"),
        made(3, "a = 1 / 0\nb = 3\n", crash, "a", parent=1),
        made(4, "a = 1\nb = 4\n", Evaluation(0.4), "b", parent=1),
    ]
    trials = trials_of(history)
    assert [t.improved for t in trials] == [True, False, False, False]
    assert trials[3].gain == pytest.approx(-0.2)
    assert yields(trials, ["a", "b", "c"]) == [1 / 4, 2 / 4, 1 / 2]
    assert failed_patterns(trials) == {("a", frozenset({"+ a = 1 / 0"})): "crash"}
    assert trials[1].pattern == trials[2].pattern == pattern_of("a", SEED, "b = 2\na = 1 / 0\n")
    assert pattern_of("a", SEED, "a = 1\n") == ("a", frozenset({"- b = 2"}))
    assert trials[0].edit == "- b = 2\n+ b = 3"
