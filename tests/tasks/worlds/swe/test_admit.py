"""What a patch may change, and what of a test file becomes visible."""

from __future__ import annotations

import ast

import pytest

from evolvent.tasks.worlds.swe.admit import refusal
from evolvent.tasks.worlds.swe.shown import shown

BEFORE = '''
import sys
LIMIT = 3

def first(items, default=None):
    """The first one."""
    for item in items:
        return item
    return getattr(items, "default", default)

class Bag:
    size = 0

    def add(self, item):
        self.size += 1
        return item
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return item\n    return", "return not item\n    return"),
        ("self.size += 1", "def helper(x):\n            return x + 1\n        self.size = helper(self.size)"),
        ('getattr(items, "default", default)', "default"),
        ('"""The first one."""', '"""Another text."""'),
        ("self.size += 1", "self.size += 1 if str(item).strip() else 0"),
    ],
)
def test_bodies_of_functions_may_change(old: str, new: str) -> None:
    assert old in BEFORE
    assert refusal(BEFORE.replace(old, new), BEFORE) == ""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("LIMIT = 3", "LIMIT = 4", "something else than the bodies"),
        ("LIMIT = 3", "LIMIT = 3\nprint(LIMIT)", "something else than the bodies"),
        ("default=None", "default=0", "something else than the bodies"),
        ("    def add", "    @staticmethod\n    def add", "something else than the bodies"),
        ("size = 0", "size = 0\n    __eq__ = print", "something else than the bodies"),
        ("class Bag:", "class Bag(list):", "something else than the bodies"),
        ("self.size += 1", "import os", "import __: import os"),
        ("self.size += 1", "sys.exit(0)", "sys"),
        ("self.size += 1", "setattr(self, 'size', 1)", "setattr"),
        ("self.size += 1", "getattr(self, 'size')", "getattr"),
        ("self.size += 1", "().__class__.__base__.__subclasses__()", "__base__, __class__, __subclasses__"),
        ("return item\n    return", "return type('Any', (), {'_' + '_eq_' + '_': 1})\n    return", "type"),
        ("self.size += 1", "class Any:\n            def __eq__(self, other):\n                return True", "__eq__"),
        ("self.size += 1", "(x for x in item).gi_frame.f_back", "f_back, gi_frame"),
        ("self.size += 1", "self.size = = 1", "no program (SyntaxError"),
        ("self.size += 1", "x = '" + "x" * 200_000 + "'", "characters"),
    ],
)
def test_everything_else_is_refused(old: str, new: str, told: str) -> None:
    assert old in BEFORE
    assert told in refusal(BEFORE.replace(old, new), BEFORE)


def test_what_reaches_may_come_back_where_a_fault_took_it_away_only_if_it_was_there_as_often() -> None:
    faulty = BEFORE.replace('getattr(items, "default", default)', "default")
    assert "getattr" in refusal(BEFORE, faulty)  # the generator keeps no fault of that kind


TEST = """
import os, sys
import pytest
from package import wanted, unwanted

TABLE = [("secret", 1)]
SHARED = 3


def helper(x):
    return wanted(x) + SHARED


@pytest.mark.parametrize(("a", "b"), TABLE)
def test_one(a, b):
    assert helper(a) == b


def test_other():
    assert unwanted("hidden") == os.sep
"""


def test_a_visible_test_takes_along_what_it_needs_and_nothing_else() -> None:
    text = shown(TEST, "test_one")
    assert "secret" not in text
    assert "hidden" not in text
    names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    assert names == {"wanted", "SHARED", "helper", "a", "b", "x"}
    imports = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom | ast.Import)]
    imported = [alias.name for node in imports for alias in node.names]
    assert imported == ["wanted"]
