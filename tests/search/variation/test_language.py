"""The language of edits: each of them against a program that was changed by hand."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from evolvent.search.variation.edits import EditError
from evolvent.search.variation.language import SIGNS, apply, drawn, listing, menu, numbers, places

SOURCE = '''
def helper():
    return 7


# EVOLVE-BLOCK-START
def point(n):
    """Where."""
    x = 1.0
    for i in range(3):
        x = x + 0.5
    y = [4][0]; z = 1
    return x
# EVOLVE-BLOCK-END
'''
LOOP = "    for i in range(3):\n        x = x + 0.5\n"
MENU = menu(("y = 2.0", "x + 1", "x  =  x + 0.5"), SOURCE)


def test_the_menu_has_the_statements_of_the_library_and_then_those_of_the_seed_program() -> None:
    assert MENU == ("y = 2.0", "x = x + 0.5", "x = 1.0", "for i in range(3):\n    x = x + 0.5", "return x")


def test_places_and_numbers_are_those_of_the_block() -> None:
    assert [(p.first, p.last) for p in places(SOURCE)] == [(9, 9), (10, 11), (11, 11), (13, 13)]
    assert [n.value for n in numbers(SOURCE)] == [1.0, 3, 0.5, 4, 1]


def test_a_program_is_listed_by_places_and_signs() -> None:
    assert listing(SOURCE, MENU) == "#5|02132134"
    assert listing(SOURCE, MENU, room=7) == "#5|2134"
    assert listing(apply(SOURCE, "*09", MENU), MENU) == "#5|0.132134"


@pytest.mark.parametrize(
    ("answer", "old", "new"),
    [
        ("+30", "    return x\n", "    y = 2.0\n    return x\n"),
        ("+20", "        x = x + 0.5\n", "        y = 2.0\n        x = x + 0.5\n"),
        ("=00", "    x = 1.0\n", "    y = 2.0\n"),
        ("=03", "    x = 1.0\n", LOOP),
        ("-1", LOOP, ""),
        ("^01", "    x = 1.0\n" + LOOP, LOOP + "    x = 1.0\n"),
        ("^10", "    x = 1.0\n" + LOOP, LOOP + "    x = 1.0\n"),
        ("*06", "x = 1.0", "x = 1.25"),
        ("*16", "range(3)", "range(4)"),
        ("*14", "range(3)", "range(2)"),
        ("*15", "range(3)", "range(4)"),
        ("*27", "+ 0.5", "+ 1.0"),
        ("-1+10", LOOP + "    y = [4][0]; z = 1\n", "    y = [4][0]; z = 1\n    y = 2.0\n"),
    ],
)
def test_an_edit_does_what_a_hand_does(answer: str, old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    assert apply(SOURCE, answer, MENU) == SOURCE.replace(old, new)
    assert apply(SOURCE, f" {answer}\n", MENU) == SOURCE.replace(old, new)


@pytest.mark.parametrize(
    "answer", ["", "hello", "+3", "-4", "-+", "^12", "^00", "+35", "*50", "*0a", "-0-0-0-0-0", "-2+00"]
)
def test_what_is_no_edit_is_an_error(answer: str) -> None:
    with pytest.raises(EditError):
        apply(SOURCE, answer, MENU)


def test_random_edits_can_be_applied_and_name_everything() -> None:
    rng, met = np.random.default_rng(0), set[str]()
    for _ in range(400):
        answer = drawn(SOURCE, MENU, rng)
        made = apply(SOURCE, answer, MENU)
        assert made.startswith(SOURCE[: SOURCE.index("def point")])
        met |= {answer[:2], answer[0] + answer[-1]}
    assert {k + SIGNS[i] for k in "+=" for i in range(4)} <= met
    assert {"-0", "-3", "^0", "*4"} <= met
    assert {"+4", "=4"} <= met


def test_random_edits_of_a_small_program_stop_where_nothing_is_left() -> None:
    source = "def f():\n    pass\n"
    for seed in range(30):
        answer = drawn(source, menu((), source), np.random.default_rng(seed))
        assert answer
        apply(source, answer, menu((), source))


def test_most_random_edits_leave_python() -> None:
    rng, good = np.random.default_rng(1), 0
    for _ in range(200):
        try:
            ast.parse(apply(SOURCE, drawn(SOURCE, MENU, rng), MENU))
            good += 1
        except SyntaxError:
            pass
    assert good > 150
