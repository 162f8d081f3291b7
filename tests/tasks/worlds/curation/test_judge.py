"""The judge's score against sums by hand, and its comments."""

from __future__ import annotations

import pytest

from evolvent.tasks.worlds.curation.corpus import documents
from evolvent.tasks.worlds.curation.issues import read, survey
from evolvent.tasks.worlds.curation.judge import comments, judge, pieces, read_comments
from evolvent.tasks.worlds.curation.texts import CATEGORIES

NOTHING = survey(())
LINES = [f"one two three {word}" for word in "abcdefghij"]  # 4 pieces each, and the 9 ends of lines between
SHORT = ["yes"] * 10
TEXT = "\n".join([*LINES, *SHORT])  # 40 + 10 words, 19 ends of lines
NOISY = TEXT + "\nbuy now http://x.example/ !!"  # an end of line, buy now http : / / x . example / ! ! : 13


def test_pieces_are_words_signs_and_beginnings_of_lines() -> None:
    assert pieces("a b.\n  c") == {"a": 1, "b": 1, ".": 1, "\n  ": 1, "c": 1}
    assert pieces("  a") == {"  ": 1, "a": 1}


def test_as_it_was() -> None:
    found = judge([NOISY], [NOISY], NOTHING)
    assert pieces(NOISY).total() - pieces(TEXT).total() == 13
    assert (found.removed, found.kept) == (0.0, 1.0)
    assert found.pure == pytest.approx(69 / 82)
    assert found.score == pytest.approx(1 + 9 * 69 / 82)
    assert found.left == [("promotion", 1.0, "buy now http://x.example/ !!")]


def test_cleaned() -> None:
    found = judge([NOISY], [TEXT], NOTHING)
    assert (found.score, found.removed, found.kept, found.left, found.lost) == (10.0, 1.0, 1.0, [], [])


def test_the_sort_of_lines_decides_that_lost_most_and_it_counts_thrice() -> None:
    given = "\n".join([*LINES, *SHORT[:4]])  # 6 of 10 short lines are gone; of their 20 pieces 4 and 10 ends are there
    found = judge([TEXT], [given], NOTHING)
    assert found.kept == pytest.approx(14 / 20)
    assert found.score == pytest.approx(1 + 9 * (14 / 20) ** 3)
    assert found.lost == []  # of what is not in the text at all there is no example


def test_what_was_not_there_before_is_noise() -> None:
    found = judge([NOISY], [TEXT + " more of it"], NOTHING)
    assert found.removed == pytest.approx(1 - 3 / 13)
    assert found.pure == pytest.approx(69 / 72)


@pytest.mark.parametrize("given", [None, ""])
def test_nothing_is_worth_nothing(given: str | None) -> None:
    assert judge([NOISY], [given], NOTHING).score == 1.0


@pytest.mark.parametrize("category", CATEGORIES)
def test_what_the_statistics_leave_is_perfect_and_the_originals_are_nearly(category: str) -> None:
    d = documents(category, "gate")
    mended = [read(text, d.about).content for text in d.raw]
    assert judge(d.raw, mended, d.about).score == 10.0
    original = [clean if text else "" for clean, text in zip(d.clean, mended, strict=True)]
    assert judge(d.raw, original, d.about).score > 8.8 > judge(d.raw, d.raw, d.about).score


def test_comments_can_be_read_again() -> None:
    found = judge([NOISY], ["\n".join(SHORT) + "\nbuy now http://x.example/ !!"], NOTHING)
    told = comments("prose", found)
    assert told.startswith(f"prose: {found.removed:.0%} of the noise is gone, ")
    assert read_comments(told) == [
        ("left", "promotion", 1.0, "buy now http://x.example/ !!"),
        ("lost", "other lines", round(found.lost[0][1], 2), "one two three a"),
    ]
