"""MAP-Elites against its formula, computed here in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.search.candidate import Candidate
from evolvent.search.grid import complexity, diversity, map_elites
from evolvent.tasks.evaluation import Evaluation, invalid


def candidate(uid: int, value: float | None, text: str = "", **metrics: float) -> Candidate:
    return Candidate(uid, {"program": text}, invalid("no") if value is None else Evaluation(value, metrics))


def uids(members: Sequence[Candidate]) -> list[int]:
    return [c.uid for c in members]


def cell(x: float, xs: list[float], bins: int) -> int:
    low, high = min(xs), max(xs)
    return min(bins - 1, int(bins * ((x - low) / (high - low) if high > low else 0.5)))


def away(a: str, b: str) -> float:
    return (
        0.1 * abs(len(a) - len(b))
        + 10 * abs(a.count("\n") - b.count("\n"))
        + 0.5 * sum((c in a) != (c in b) for c in set(a + b))
    )


def test_complexity_is_the_length() -> None:
    assert complexity([candidate(0, 1.0, "abc"), candidate(1, 1.0, "")]).tolist() == [3, 0]


def test_a_distance_by_hand() -> None:
    # lengths 3 and 6, one newline against none, a and newline against x, y and z
    found = diversity([candidate(0, 1.0, "ab\n"), candidate(1, 1.0, "bbbxyz")])
    assert found == pytest.approx([0.1 * 3 + 10 + 0.5 * 5] * 2)


@given(st.lists(st.text("ab\n(", max_size=9), min_size=1, max_size=12))
def test_diversity_is_the_mean_over_those_that_differ(texts: list[str]) -> None:
    found = diversity([candidate(i, 1.0, text) for i, text in enumerate(texts)])
    for text, value in zip(texts, found, strict=True):
        others = [away(text, other) for other in texts if other != text]
        assert value == pytest.approx(sum(others) / len(others) if others else 0.0)


def test_the_reference_set_is_twenty_that_lie_far_apart() -> None:
    lengths = [5, 6, 500, 100, *range(7, 60)]
    texts = ["a" * n for n in lengths]
    chosen = [0]
    while len(chosen) < 20:
        rest = [i for i in range(len(texts)) if i not in chosen]
        chosen.append(max(rest, key=lambda i: min(away(texts[i], texts[k]) for k in chosen)))
    assert chosen[:3] == [0, 2, 3]
    found = diversity([candidate(i, 1.0, text) for i, text in enumerate(texts)])
    for i, value in enumerate(found):
        others = [away(texts[i], texts[k]) for k in chosen if k != i]
        assert value == pytest.approx(sum(others) / len(others))


def test_the_better_one_has_the_cell() -> None:
    ends = [candidate(0, 1.0, x=0.0), candidate(1, 1.0, x=10.0)]
    members = map_elites(candidate(2, 1.0, x=9.5), ends, dimensions=("x",))
    assert uids(members) == [0, 1]  # the last bin, and not better
    assert uids(map_elites(candidate(2, 1.1, x=9.5), ends, dimensions=("x",))) == [0, 2]
    assert uids(map_elites(candidate(2, 0.1, x=8.9), ends, dimensions=("x",))) == [0, 1, 2]
    assert uids(ends) == [0, 1]


def test_members_meet_when_the_scale_moves() -> None:
    members: list[Candidate] = []
    for i, (x, value) in enumerate([(0.0, 3.0), (1.0, 5.0), (2.0, 4.0)]):
        members = map_elites(candidate(i, value, x=x), members, dimensions=("x",))
    assert uids(members) == [0, 1, 2]
    assert uids(map_elites(candidate(3, 0.0, x=1000.0), members, dimensions=("x",))) == [1, 3]


numbers = st.integers(0, 30).map(float)


@given(st.lists(st.tuples(st.none() | st.integers(0, 5).map(float), numbers, numbers), max_size=14), st.integers(1, 5))
def test_a_grid_of_metrics(rows: list[tuple[float | None, float, float]], bins: int) -> None:
    members: list[Candidate] = []
    for i, (value, x, y) in enumerate(rows):
        before = list(members)
        made = candidate(i, value, x=x, y=y)
        members = map_elites(made, before, dimensions=("x", "y"), bins=bins)
        if value is None:
            assert members == before
            continue
        there = [*before, made]
        xs, ys = [[rows[c.uid][k] or 0.0 for c in there] for k in (1, 2)]
        wanted: dict[tuple[int, int], int] = {}
        for c, a, b in sorted(zip(there, xs, ys, strict=True), key=lambda row: (-row[0].value, row[0].uid)):
            wanted.setdefault((cell(a, xs, bins), cell(b, ys, bins)), c.uid)
        assert uids(members) == sorted(wanted.values())
        assert max(c.value for c in members) == max(c.value for c in there)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3).map(float), st.text("ab\n", max_size=8)), max_size=10))
def test_the_grid_of_openevolve(rows: list[tuple[float, str]]) -> None:
    members: list[Candidate] = []
    for i, (value, text) in enumerate(rows):
        members = map_elites(candidate(i, value, text), members)
    assert not rows or max(value for value, _ in rows) == max(c.value for c in members)


def test_a_function_measures_too() -> None:
    def digits(candidates: Sequence[Candidate]) -> np.ndarray:
        return np.array([float(sum(map(str.isdigit, c.text))) for c in candidates])

    members = map_elites(candidate(1, 0.0, "123"), [candidate(0, 1.0, "abc")], dimensions=(digits,))
    assert uids(members) == [0, 1]


def test_metrics_that_are_not_there() -> None:
    assert uids(map_elites(candidate(1, 9.0), [candidate(0, 1.0, x=1.0)], dimensions=("x",))) == [0]
    with pytest.raises(UserError, match="unknown dimension `sped`, did you mean `speed`|unknown dimension `sped`"):
        map_elites(candidate(0, 1.0, speed=1.0), [], dimensions=("sped",))


def test_huge_values_have_places() -> None:
    members: list[Candidate] = []
    for uid, value in enumerate([-1.7e308, 0.0, 1.7e308]):
        members = map_elites(candidate(uid, value), members, dimensions=("value",), bins=3)
    assert uids(members) == [0, 1, 2]
