"""Keys and passwords are recognised by where they stand; nothing else is touched."""

from __future__ import annotations

import json

import pytest

from evolvent.core.secrets import redact


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("http://me:secret@host/v1#m", "http://***@host/v1#m"),
        ("postgresql+psycopg://u:p@localhost:5432/db", "postgresql+psycopg://***@localhost:5432/db"),
        ("http://host:8000/v1 and a:b@c", "http://host:8000/v1 and a:b@c"),
        ("http://me@host/path:1@2", "http://me@host/path:1@2"),
        ("postgresql://u:p@ss@h/db", "postgresql://***@h/db"),
        ("postgresql://u:a/b@h/db", "postgresql://***@h/db"),
        ("postgresql://u:1234@h/db", "postgresql://***@h/db"),
        ("http://host:8000/v1@2 and http://[::1]:80/a@b", "http://host:8000/v1@2 and http://[::1]:80/a@b"),
        ("postgresql://h/db?user=u&password=p@ss/w&sslmode=on", "postgresql://h/db?user=u&password=***&sslmode=on"),
        ("https://h/v1?api_key=abc#m", "https://h/v1?api_key=***#m"),
        ("f'http://h/v1?api_key={k}' + '&password=x'", "f'http://h/v1?api_key={k}' + '&password=x'"),
        ("", ""),
    ],
)
def test_passwords_in_addresses(text: str, left: str) -> None:
    assert redact(text) == left


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "hf_token", "MY_PASSWORD", "AWS_SECRET_ACCESS"])
def test_values_of_variables_named_like_secrets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, 'abc"\\12345')
    assert redact('x abc"\\12345 y') == "x *** y"
    assert "12345" not in redact(json.dumps({"text": 'abc"\\12345'}))


def test_a_secret_of_digits_is_no_part_of_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMMY_API_KEY", "00000000")
    for text in ("100000000 tokens", "0.30000000000000004", "0.00000000"):
        assert redact(text) == text
    assert redact("key=00000000, x00000000y") == "key=***, x***y"


def test_short_values_and_other_variables_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SORT_KEY", "name")
    monkeypatch.setenv("EDITOR_PATH", "some-long-value")
    assert redact("name some-long-value") == "name some-long-value"
