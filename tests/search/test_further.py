"""Follow-ups of a trial that changed one constant."""

from __future__ import annotations

import pytest

from evolvent.search.further import further

BEFORE = "def f(x):\n    x = x[:, 1] * 0.5\n    return x + 4\n"


@pytest.mark.parametrize(
    ("a", "b", "found", "c"),
    [
        ("0.5", "0.7", 1.0, "0.9"),  # rose: on
        ("0.5", "0.7", -1.0, "0.3"),  # fell: back
        ("0.5", "0.7", 0.0, "0.3"),  # the same is no gain
        ("0.5", "0.7", None, "0.6"),  # failed: half the way
        ("x + 4", "x + 6", 1.0, "x + 8"),  # whole numbers stay whole
        ("x + 4", "x + 7", None, "x + 6"),
    ],
)
def test_a_constant_moves_once_more(a: str, b: str, found: float | None, c: str) -> None:
    assert further(BEFORE, BEFORE.replace(a, b), 0.0, found) == BEFORE.replace(a, c)


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (BEFORE, 1.0),
        (BEFORE.replace("0.5", "0.7").replace("4", "5"), 1.0),  # two constants
        (BEFORE.replace("* 0.5", "+ 0.7"), 1.0),
        (BEFORE.replace("    return", "    x = 1\n    return"), 1.0),
        (BEFORE.replace("0.5", "2.0"), -1.0),  # it would be negative
        (BEFORE.replace("x + 4", "x + 5"), None),  # nothing between two whole numbers
    ],
)
def test_anything_else_has_none(after: str, found: float | None) -> None:
    assert further(BEFORE, after, 0.0, found) is None
