"""Who may be a parent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.search.admission import crowding, keep_all, pareto, top
from evolvent.search.archive import Archive
from evolvent.search.candidate import Candidate
from evolvent.search.normal import similarity
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


PROGRAMS = (
    "x = 1",
    "x = 12",
    "print('a long line, all of words')",
    "def f(a):\n    return a",
    "def f(b):\n    return b",
)


def programs(rows: list[tuple[float | None, str]]) -> list[Candidate]:
    return [Candidate(i, {"program": text}, candidates([value])[0].evaluation) for i, (value, text) in enumerate(rows)]


def test_the_most_similar_makes_room() -> None:
    close, far, newcomer = programs(
        [(5.0, "def f(a):\n    return a + 1"), (1.0, "x = 'y'"), (4.0, "def f(a):\n    return a")]
    )
    assert crowding(newcomer, [close, far], size=2) == [close, far]  # though it is better than the other one
    equal, better = (Candidate(2, newcomer.payload, Evaluation(v)) for v in (5.0, 6.0))
    assert crowding(equal, [close, far], size=2) == [close, far]
    assert crowding(better, [close, far], size=2) == [far, better]
    assert crowding(newcomer, [close, far], size=3) == [close, far, newcomer]


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 5).map(float), st.sampled_from(PROGRAMS)), max_size=12),
    st.integers(1, 4),
)
def test_crowding(rows: list[tuple[float | None, str]], size: int) -> None:
    members: list[Candidate] = []
    wanted: list[int] = []
    for i, (value, text) in enumerate(rows):
        made = programs(rows)[i]
        members = crowding(made, members, size=size)
        if value is not None and len(wanted) < size:
            wanted.append(i)
        elif value is not None:
            alike = [similarity(text, rows[k][1]) for k in wanted]
            rival = wanted[alike.index(max(alike))]
            if value > (rows[rival][0] or 0.0):
                wanted.remove(rival)
                wanted.append(i)
        assert [c.uid for c in members] == wanted


def measured(rows: list[tuple[float, float]]) -> list[Candidate]:
    return [Candidate(i, {"program": ""}, Evaluation(a, {"seconds": b})) for i, (a, b) in enumerate(rows)]


few = st.integers(0, 4).map(float)


@given(st.lists(st.tuples(few, few), max_size=12))
def test_the_pareto_front(rows: list[tuple[float, float]]) -> None:
    members: list[Candidate] = []
    for c in measured(rows):
        members = pareto(c, members, metrics=("value", "-seconds"))
    wanted = [
        i
        for i, (a, b) in enumerate(rows)
        if (a, b) not in rows[:i] and not any(x >= a and y <= b and (x, y) != (a, b) for x, y in rows)
    ]
    assert [c.uid for c in members] == wanted


def test_a_metric_that_is_not_there() -> None:
    seed, more = measured([(1.0, 2.0), (5.0, 1.0)])
    lacking = Candidate(1, {"program": ""}, Evaluation(5.0))
    assert pareto(lacking, [seed], metrics=("value", "-seconds")) == [seed, lacking]
    assert pareto(more, [seed, lacking], metrics=("value", "-seconds")) == [more]
    assert pareto(candidates([None])[0], [seed], metrics=("value",)) == [seed]
    with pytest.raises(UserError, match="unknown metric `-second`.*the seed program has seconds, value"):
        pareto(seed, [], metrics=("value", "-second"))


def test_a_rule_that_admits_nobody_is_to_blame_and_not_the_seed_program() -> None:
    archive = Archive(admit=nobody)
    archive.history = candidates([1.0, None])
    with pytest.raises(UserError, match="keep.admit=nobody has admitted none of the 2 candidates"):
        archive.pool()
    archive.history = candidates([None])
    with pytest.raises(UserError, match="the seed program is not valid"):
        archive.pool()


def nobody(candidate: Candidate, members: list[Candidate]) -> list[Candidate]:
    """No members at all."""
    return []
