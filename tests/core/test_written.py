"""JSON in the answers of models."""

import json

import pytest

from evolvent.core.written import read_written


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (r'{"a": "x\ud800y", "\udc00": ["\ud83d"]}', {"a": "x?y", "?": ["?"]}),
        (r'"\ud83d\ude00 \u00e4"', "\U0001f600 \u00e4"),  # a whole pair
        ('{"a": [1, 2.5, null, true]}', {"a": [1, 2.5, None, True]}),
    ],
)
def test_half_characters_become_question_marks(text: str, data: object) -> None:
    assert read_written(text) == data
    json.dumps(read_written(text), ensure_ascii=False).encode()


def test_what_is_no_json_is_told() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        read_written("{")
