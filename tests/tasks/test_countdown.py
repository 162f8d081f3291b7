"""Countdown: every solution is right, nothing else is, and the simplest is found."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.core.records import Problem, Trajectory
from evolvent.tasks.base import SPLITS, split_of
from evolvent.tasks.countdown import TARGETS, Countdown, evaluate, reached, solutions, solves, steps, targets

few = st.lists(st.integers(1, 20), min_size=2, max_size=3)


@pytest.mark.parametrize("wording", ["compact", "plain"])
@pytest.mark.parametrize("level", ["2x20", "3x12", "3x50", "4x12"])
def test_problems_are_of_their_level_and_split_and_gold_is_right(level: str, wording: str) -> None:
    task, rng = Countdown((level,), wording), np.random.default_rng(0)
    count, largest = map(int, level.split("x"))
    for split in SPLITS:
        for _ in range(5):
            problem = task.draw(split, rng, level)
            assert split_of(problem.key) == split
            numbers, target = problem.data["numbers"], problem.data["target"]
            assert len(numbers) == count
            assert set(numbers) <= set(range(1, largest + 1))
            assert target in TARGETS
            gold = task.gold(problem)
            assert gold is not None
            assert task.score(problem, gold[0].text).outcome == 1
            assert len(gold[0].text) <= task.max_tokens


def reachable(numbers: list[int]) -> set[int]:
    """What three numbers can make, by trying all; intermediate results must be positive integers."""
    signs = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: Fraction(a) / b,
    }

    def fine(x: Fraction | int) -> bool:
        return x > 0 and Fraction(x).denominator == 1

    found = set()
    for a, b, c in permutations(numbers):
        for f, g in product(signs.values(), repeat=2):
            inner = f(a, b)
            if fine(inner):
                found |= {int(x) for x in (g(inner, c), g(c, inner)) if fine(x)}
    return found & set(TARGETS)


@given(st.lists(st.integers(1, 20), min_size=3, max_size=3))
def test_all_that_can_be_reached_is_found(numbers: list[int]) -> None:
    assert set(solutions(tuple(sorted(numbers)))) == reachable(numbers)


@given(st.lists(st.integers(1, 99), min_size=2, max_size=4))
def test_targets_are_those_with_a_solution(numbers: list[int]) -> None:
    ordered = tuple(sorted(numbers))
    assert targets(ordered) == list(solutions(ordered))


@given(few)
def test_every_solution_that_is_found_solves(numbers: list[int]) -> None:
    for target, text in solutions(tuple(sorted(numbers))).items():
        assert solves(text, numbers, target), text
        lines = steps(text)
        assert lines is not None
        assert lines[-1].endswith(f"={target}")
        assert all(int(line.rsplit("=", 1)[1]) > 0 for line in lines)


@pytest.mark.parametrize(
    ("numbers", "target", "text"),
    [
        ((3, 5, 7), 22, "3*5+7"),
        ((3, 5, 7), 15, "3+5+7"),
        ((2, 3, 4), 20, "(2+3)*4"),
        ((1, 2, 3), 9, "(1+2)*3"),
        ((2, 4, 8), 1, "2*4/8"),
    ],
)
def test_the_simplest_solution(numbers: tuple[int, ...], target: int, text: str) -> None:
    assert solutions(numbers)[target] == text


@pytest.mark.parametrize("text", ["3*5+7", "7+5*3", "7+(3*5)", " 3 * 5 + 7 ", "(3*5)+7"])
def test_any_right_expression_counts(text: str) -> None:
    task = Countdown(("3x12",))
    assert task.score(task.problem([7, 3, 5], 22), text).outcome == 1


@pytest.mark.parametrize(
    "text",
    [
        "22",
        "3*5",
        "3*5+7+0",
        "3*5+7*1",
        "3+5+7",
        "3*5+7=22",
        "3*5+7,",
        "35-7",
        "3*5+07",
        "--3*5+7",
        "3**5+7",
        "3//1",
        "+3*5+7",
        "(3*5+7",
        "3 5*7",
        "",
        "a*b",
        "__import__('os')",
        "3*5+7.0",
        "(" * 119 + "3",
        "7/0",
    ],
)
def test_nothing_else_does(text: str) -> None:
    task = Countdown(("3x12",))
    assert task.score(task.problem([7, 3, 5], 22), text).outcome == 0


def test_fractions_on_the_way_are_exact() -> None:
    assert evaluate("8/3*3") == (Fraction(8), [8, 3, 3])
    assert solves("8/(3-8/3)", [3, 3, 8, 8], 24)
    assert evaluate("1/3+1/3+1/3") == (Fraction(1), [1, 3, 1, 3, 1, 3])
    assert evaluate("1/(2-2)") is None


def test_the_steps_of_an_expression() -> None:
    assert steps("3*5+7") == ["3*5=15", "15+7=22"]
    assert steps("(1+2)*(3+4)") == ["1+2=3", "3+4=7", "3*7=21"]
    assert steps("7/2*2") == ["7/2=?"]
    assert steps("2-5") == ["2-5=-3"]
    assert steps("5") == []
    for bad in ("3*", "3**2", "x", "4/(2-2)"):
        assert steps(bad) is None, bad


def test_the_order_of_the_numbers_does_not_make_another_problem() -> None:
    task = Countdown()
    assert task.problem([3, 5, 7], 22).key == task.problem([7, 5, 3], 22).key
    assert task.problem([3, 5, 7], 22).key != task.problem([3, 5, 7], 15).key
    assert task.problem([3, 5, 7], 22).prompt[0].content == "3,5,7>22:"


def test_a_problem_without_a_solution_has_no_gold() -> None:
    task = Countdown()
    assert task.gold(task.problem([1, 1, 1], 99)) is None


def test_the_plain_wording_wants_a_tag() -> None:
    task = Countdown(("3x12",), "plain")
    problem = task.problem([3, 5, 7], 22)
    assert "3, 5, 7" in problem.prompt[0].content
    assert task.score(problem, "Let me think.\n3*5=15\n<answer>3*5+7</answer>").outcome == 1
    assert task.score(problem, "<answer>3*5+7</answer><answer>3*5</answer>").outcome == 0


@pytest.mark.parametrize("level", ["1x9", "6x9", "3x100", "3x1", "3", ""])
def test_levels_that_there_are_not(level: str) -> None:
    with pytest.raises(UserError, match="has no level"):
        Countdown((level,))


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("3*5+7", "22"),
        ("7+5*3", "22"),
        ("3+5+7", "15"),
        ("7/5/3", "7/15"),
        ("3*5", None),
        ("3*5+7+7", None),
        (None, None),
    ],
)
def test_a_vote_is_for_the_value_of_an_expression_of_the_given_numbers(answer: str | None, wanted: str | None) -> None:
    problem = Problem("key", (), {"numbers": [3, 5, 7], "target": 99})
    empty = np.zeros(0, np.int32)
    row = Trajectory(0, problem, empty, empty.astype(bool), empty.astype(np.float32), info={"answer": answer})
    assert reached(row) == wanted
