"""Scopes of programs: what they are, edits that stay inside, and edits that do not."""

from __future__ import annotations

import numpy as np
from tests.search.test_segments import SOURCE

from evolvent.search.scopes import Scope, radius, scopes, varied, within_scope

ONE = '''"""A program of one block."""

import math

# EVOLVE-BLOCK-START
RATE = 0.5


def first(x):
    y = x * 2
    return y


def second(x):
    z = x + RATE
    return z
# EVOLVE-BLOCK-END


def fixed(x):
    return x
'''


def test_blocks_are_scopes() -> None:
    first, second = scopes(SOURCE)
    lines = SOURCE.split("\n")
    assert (first.name, second.name) == ("first", "second")
    assert lines[first.first - 1] == "def first(x):"
    assert lines[first.last - 1] == "    return y"
    assert lines[second.first - 1] == "    def second(self, x):"


def test_definitions_of_one_block_are_scopes() -> None:
    assert [scope.name for scope in scopes(ONE)] == ["RATE", "first", "second"]
    assert scopes("x = 1\n") == [Scope("x", 1, 2)]
    assert [scope.name for scope in scopes("print(1)\n")] == ["program"]
    assert [scope.name for scope in scopes("def f(:\n")] == ["program"]


def test_edits_stay_in_their_scope() -> None:
    for source in (SOURCE, ONE):
        parts = scopes(source)
        for scope in parts:
            found = set()
            for seed in range(12):
                made = varied(source, scope, np.random.default_rng(seed), ("y = x + 1", "z = 3"))
                if made is None:
                    continue
                assert within_scope(source, made[0], scope)
                assert not any(within_scope(source, made[0], other) for other in parts if other != scope)
                assert made[0].count("EVOLVE-BLOCK") == source.count("EVOLVE-BLOCK")
                found.add(made[0])
            assert len(found) > 3


def test_what_is_beyond_a_scope() -> None:
    _, first, second = scopes(ONE)
    inside, outside = ONE.replace("x * 2", "x * 3"), ONE.replace("return x\n", "return 2 * x\n")
    assert within_scope(ONE, inside, first)
    assert not within_scope(ONE, inside, second)
    assert not within_scope(ONE, outside, first)
    assert within_scope(ONE, ONE.replace("    y = x * 2\n", "    y = x\n    y = y * 2\n"), first)
    assert within_scope(ONE, ONE.replace("    y = x * 2\n    return y", "    return x"), first)
    assert not within_scope(ONE, "", first)


def test_how_far_an_edit_goes() -> None:
    assert radius(ONE, ONE) == 0
    assert radius(ONE, ONE.replace("x * 2", "x * 3")) == 1
    assert radius(ONE, ONE.replace("    y = x * 2\n", "    y = x\n    y = y + 1\n    y = y * 2\n")) == 3
