"""Arithmetic: problems, chains, strict answers, part credit for lines, splits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.tasks.arith import Arith, chain, evaluate, identity, parse_level
from evolvent.tasks.base import SPLITS, distinct, split_of

LEVELS = ("1x1", "2x2", "3x1-mul", "2x3-chain", "2x2-mul-chain")


@pytest.mark.parametrize("wording", ["compact", "plain"])
@pytest.mark.parametrize("level", LEVELS)
def test_problems_are_of_their_level_and_split_and_gold_is_right(level: str, wording: str) -> None:
    task, rng = Arith((level,), wording), np.random.default_rng(0)
    digits, operations, with_products, _ = parse_level(level)
    for split in SPLITS:
        for _ in range(20):
            problem = task.draw(split, rng, level)
            assert split_of(problem.key) == split
            expression = problem.data["expression"]
            numbers = expression.replace("-", "+").replace("*", "+").split("+")
            assert len(numbers) == operations + 1
            assert {len(n) for n in numbers} == {digits}
            assert ("*" in expression) == with_products
            assert problem.data["answer"] == eval(expression)
            text = task.gold(problem)[0].text
            assert task.score(problem, text).outcome == 1
            assert len(text) <= task.max_tokens


@given(
    st.lists(st.integers(0, 99), min_size=2, max_size=7),
    st.lists(st.sampled_from("+-*"), min_size=6, max_size=6),
)
def test_a_chain_reduces_the_expression_as_python_would(numbers: list[int], operators: list[str]) -> None:
    signs = operators[: len(numbers) - 1]
    text = str(numbers[0]) + "".join(f"{o}{n}" for o, n in zip(signs, numbers[1:], strict=True))
    lines = chain(numbers, signs)
    assert len(lines) == len(signs)
    for line in lines:
        left, right = line.rsplit("=", 1)
        assert eval(left) == int(right)
    assert int(lines[-1].rsplit("=", 1)[1]) == eval(text) == evaluate(text)


def test_products_come_first_then_left_to_right() -> None:
    assert chain([12, 34, 5], ["+", "-"]) == ["12+34=46", "46-5=41"]
    assert chain([2, 3, 4], ["-", "*"]) == ["3*4=12", "2-12=-10"]
    assert chain([2, 3, 4, 5], ["*", "+", "*"]) == ["2*3=6", "4*5=20", "6+20=26"]


def test_the_order_of_terms_does_not_make_another_problem() -> None:
    assert identity([1, 2, 3], ["+", "*"]) == identity([3, 2, 1], ["*", "+"])
    assert identity([5, 2, 1], ["-", "+"]) == identity([5, 1, 2], ["+", "-"])
    assert identity([5, 2], ["-"]) != identity([2, 5], ["-"])
    assert identity([5, 2], ["+"]) != identity([5, 2], ["*"])
    task = Arith()
    assert task.problem([1, 2], ["+"]).key == task.problem([2, 1], ["+"]).key


def chained() -> tuple[Arith, object]:
    """10+20-5 with a chain."""
    task = Arith(("2x2-chain",))
    return task, task.problem([10, 20, 15], ["+", "-"], "2x2-chain")


@pytest.mark.parametrize(
    ("completion", "outcome", "lines"),
    [
        ("10+20=30;30-15=15", 1, 1),
        ("10+20=30\n30-15=15", 1, 1),
        ("10+20=31;31-15=15", 1, 0),  # the right end of wrong lines: strict on the number, no part credit
        ("10+20=30;30-15=16", 0, 0.5),
        ("30-15=15;10+20=30", 0, 0),  # lines count at their place
        ("10+20=30;30-15=15;15", 0, 1),  # a chain ends in a line
        ("15", 0, 0),
        ("", 0, 0),
    ],
)
def test_a_chain_is_judged_by_its_end_and_its_lines_are_part_credit(
    completion: str, outcome: float, lines: float
) -> None:
    task, problem = chained()
    score = task.score(problem, completion)  # type: ignore[arg-type]
    assert (score.outcome, score.shaping) == (outcome, {"lines": lines})


@pytest.mark.parametrize("completion", ["15 ", "\n15"])
def test_space_around_the_number_is_no_mistake(completion: str) -> None:
    task = Arith()
    assert task.score(task.problem([10, 5], ["+"]), completion).outcome == 1


@pytest.mark.parametrize("completion", ["15.", "=15", "015", "15 or 16", "10+5", "15=15", "14", "x"])
def test_only_the_number_is_right(completion: str) -> None:
    task = Arith()
    score = task.score(task.problem([10, 5], ["+"]), completion)
    assert (score.outcome, score.shaping) == (0, {})


def test_wordings() -> None:
    compact, plain = Arith(("2x1-chain",)), Arith(("2x1-chain",), "plain")
    assert compact.problem([10, 5], ["+"], "2x1-chain").prompt[0].content == "10+5:"
    assert Arith().problem([10, 5], ["+"]).prompt[0].content == "10+5="
    text = plain.problem([10, 5], ["+"], "2x1-chain").prompt[0].content
    assert "Compute 10+5." in text
    assert "<answer>" in text
    assert plain.score(plain.problem([10, 5], ["+"], "2x1-chain"), "10+5=15\n<answer>15</answer>").outcome == 1


def test_reading_a_problem_that_a_model_wrote() -> None:
    task = Arith(("2x1", "2x2-mul"))
    found = task.read("12*34+56", "2x2-mul", "a proposer")
    assert found is not None
    assert (found.data["answer"], found.origin) == (12 * 34 + 56, "a proposer")
    assert found.key == task.problem([56, 12, 34], ["+", "*"]).key
    for bad in ("12*34+56+1", "12+34+56", "1*34+56", "02*34+56", "12*34+56=", "12 * 34+56", "", "12*34-+56"):
        assert task.read(bad, "2x2-mul") is None, bad


@pytest.mark.parametrize("level", ["2", "0x1", "13x1", "1x13", "2x2-chain-mul", "", "axb"])
def test_levels_that_there_are_not(level: str) -> None:
    with pytest.raises(UserError, match="has no level"):
        Arith((level,))


def test_a_level_with_few_problems_gives_them_all_and_ends() -> None:
    found = distinct(Arith(("1x1",)), "test", 1000)
    assert 10 < len(found) < 160
    assert len({p.key for p in found}) == len(found)
