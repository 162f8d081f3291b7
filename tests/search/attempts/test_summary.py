"""What a model says of an attempt, read into fields."""

from __future__ import annotations

import pytest

from evolvent.search.attempts.summary import Summary, with_words

PLAIN = Summary(patch="def f(): pass\n", strategy="as before")


def test_fields_that_a_model_names() -> None:
    found = with_words(PLAIN, 'So: {"strategy": "swap", "tools": ["flip"], "passed": 9}')
    assert (found.strategy, found.tools, found.passed) == ("swap", ("flip",), PLAIN.passed)


@pytest.mark.parametrize("answer", ["try the loop", "{oops}", '{"strategy": ' + "[" * 2000 + "}", "{" * 2000 + "}"])
def test_an_answer_without_an_object_is_the_strategy(answer: str) -> None:
    assert with_words(PLAIN, answer).strategy == answer
