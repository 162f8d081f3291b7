"""Rules that make the next strategy of the attempts before it, on pools made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from evolvent.search.attempts.strategy import (
    ENTRIES,
    Strategy,
    Toolbox,
    base,
    distilled,
    recombination,
    refinement,
    revision,
)
from evolvent.search.attempts.summary import Made, Summary, by_rule, difference, with_words

BOX = Toolbox(tuple("abcdefgh"), each=2)
SOURCE = "def f(x):\n    y = x\n    return y\n"


def tried_by(
    operators: str, tried: tuple[tuple[str, str, int, int], ...] = (), passed: int = 0, offered: int = 9
) -> Summary:
    strategy = {"operators": tuple(operators), "entry": "top", "order": "in_turn"}
    patch = SOURCE.replace("return y", "return 2") if passed else SOURCE
    made = Made(patch, 0.25, strategy, tried, offered)
    return by_rule(made, SOURCE, [True] * passed + [False] * (4 - passed), 0, "base", "")


def rngs() -> list[np.random.Generator]:
    return [np.random.default_rng(i) for i in range(40)]


def made(rule: object, *pool: Summary) -> list[Strategy]:
    found = [rule(pool, BOX, rng) for rng in rngs()]  # type: ignore[operator]
    assert all(found)
    return found


def test_revision_is_orthogonal_to_the_latest_failure() -> None:
    found = made(revision, tried_by("ab"), tried_by("cd"), tried_by("ef", passed=4))
    assert {o for s in found for o in s.operators} == set("abefgh")  # not those of the one that failed last
    assert {s.entry for s in found} == {*ENTRIES} - {"top"}
    assert {s.order for s in found} == {"weighted", "rare_first"}
    assert revision([tried_by("ab", passed=4)], BOX, rngs()[0]) is None
    assert base([tried_by("ab")], BOX, rngs()[0]) is None


def test_recombination_takes_the_two_latest() -> None:
    old = tried_by("gh", (("0", "g", 7, 3),))
    a = tried_by("ab", (("1", "a", 2, 1), ("2", "b", 3, 0)))
    b = tried_by("cd", (("3", "c", 4, 0), ("2", "c", 5, 0)), passed=1)
    assert recombination([old], BOX, rngs()[0]) is None
    found = made(recombination, old, a, b)
    assert {s.operators[0] for s in found} == {"a"}  # it helped
    assert {s.operators[1] for s in found} == set("efgh")  # neither has tried these
    assert {(s.focus, s.avoid, s.entry, s.order) for s in found} == {((("a", 2),), ("1", "2", "3"), "top", "in_turn")}


def test_refinement_goes_on_with_the_most_promising() -> None:
    best = tried_by("ab", (("1", "a", 2, 3), ("2", "b", 3, 0)), passed=3)
    other = tried_by("cd", (("9", "c", 1, 0),))
    found = made(refinement, best, other)
    assert {s.operators for s in found} == {("a", "b")}
    assert {(s.focus, s.avoid, s.known) for s in found} == {((("a", 2),), ("1", "2", "9"), ())}
    done = tried_by("ab", (("1", "a", 2, 3), ("2", "b", 3, 0)), passed=3, offered=2)
    found = made(refinement, done, other)  # nothing is left of b, and a has shown that it helps
    assert {s.operators[0] for s in found} == {"a"}
    assert {s.operators[1] for s in found} == set("efgh")
    whole = tried_by("ab", (("1", "a", 2, 4),), passed=4)
    assert {s.known for s in made(refinement, whole, other)} == {(whole.patch,)}


def test_distilled_has_read_everybody() -> None:
    pool = tried_by("ab", (("1", "a", 2, 1),), passed=1), tried_by("cd", (("3", "c", 4, 4),), passed=4), tried_by("ef")
    found = made(distilled, *pool)
    assert {s.known for s in found} == {(pool[1].patch,)}  # of equal patches one, and none of who has none
    assert {s.operators for s in found} == {("c", "a")}
    assert {s.avoid for s in found} == {("1",)}
    assert distilled([], BOX, rngs()[0]) is None


def test_a_habit_makes_attempts_alike() -> None:
    names = [o for rng in rngs() for o in Toolbox(tuple("abcdefgh"), 1, 3.0).base(rng).operators]
    weights = np.arange(1, 9) ** -3.0
    assert names.count("a") / 40 == pytest.approx(weights[0] / weights.sum(), abs=0.15)
    assert len({o for rng in rngs() for o in Toolbox(tuple("abcdefgh"), 1, 0.0).base(rng).operators}) == 8


def test_differences_of_programs() -> None:
    after = SOURCE.replace("y = x", "y = -x").replace("return y", "return y\n    pass")
    assert difference(SOURCE, after) == (["    y = x"], ["    y = -x", "    pass"], [2, 4])
    assert difference(SOURCE, SOURCE + "\n") == ([], [], [])


def test_a_summary_has_what_was_measured_whatever_a_model_says() -> None:
    it = tried_by("ab", passed=3)
    assert (it.passed, it.shown, it.edits, it.places, it.solved) == (3, 4, 1, "line 3", False)
    assert it.changes == "-     return y\n+     return 2"
    assert it.status == "passes 3 of 4 visible tests; the faulty program passes 0"
    answer = 'Well: {"strategy": "look", "tools": ["reading"], "passed": 4, "status": "all is right", "failure": ""}'
    said = with_words(it, answer)
    assert (said.strategy, said.tools, said.passed, said.status, said.failure) == (
        "look",
        ("reading",),
        3,
        it.status,
        it.failure,
    )
    assert with_words(it, "no object").strategy == "no object"
    assert with_words(it, "{broken}").strategy == "{broken}"
