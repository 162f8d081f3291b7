"""Answers of models that were asked for named texts."""

from __future__ import annotations

import pytest

from evolvent.search.variation.edits import EditError
from evolvent.search.variation.texts import names_of, with_texts
from evolvent.tasks.texts.module import read, written

OLD = {"system": "Answer.", "style": "Be kind.\n   \nAlways."}
BOTH = list(OLD)


def test_names() -> None:
    assert names_of(written(OLD)) == BOTH
    assert names_of('texts = {}\ntexts["a"] = f()\n') == []
    assert names_of("def f():\n    return 1\n") == []


@pytest.mark.parametrize(
    ("answer", "asked", "changed"),
    [
        ('Shorter:\n```python\ntexts["system"] = "New."\n```\nDone.', BOTH, {"system": "New."}),
        ('```python\ntexts["system"] = """\\\nNew \\\\d "it" \\"""x\\""" \n"""\n```', BOTH,
         {"system": 'New \\d "it" """x""" \n'}),
        ('texts["style"] = \'\'\'a "quote" \\n\'\'\'', BOTH, {"style": 'a "quote" \n'}),
        ('Sure.\ntexts["system"] = "a"\ntexts["style"] = (\n    "b "\n    "c"\n)\nThat is all.', BOTH,
         {"system": "a", "style": "b c"}),
        ('```\ntexts["system"] = "a"\n```\nand\n```\ntexts["style"] = "b"\n```', BOTH, {"system": "a", "style": "b"}),
        ("Be brief.\nUse C:\\temp.", ["system"], {"system": "Be brief.\nUse C:\\temp."}),
        ('Here:\n```\nSay "hi" and """stop""".\n```\nBetter.', ["system"], {"system": 'Say "hi" and """stop""".'}),
        ('```python\n"""Be brief."""\n```', ["style"], {"style": "Be brief."}),
        ('```python\nstyle = "Be brief."\n```', ["style"], {"style": "Be brief."}),
    ],
)  # fmt: skip
def test_what_is_written_replaces_that_alone(answer: str, asked: list[str], changed: dict[str, str]) -> None:
    assert read(with_texts(written(OLD), answer, asked), BOTH) == {**OLD, **changed}


@pytest.mark.parametrize(
    ("answer", "asked", "told"),
    [
        ("Be brief.", BOTH, "holds no text; write"),
        ('texts["other"] = "a"', BOTH, "there is no text 'other'; the texts are system, style"),
        ('texts["system"] = open("x").read()', BOTH, "is no text"),
        ('texts["system"] = """cut off', BOTH, "does not end"),
        ('texts["system"] = "# EVOLVE-BLOCK-START"', BOTH, "EVOLVE-BLOCK marks"),
        ("```\na\n```\n```\nb\n```", ["system"], "one code block"),
        ("```\n\n```", ["system"], "empty"),
    ],
)
def test_what_cannot_be_read(answer: str, asked: list[str], told: str) -> None:
    with pytest.raises(EditError, match=told):
        with_texts(written(OLD), answer, asked)
