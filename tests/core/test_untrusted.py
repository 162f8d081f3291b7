"""JSON that somebody else has written."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.untrusted import DEEPEST, read_json

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(DATA)
def test_data_is_read_as_it_was_written(data: Any) -> None:
    assert read_json(json.dumps(data)) == data


@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a": ', "}")])
@pytest.mark.parametrize("levels", [DEEPEST + 1, 300, 900, 100_000])
def test_what_is_nested_too_deeply_is_no_data(left: str, right: str, levels: int) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(left * levels + "1" + right * levels)


def test_what_is_read_can_be_copied_and_written() -> None:
    data = read_json("[" * DEEPEST + "]" * DEEPEST)
    assert json.loads(json.dumps(copy.deepcopy(data))) == data


@pytest.mark.parametrize("text", ["", "[1", "9" * 5000, "[" * 2000, '{"a":' * 2000])
def test_what_is_no_data(text: str) -> None:
    with pytest.raises(ValueError, match="Expecting|nested|limit"):
        read_json(text)


def test_hooks_are_handed_on() -> None:
    assert read_json('{"a": {"b": 1}}', object_pairs_hook=lambda pairs: {k.upper(): v for k, v in pairs}) == {
        "A": {"B": 1}
    }
