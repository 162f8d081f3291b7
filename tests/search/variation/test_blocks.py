"""EVOLVE blocks: what they span, what may not be, what counts as unchanged outside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.search.variation.blocks import Span, blocks, same_outside

START, END = "# EVOLVE-BLOCK-START", "# EVOLVE-BLOCK-END"
TWO = f"import math\n{START}\na = 1\nb = 2\n{END}\nc = 3\n    {START} the second\n    {END}\n"


def test_two_blocks_one_of_them_empty() -> None:
    assert blocks(TWO) == [Span(3, 4), Span(8, 7)]


def test_without_marks_the_whole_file_may_change() -> None:
    assert blocks("a = 1\nb = 2\n") == [Span(1, 3)]
    assert same_outside("a = 1\n", "b = 2\n")
    assert not same_outside("a = 1\n", f"{START}\na = 1\n{END}\n")  # marks are not the program's to set


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (f"{START}\n{START}\n{END}\n{END}", "line 2 starts an EVOLVE block inside the one that line 1 starts"),
        (f"a\n{END}\n", "line 2 ends an EVOLVE block, but none is open"),
        (f"{START}\n{END}\n{END}\n", "line 3 ends an EVOLVE block, but none is open"),
        (f"a\nb\n{START}\nc", "line 3 starts an EVOLVE block that nothing ends"),
        (f"{START} {END}", "line 1 has 2 EVOLVE-BLOCK marks"),
    ],
)
def test_marks_that_do_not_pair_up(source: str, wanted: str) -> None:
    with pytest.raises(UserError, match=wanted):
        blocks(source)
    assert not same_outside(TWO, source)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("a = 1\nb = 2", "x = 7", True),
        ("a = 1\nb = 2\n", "", True),
        ("c = 3", "c = 3  ", True),  # white space at the end
        ("c = 3", "c = 4", False),
        ("c = 3", "c = 3\nd = 4", False),
        ("import math", "import  math", False),
        (START + "\n", "# EVOLVE-BLOCK-START again\n", False),
        ("    " + END, "", False),
    ],
)
def test_same_outside(old: str, new: str, same: bool) -> None:
    assert same_outside(TWO, TWO.replace(old, new, 1)) is same


TEXTS = st.lists(st.sampled_from(["a = 1", "", "  b", "# c"]), max_size=4)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3), TEXTS, TEXTS)
def test_spans_are_the_lines_between_the_marks(
    parts: list[tuple[list[str], list[str]]], tail: list[str], other: list[str]
) -> None:
    def text(inner: list[list[str]]) -> str:
        pairs = zip(parts, inner, strict=True)
        return "\n".join([line for (before, _), body in pairs for line in [*before, START, *body, END]] + tail)

    bodies = [body for _, body in parts]
    source = text(bodies)
    lines = source.split("\n")
    assert [lines[s.first - 1 : s.last] for s in blocks(source)] == bodies
    assert same_outside(source, text([other] * len(parts)))
