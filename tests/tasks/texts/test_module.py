"""Texts as a module: they come back as they were, and nothing but texts does."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.segments import segments
from evolvent.search.variation.edits import rewrite
from evolvent.tasks.texts.module import read, written

ANY = st.text(st.one_of(st.characters(), st.sampled_from('`\n\\"\r'))).filter(lambda text: "EVOLVE-BLOCK" not in text)


@given(st.dictionaries(ANY, ANY, min_size=1, max_size=4))
def test_texts_come_back_as_they_were(texts: dict[str, str]) -> None:
    source = written(texts)
    assert read(source, list(texts)) == texts
    assert source.encode() == source.encode("utf-8", "strict")  # can be saved, and shown to a model


@given(st.lists(st.sampled_from(["```", "```json", "  ``` ", "text", "", "\\", '"""'])))
def test_a_text_with_fences_comes_back_from_between_fences(lines: list[str]) -> None:
    source = written({"one": "\n".join(lines), "two": "```"})
    answer = f"Here it is:\n\n```python\n{source}```\nDone."
    assert read(rewrite(answer), ["one", "two"]) == {"one": "\n".join(lines), "two": "```"}


def test_python_itself_reads_the_same() -> None:
    text = 'a "quoted" \\ word\n\n"""fenced""" {x} \x00 \r end"'
    scope: dict[str, dict[str, str]] = {}
    exec(compile(written({"one": text}), "texts", "exec"), scope)
    assert scope["texts"] == {"one": text}


def test_lines_are_shown_as_lines_and_each_text_is_a_segment() -> None:
    source = written({"one": "first\nsecond", "two": "third"})
    assert "\nfirst\nsecond" in source
    assert [ast.literal_eval(part.partition(" = ")[2]) for part in segments(source)] == ["first\nsecond", "third"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import os\n", "line 1: `import os` is no text"),
        ('texts["a"] = open("x").read()\n', "is no text"),
        ('texts["a"] = f"{1}"\n', "is no text"),
        ('texts["a"] = "x" + "y"\n', "is no text"),
        ('texts["a"] = 3\n', "is no text"),
        ('texts["a"] = "\\ud800"\n', "half of a surrogate pair"),
        ('texts["a"] = "# EVOLVE-BLOCK-END"\n', "has EVOLVE-BLOCK marks"),
        ('other["a"] = "x"\n', "is no text"),
        ('texts["c"] = "x"\n', "there is no text 'c'; the texts are a, b"),
        ('texts["a"] = "x"\n', "the text 'b' is missing"),
    ],
)
def test_what_is_no_text(source: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read(source, ["a", "b"])


def test_strings_may_be_written_in_any_way() -> None:
    assert read("'''Some words.'''\ntexts = {}\ntexts['b'] = 'x' 'y'\ntexts[\"a\"] = r'\\d'\n", ["a", "b"]) == {
        "a": "\\d",
        "b": "xy",
    }
    assert read("texts['z'] = ''\n") == {"z": ""}
