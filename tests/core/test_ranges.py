"""Ranges say what a number must be, and where it was set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from pydantic import Field

from evolvent.core.build import check_type
from evolvent.core.errors import UserError
from evolvent.core.ranges import Count, Nonnegative, Positive, Share, Whole


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Count, "0", "keep.x must be at least 1, got 0"),
        (Whole, -1, "keep.x must be at least 0, got -1"),
        (Share, 1.5, "keep.x must be at most 1, got 1.5"),
        (Positive, "0", "keep.x must be above 0, got 0"),
        (Annotated[int, Field(lt=5)], 5, "keep.x must be below 5, got 5"),
        (Mapping[str, Nonnegative], {"a": -1.0}, "keep.x.a must be at least 0, got -1.0"),
        (tuple[Count, ...], "2,0", "keep.x must be at least 1, got 0"),
        (tuple[int, ...], "2,b", r"keep.x must be tuple\[int, ...\], its entries with commas between them; got 2,b"),
        (Count, "many", "keep.x must be int, got 'many'"),
    ],
)
def test_what_lies_outside_is_refused(kind: Any, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_type("keep.x", value, kind)


def test_what_lies_inside_is_read() -> None:
    assert check_type("keep.x", "3", Count) == 3
    assert check_type("keep.x", "0", Whole) == 0
    assert check_type("keep.x", "1", Share) == 1.0
    assert check_type("keep.x", "2,5", tuple[Count, ...]) == (2, 5)
