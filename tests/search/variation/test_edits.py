"""What a model writes: diffs that apply, diffs that do not and what it is told, full rewrites."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.variation.edits import EditError, Replacement, apply, parse_diff, rewrite, within

SOURCE = """import math

# EVOLVE-BLOCK-START
def area(r):
    scale = 1.0
    return 3.0 * r * r * scale
# EVOLVE-BLOCK-END

print(area(2.0))
"""


def diff(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def test_an_answer_with_two_diffs_and_talk_around_them() -> None:
    answer = (
        "I would use pi.\n```\n"
        + diff("    return 3.0 * r * r * scale", "    return math.pi * r ** 2 * scale")
        + "```\nAnd then:\n"
        + diff("    scale = 1.0\n    return math.pi * r ** 2 * scale", "    return math.pi * r ** 2")
    )
    found = parse_diff(answer)
    assert len(found) == 2
    assert apply(SOURCE, found) == SOURCE.replace(
        "    scale = 1.0\n    return 3.0 * r * r * scale\n", "    return math.pi * r ** 2\n"
    )


def test_an_empty_replacement_deletes_the_lines() -> None:
    found = parse_diff("<<<<<<< SEARCH\n    scale = 1.0\n=======\n>>>>>>> REPLACE")
    assert found == [Replacement("    scale = 1.0", "")]
    assert apply(SOURCE, found) == SOURCE.replace("    scale = 1.0\n", "")


def test_white_space_at_the_ends_of_lines_does_not_count() -> None:
    untidy = SOURCE.replace("scale = 1.0", "scale = 1.0  ")
    found = parse_diff(
        diff("    scale = 1.0\t\n    return 3.0 * r * r * scale \n\n", "    return r").replace("\n", "\r\n")
    )
    assert apply(untidy, found) == SOURCE.replace("    scale = 1.0\n    return 3.0 * r * r * scale\n", "    return r\n")


def test_indentation_counts_unless_asked() -> None:
    found = [Replacement("scale = 1.0\nreturn 3.0 * r * r * scale", "if r:\n    return r")]
    with pytest.raises(EditError, match="matches nowhere"):
        apply(SOURCE, found)
    assert "    if r:\n        return r\n# EVOLVE" in apply(SOURCE, found, fix_indent=True)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("no change is needed", "holds no diff"),
        ("<<<<<<< SEARCH\na\n=======\nb\n", "line 1 of the answer is cut off"),
        ("<<<<<<< SEARCH\na\n>>>>>>> REPLACE", "line 3 of the answer ends a diff without"),
        ("<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE", "line 5 of the answer"),
        ("<<<<<<< SEARCH\n<<<<<<< SEARCH\n", "line 2 of the answer starts a diff inside"),
        (diff("a", "b") + "=======\n", "belongs to no"),
        (diff("  ", "b"), "empty search text"),
    ],
)
def test_diffs_that_cannot_be_read(answer: str, wanted: str) -> None:
    with pytest.raises(EditError, match=wanted):
        parse_diff(answer)


def test_a_search_text_that_matches_nowhere_is_told_what_is_like_it() -> None:
    with pytest.raises(EditError) as told:
        apply(SOURCE, [Replacement("    return 3.1 * r * r * scale", "")])
    assert str(told.value) == (
        "diff 1 of 1: the search text matches nowhere:\n      return 3.1 * r * r * scale\n"
        "similar lines:\n  line 6:     return 3.0 * r * r * scale"
    )
    with pytest.raises(EditError, match="not one after the other"):
        apply(SOURCE, [Replacement("def area(r):\n    return 3.0 * r * r * scale", "")])


def test_a_search_text_that_matches_twice() -> None:
    with pytest.raises(EditError, match="matches 3 times, at lines 1, 2, 4; add some around it"):
        apply("a = 1\na = 1\nb = 2\na = 1\n", [Replacement("a = 1", "a = 2")])
    assert apply("a = 1\na = 1\nb = 2\na = 1\n", [Replacement("b = 2\na = 1", "c = 3")]) == "a = 1\na = 1\nc = 3\n"


def test_a_match_inside_the_block_wins_over_one_outside() -> None:
    source = "x = 1\n# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\n"
    assert apply(source, [Replacement("x = 1", "x = 2")]) == source.replace("START\nx = 1", "START\nx = 2")


def test_marks_may_be_quoted_but_not_changed() -> None:
    old = "# EVOLVE-BLOCK-START\ndef area(r):\n    scale = 1.0"
    assert "scale = 2.0" in apply(SOURCE, [Replacement(old, old.replace("1.0", "2.0"))])
    with pytest.raises(EditError, match="this line is missing or was changed: '# EVOLVE-BLOCK-START'"):
        apply(SOURCE, [Replacement(old, "def area(r):\n    scale = 1.0")])


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        (SOURCE.replace("print(area(2.0))", "print(12)"), "changed: 'print\\(area\\(2.0\\)\\)'"),
        (SOURCE + "import os\n", "lines were added or moved outside"),
        ("def area(r):\n    return r\n", "changed: 'import math'"),
    ],
)
def test_changes_outside_are_refused(after: str, wanted: str) -> None:
    with pytest.raises(EditError, match=wanted):
        within(SOURCE, after)


QUOTING = 'PROMPT = """Answer like this:\n```json\n{}\n```\nor\n```\nnothing\n```\n"""\na = 1\n'


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("First\n```python\na = 1\n```\nbetter:\n```python\na = 2\n```\n```text\nnot this\n```", "a = 2\n"),
        ("```\na = 1\n```\nor\n```py3\n\na = 2\n\n\n```", "a = 2\n"),
        ("```Python\na = 1\n```\n```json\n{}\n```", "a = 1\n"),
        ("a = 1\nb = 2", "a = 1\nb = 2\n"),
        ("```python\ndef f(:\n```", "def f(:\n"),  # what is wrong with it shows when it is evaluated
        ("```python\ndef f(:\n```\nor\n```python\na = 1\n```", "a = 1\n"),
        (f"So:\n```python\n{QUOTING}```\nIt says ```json``` now.", QUOTING),
        (f"```python\na = 1\n```\nor\n```\n{QUOTING}```\n", "a = 1\n"),  # the one that is marked
        ("```python\n\na = 1\n```\n" + "```\n" * 500, "a = 1\n"),
    ],
)
def test_rewrites(answer: str, wanted: str) -> None:
    assert rewrite(answer) == wanted


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("Sure, here it is", "holds no program"),
        ("```python\na = 1\n", "not closed"),
        ("\n", "is empty"),
        ("a = 1\0", "holds no program"),
    ],
)
def test_rewrites_without_a_program(answer: str, wanted: str) -> None:
    with pytest.raises(EditError, match=wanted):
        rewrite(answer)


LINE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8).map(str.rstrip)
NEW = st.lists(LINE.filter(lambda line: line.strip() != "======="), max_size=4).map(
    lambda lines: "\n".join(lines).rstrip()
)


@given(st.data())
def test_what_is_written_as_a_diff_is_applied(data: st.DataObject) -> None:
    """Any run of the lines of a program, all different, replaced by any others."""
    lines = [f"line {i} = {data.draw(LINE)}".rstrip() for i in range(data.draw(st.integers(1, 8)))]
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first + 1, len(lines)))
    new = data.draw(NEW)
    found = parse_diff(diff("\n".join(lines[first:last]), new))
    put = new.split("\n") if new else []
    assert apply("\n".join(lines), found) == "\n".join([*lines[:first], *put, *lines[last:]])
