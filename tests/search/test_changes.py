"""Changes of programs as sets of lines."""

from __future__ import annotations

from evolvent.search.changes import change, overlap

BEFORE = "def f(x):\n    # a comment\n    a = 1\n    b = 2\n\n    return a + b\n"


def test_a_change_is_the_lines_that_went_and_came() -> None:
    assert change(BEFORE, BEFORE.replace("b = 2", "b = 3")) == {"- b = 2", "+ b = 3"}
    assert change(BEFORE, BEFORE.replace("    # a comment\n", "\n\n")) == frozenset()
    first = BEFORE.replace("    a = 1\n", "    c = 0\n    a = 1\n")
    last = BEFORE.replace("    return", "        c = 0\n    return")
    assert change(BEFORE, first) == change(BEFORE, last) == {"+ c = 0"}
    assert change(BEFORE, BEFORE) == frozenset()


def test_overlap() -> None:
    one, other = frozenset({"- b = 2", "+ b = 3"}), frozenset({"- b = 2", "+ b = 4"})
    assert overlap(one, other) == 1 / 3
    assert overlap(one, one) == overlap(frozenset(), frozenset()) == 1
    assert overlap(one, frozenset({"+ c = 0"})) == overlap(one, frozenset()) == 0
