"""What is worth an evaluation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.archive import Archive
from evolvent.search.candidate import Candidate
from evolvent.search.normal import similarity
from evolvent.search.novelty import dissimilar, likeness, neighbours, unseen
from evolvent.tasks.evaluation import Evaluation, invalid

TEXTS = ("x = 1", "x = 12", "print('other words')", "def f():\n    y = 1\n    return y", "def f():\n    return 2")


def archive(texts: list[str], valid: bool = True) -> Archive:
    made = Archive()
    made.history = [
        Candidate(i, {"program": text}, Evaluation(1.0) if valid else invalid("no")) for i, text in enumerate(texts)
    ]
    made.members = [c for c in made.history if c.valid]
    return made


def test_looks_and_local_names_are_not_new() -> None:
    before = archive(["def f():\n    y = 1\n    return y"], valid=False)
    assert not unseen("def f():  # again\n    z = 1\n    return z\n", before)
    assert unseen("def g():\n    y = 1\n    return y", before)
    assert unseen("x = 1", archive([]))
    with pytest.raises(SyntaxError):
        unseen("def (", before)


@given(st.sampled_from(TEXTS), st.lists(st.sampled_from(TEXTS), max_size=4), st.floats(0, 1))
def test_dissimilar(text: str, texts: list[str], threshold: float) -> None:
    highest = max((similarity(text, other) for other in texts), default=-1.0)
    assert dissimilar(text, archive(texts), threshold=threshold) == (highest < threshold)
    assert dissimilar(text, archive(texts, valid=False), threshold=threshold)  # nobody is valid
    assert unseen(text, archive(texts)) == (text not in texts)


SKELETON = "\n".join(f"def helper_{i}(x):\n    return x * {i} + {i}\n" for i in range(60))


def marked(block: str) -> str:
    return f"{SKELETON}\n# EVOLVE-BLOCK-START\n{block}\n# EVOLVE-BLOCK-END\n"


def test_only_what_may_change_is_compared() -> None:
    """Of whole programs nearly all is the skeleton, which they share."""
    one, other = "def f(n):\n    return [i * i for i in range(n)]", "import math\n\nvalue = math.sqrt(2.0)"
    assert similarity(marked(one), marked(other)) > 0.99
    assert likeness(marked(one), marked(other)) == pytest.approx(similarity(one, other))
    assert similarity(one, other) < 0.5
    assert dissimilar(marked(other), archive([marked(one)]))
    assert not dissimilar(marked(one), archive([marked(one)]))
    assert likeness(one, other) == similarity(one, other)  # without marks all may change


def test_blocks_that_are_no_programs_by_themselves() -> None:
    inside = "def f(a):\n    # EVOLVE-BLOCK-START\n    return {}\n    # EVOLVE-BLOCK-END\n"
    assert likeness(inside.format("a + 1"), inside.format("a + 1  # again")) == 1.0
    assert likeness(inside.format("a + 1"), inside.format("sorted(str(a))")) < 0.7
    half = "if a:\n    pass\n# EVOLVE-BLOCK-START\nelse:\n    {}\n# EVOLVE-BLOCK-END\n"
    assert likeness(half.format("b = 1"), half.format("b = 1")) == 1.0
    assert likeness(half.format("b = 1"), half.format("print('other words')")) < 0.7
    with pytest.raises(SyntaxError):
        likeness("def (", "x = 1")


def test_programs_of_the_island_are_compared_with_and_not_members_alone() -> None:
    there = archive(["x = 1", "x = 'a'", "def f():\n    return 2", "print('other words')"])
    there.history[3] = replace(there.history[3], island=1)
    there.members = there.history[:1]
    assert [c.uid for c in neighbours(there)] == [0, 1, 2]
    assert not dissimilar("x = 'a'", there)
    assert dissimilar("print('other words')", there)


def test_at_the_threshold_is_too_alike() -> None:
    assert not dissimilar("x = 1", archive(["x  =  1"]), threshold=1.0)


def test_the_threshold_of_shinkaevolve() -> None:
    long = "\n".join(f"value_{i} = compute({i}, {i + 1})" for i in range(60))
    assert not dissimilar(long + "\nz = 1", archive([long]))
    assert dissimilar("import math\n\nresult = math.pi", archive([long]))
