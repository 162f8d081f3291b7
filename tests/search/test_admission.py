"""Who may be a parent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.admission import keep_all, top
from evolvent.search.candidate import Candidate
from evolvent.tasks.evaluation import Evaluation, invalid


def candidates(values: list[float | None]) -> list[Candidate]:
    return [Candidate(i, {"program": ""}, invalid("no") if v is None else Evaluation(v)) for i, v in enumerate(values)]


scores = st.lists(st.one_of(st.none(), st.integers(0, 5).map(float)), max_size=12)


@given(scores)
def test_everybody_valid_is_kept(values: list[float | None]) -> None:
    members: list[Candidate] = []
    for c in candidates(values):
        members = keep_all(c, members)
    assert [c.uid for c in members] == [i for i, v in enumerate(values) if v is not None]


@given(scores, st.integers(1, 4))
def test_the_best_are_kept_and_of_equals_the_first(values: list[float | None], size: int) -> None:
    members: list[Candidate] = []
    for c in candidates(values):
        members = top(c, members, size=size)
    ranked = sorted((i for i, v in enumerate(values) if v is not None), key=lambda i: (-(values[i] or 0), i))
    assert [c.uid for c in members] == sorted(ranked[:size])
