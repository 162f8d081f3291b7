"""One final answer, or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.tasks.extract import final_answer, integer


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("42", "42"),
        ("  42 \n\n", "42"),
        ("12+34=46\n46-5=41", "46-5=41"),
        ("so <answer> 7 </answer> it is", "7"),
        ("<answer>1</answer> no, <ANSWER>2</ANSWER>", "2"),
        ("<answer>a\nb</answer>", "a\nb"),
        ("<answer></answer>\n5", None),  # an empty tag is an empty answer, not another one
        ("<answer>5", "<answer>5"),
        ("", None),
        (" \n\t\n", None),
    ],
)
def test_the_last_tag_else_the_last_line(completion: str, answer: str | None) -> None:
    assert final_answer(completion) == answer


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-7", -7), ("+7", 7), ("123456789", 123456789)])
def test_whole_numbers(text: str, value: int) -> None:
    assert integer(text) == value


@pytest.mark.parametrize(
    "text", [None, "", "7.", "7.0", " 7", "7 ", "012", "-0", "+0x1", "1e3", "7;8", "--7", "7" * 31, "٣", "7\n"]
)
def test_what_is_not_exactly_a_whole_number(text: str | None) -> None:
    assert integer(text) is None


@given(st.integers(-(10**29), 10**29))
def test_every_number_as_python_writes_it(number: int) -> None:
    assert integer(str(number)) == number
