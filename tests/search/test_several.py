"""Several objectives at once: who is kept and who is drawn by each of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.search import admission, parents
from evolvent.search.candidate import Candidate
from evolvent.search.grid import map_elites
from evolvent.search.parents import Pool
from evolvent.tasks.evaluation import Evaluation, invalid

BOTH = ("value", "simplicity")
DRAWS = 4000


def candidate(uid: int, value: float | None, simplicity: float | None = None, text: str = "") -> Candidate:
    metrics = {} if simplicity is None else {"simplicity": simplicity}
    return Candidate(uid, {"program": text}, invalid("no") if value is None else Evaluation(value, metrics))


def kept(rows: list[Candidate], **settings: object) -> list[int]:
    members: list[Candidate] = []
    for c in rows:
        members = admission.several(c, members, **settings)  # type: ignore[arg-type]
    assert all(c is rows[c.uid] for c in members)  # themselves, not as one objective sees them
    return [c.uid for c in members]


def best(candidate: Candidate, members: list[Candidate]) -> list[Candidate]:
    """One member: the best."""
    return [max([*members, candidate], key=lambda c: c.value)]


def test_the_best_by_each_objective_is_kept() -> None:
    rows = [candidate(0, 1.0, 0.5), candidate(1, 3.0, 0.2), candidate(2, 2.0, 0.4), candidate(3, 0.0, 0.9)]
    assert kept(rows, metrics=BOTH, rule=best) == [1, 3]
    assert kept(rows, metrics=("value",), rule=best) == [1]  # switched off, the simplest is lost
    assert kept(rows, metrics=("value", "-simplicity"), rule=best) == [1]
    assert kept([*rows, candidate(4, None)], metrics=BOTH, rule=best) == [1, 3]


def test_who_was_given_no_mark_is_kept_by_the_others_only() -> None:
    rows = [candidate(0, 1.0), candidate(1, 2.0), candidate(2, 1.5, 0.1), candidate(3, 9.0)]
    assert kept(rows[:2], metrics=BOTH, rule=best) == [1]
    assert kept(rows, metrics=BOTH, rule=best) == [2, 3]


def test_a_migrant_that_is_there_already_is_there_once() -> None:
    rows = [candidate(0, 1.0, 0.5, "a"), candidate(1, 2.0, 0.4, "bb")]
    assert [c.uid for c in admission.several(rows[0], rows, metrics=BOTH)] == [0, 1]


values = st.one_of(st.none(), st.integers(0, 5).map(float))


@given(st.lists(st.tuples(values, st.sampled_from(("x", "xx", "y\n", "y\nz\n"))), min_size=1, max_size=10))
def test_with_the_value_alone_it_is_the_rule(rows: list[tuple[float | None, str]]) -> None:
    members: list[Candidate] = []
    made = [candidate(i, value, text=text) for i, (value, text) in enumerate(rows)]
    for c in made:
        members = map_elites(c, members)
    assert kept(made) == [c.uid for c in members]


def pool(rows: list[Candidate]) -> Pool:
    return Pool(rows, np.arange(float(len(rows))), rows[0], rows[-1], rows)


def test_parents_are_drawn_by_each_objective_alike() -> None:
    rows = [candidate(0, 1.0, 0.5), candidate(1, 3.0, 0.2), candidate(2, 2.0, 0.4), candidate(3, 0.0, 0.9)]
    rng = np.random.default_rng(0)
    found = Counter(parents.several(pool(rows), rng, rule=parents.elite).uid for _ in range(DRAWS))
    assert set(found) == {1, 3}
    assert abs(found[1] / DRAWS - 0.5) < 4 * 0.5 / DRAWS**0.5


def test_a_rule_sees_children_of_those_that_have_the_objective() -> None:
    """Weights of ShinkaEvolve fall with children: who has none is drawn more often among equals."""
    rows = [candidate(0, 1.0), candidate(1, 1.0, 0.5), candidate(2, 1.0, 0.5)]
    made = Pool(rows, np.array([0.0, 9.0, 0.0]), rows[0], rows[-1], rows)
    rng = np.random.default_rng(0)
    rule = parents.weighted
    found = Counter(parents.several(made, rng, metrics=("simplicity",), rule=rule).uid for _ in range(DRAWS))
    assert set(found) == {1, 2}
    assert abs(found[1] / DRAWS - 1 / 11) < 4 * (1 / 11 * 10 / 11 / DRAWS) ** 0.5


@given(st.lists(st.integers(0, 5).map(float), min_size=1, max_size=10), st.integers(0, 99))
def test_with_the_value_alone_parents_are_the_rules(found: list[float], seed: int) -> None:
    made = pool([candidate(i, v) for i, v in enumerate(found)])
    ours, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
    for _ in range(5):
        assert parents.several(made, ours) is parents.mixed(made, theirs)


def test_an_objective_that_nobody_knows_is_refused() -> None:
    row = candidate(0, 1.0, 0.5)
    with pytest.raises(UserError, match="unknown metric `simple`.*simplicity"):
        admission.several(row, [], metrics=("simple",))
    with pytest.raises(UserError, match="unknown metric `simple`"):
        parents.several(pool([row]), np.random.default_rng(0), metrics=("simple",))
