"""Texts that may be Python."""

import pytest

from evolvent.core.python import fault, parses


@pytest.mark.parametrize("text", ["", "x = 1", "def f():\n    return 'ä'\n", "# nothing"])
def test_python_has_no_fault(text: str) -> None:
    assert parses(text)
    assert fault(text) == ""


@pytest.mark.parametrize("text", ["x = ", "a\0b", "(" * 3000, "-" * 100_000 + "1", "\ud800", "  x\n y"])
def test_what_is_no_python_is_told_and_never_raised(text: str) -> None:
    assert not parses(text)
    assert fault(text)
