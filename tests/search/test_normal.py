"""The normal form: what it forgets, what it keeps; hashes and similarities."""

from __future__ import annotations

import ast
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.normal import WIDTH, ngrams, normal_form, similarity, tree_hash

PROGRAM = '''"""About."""
import math as m
LIMIT = 3  # how far

def solve(x, scale=2):
    """Solves it."""
    total = 0.0
    for step in range(LIMIT):
        total += [part * step for part in (x, scale)][0]

    def more(y):
        nonlocal total
        total += y
        return total

    try:
        with open("a") as handle:
            double = lambda z, w=1: z * w
    except ValueError as problem:
        print(problem, handle, double(2))
    if (half := total / 2) > 1:
        return more(half) + m.pi
    match x:
        case [head, *rest]:
            return head
    return sum(part for part in [total])

class Box:
    """A box."""

    size = 1
'''
LOCALS = ["step", "part", "handle", "double", "z", "w", "problem", "half", "head", "rest"]


def test_comments_docstrings_and_layout_do_not_count() -> None:
    spaced = "# hello\n\n" + PROGRAM.replace('"""Solves it."""', "").replace("total = 0.0", "total = (\n 0.0  # so\n )")
    assert normal_form(spaced) == normal_form(PROGRAM)
    assert tree_hash(spaced) == tree_hash(PROGRAM)
    assert similarity(spaced, PROGRAM) == 1.0


@given(st.lists(st.from_regex(r"[a-z]{3,5}_", fullmatch=True), min_size=10, max_size=10, unique=True))
def test_names_of_local_variables_do_not_count(new: list[str]) -> None:
    text = PROGRAM
    for name, other in zip(LOCALS, new, strict=True):
        text = re.sub(rf"\b{name}\b", other, text)
    assert text != PROGRAM
    assert normal_form(text) == normal_form(PROGRAM)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT", "BOUND"),  # a global
        ("scale", "factor"),  # a parameter, which a caller may name
        ("solve", "find"),
        ("more", "less"),
        ("size", "width"),  # an attribute
        ("0.0", "0.5"),
        ("total / 2", "2 / total"),
        ("part * step", "step * part"),
    ],
)
def test_what_counts(old: str, new: str) -> None:
    changed = PROGRAM.replace(old, new)
    assert normal_form(changed) != normal_form(PROGRAM)
    assert tree_hash(changed) != tree_hash(PROGRAM)
    assert similarity(changed, PROGRAM) < 1.0


def test_two_variables_do_not_become_one() -> None:
    assert normal_form("def f(x):\n    a = x\n    b = 1\n    return a") != normal_form(
        "def f(x):\n    a = x\n    b = 1\n    return b"
    )
    taken = "_v0 = 1\ndef f(x):\n    {0} = x\n    return {1}"
    assert normal_form(taken.format("a", "_v0")) != normal_form(taken.format("a", "a"))


def test_the_normal_form_is_a_program_and_its_own() -> None:
    once = normal_form(PROGRAM)
    ast.parse(once)
    assert normal_form(once) == once


def test_what_does_not_parse() -> None:
    for text in ("def f(:", "a = 1\0"):
        with pytest.raises(SyntaxError):
            normal_form(text)


def test_similarity() -> None:
    line, near, far = "def f(x):\n    return {}\n", "x * 2 + abs(x - 1)", "[k for k in sorted(x.items()) if k]"
    same = similarity(line.format(near), line.format(near.replace("2", "3")))
    other = similarity(line.format(near), line.format(far))
    assert 0.0 <= other < 0.8 < same < 1.0
    assert similarity(line.format(near), line.format(far)) == similarity(line.format(far), line.format(near))


def test_vectors_have_length_1_and_are_remembered() -> None:
    vector = ngrams(PROGRAM)
    assert vector.shape == (WIDTH,)
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert ngrams(PROGRAM) is vector
    assert not ngrams("").any()


def test_ten_thousand_comparisons_are_cheap() -> None:
    texts = [PROGRAM.replace("LIMIT = 3", f"LIMIT = {i}") for i in range(20)]
    for text in texts:
        ngrams(text)
    before = time.process_time()
    for i in range(10_000):
        similarity(texts[i % 20], texts[(i + 7) % 20])
    assert time.process_time() - before < 2.0
