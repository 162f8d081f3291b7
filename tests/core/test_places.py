"""Things by the place where they are."""

from __future__ import annotations

import math

import pytest

from evolvent.core import places


def test_a_place_is_a_module_and_a_name() -> None:
    assert places.at("math:tau") == math.tau


@pytest.mark.parametrize("place", ["no_such_module:x", "math:no_such_name", "math", ":x", ""])
def test_what_is_not_there(place: str) -> None:
    with pytest.raises((ImportError, AttributeError, ValueError)):
        places.at(place)
