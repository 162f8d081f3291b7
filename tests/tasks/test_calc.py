"""Calc: the calculator, its episodes, and strict answers."""

from __future__ import annotations

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.base import SPLITS, Reply, split_of
from evolvent.tasks.calc import FAILED, HELP, Calc, Calculator, calculate


@pytest.mark.parametrize(
    ("call", "result"),
    [("[12*7]", "84"), ("[84+5]", "89"), ("[5-84]", "-79"), ("[-3*-4]", "12"), ("[0-0]", "0"), ("[3--4]", "7")],
)
def test_one_operation(call: str, result: str) -> None:
    assert calculate(call) == result


@pytest.mark.parametrize(
    "call", ["[1+2+3]", "[12]", "[]", "12*7", "[12*7", "[12/4]", "[1 + 2]", "[a+b]", "[1+" + "9" * 16 + "]", "[2**9]"]
)
def test_anything_else_fails(call: str) -> None:
    assert calculate(call) == FAILED


@pytest.mark.parametrize("wording", ["compact", "plain"])
@pytest.mark.parametrize("level", ["1x2", "2x3", "3x6"])
def test_gold_is_an_episode_that_the_calculator_agrees_with(level: str, wording: str) -> None:
    task, rng = Calc((level,), wording), np.random.default_rng(0)
    for split in SPLITS:
        for _ in range(10):
            problem = task.draw(split, rng, level)
            assert split_of(problem.key) == split
            assert problem.data["answer"] == eval(problem.data["expression"])
            assert "**" not in problem.data["expression"]
            demo, episode = task.gold(problem), task.episode(problem)
            assert [p.policy for p in demo] == [True, False] * (len(demo) // 2) + [True]
            for call, reply in zip(demo[0:-1:2], demo[1::2], strict=True):
                assert episode.respond(call.text) == Reply(reply.text, note={"failed_calls": 0})
            assert episode.respond(demo[-1].text).done
            assert task.score(problem, demo[-1].text).outcome == 1
            assert sum(p.policy for p in demo) <= task.max_turns
            assert sum(len(p.text) for p in demo) <= task.max_tokens


def test_at_most_one_product_in_a_row() -> None:
    task, rng = Calc(("2x8",)), np.random.default_rng(1)
    expressions = [task.draw("train", rng).data["expression"] for _ in range(50)]
    signs = ["".join(c for c in e if c in "+-*") for e in expressions]
    assert not any("**" in s for s in signs)
    assert any("*" in s for s in signs)


def test_a_turn_ends_the_episode_unless_it_ends_in_a_call() -> None:
    episode = Calculator()
    assert episode.respond("=89") == Reply("", done=True, calls=0)
    assert episode.respond("[1+2] and so on").done
    assert episode.respond("thinking [1+2]") == Reply("3", note={"failed_calls": 0})
    assert episode.respond("[9*9][1+2]").text == "3"
    assert episode.respond("1+2]").done
    wrong = episode.respond("[1+2+3]")
    assert wrong == Reply(FAILED, note={"failed_calls": 1})
    assert not wrong.done
    assert wrong.calls == 1


def test_a_call_in_the_models_own_format() -> None:
    episode = Calculator()
    assert episode.call("calculator", {"expression": "12 * 7"}) == Reply("84", note={"failed_calls": 0})
    for arguments in ({}, {"expression": "12"}, {"expression": None}, {"other": "1+2"}):
        assert episode.call("calculator", arguments) == Reply(HELP, note={"failed_calls": 1})


@pytest.mark.parametrize(
    ("completion", "outcome"), [("=89", 1), ("89", 0), ("=90", 0), ("=089", 0), ("12*7+5=89", 0), ("= 89", 0), ("", 0)]
)
def test_compact_answers(completion: str, outcome: float) -> None:
    task = Calc(("2x2",))
    problem = task.draw("train", np.random.default_rng(0))
    problem.data["answer"] = 89  # type: ignore[index]
    assert task.score(problem, completion).outcome == outcome


def test_only_models_with_words_are_told_of_the_tool() -> None:
    problem = Calc().draw("train", np.random.default_rng(0))
    assert Calc().tools(problem) is None
    tools = Calc(wording="plain").tools(problem)
    assert tools is not None
    assert tools.schemas[0]["function"]["name"] == "calculator"
    assert "[12*7]" in tools.text


@pytest.mark.parametrize("level", ["7x1", "1x9", "0x1", "2", ""])
def test_levels_that_there_are_not(level: str) -> None:
    with pytest.raises(UserError, match="has no level"):
        Calc((level,))
