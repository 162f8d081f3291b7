"""What is worth an evaluation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.archive import Archive
from evolvent.search.candidate import Candidate
from evolvent.search.normal import similarity
from evolvent.search.novelty import dissimilar, unseen
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
    assert dissimilar(text, archive(texts, valid=False), threshold=threshold)  # nobody is a member
    assert unseen(text, archive(texts)) == (text not in texts)


def test_at_the_threshold_is_too_alike() -> None:
    assert not dissimilar("x = 1", archive(["x  =  1"]), threshold=1.0)


def test_the_threshold_of_shinkaevolve() -> None:
    long = "\n".join(f"value_{i} = compute({i}, {i + 1})" for i in range(60))
    assert not dissimilar(long + "\nz = 1", archive([long]))
    assert dissimilar("import math\n\nresult = math.pi", archive([long]))
