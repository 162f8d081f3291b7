"""Islands: who lives where, who migrates, and that a stopped search goes on to the same candidates."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.records import Group, Problem, Request
from evolvent.core.step import Step
from evolvent.lineage.runs import read_run
from evolvent.lineage.store import Store
from evolvent.run.assemble import assemble
from evolvent.run.result import Progress
from evolvent.run.session import Session, begin, resume
from evolvent.run.spec import RunSpec
from evolvent.search.admission import keep_all, top
from evolvent.search.archive import Archive
from evolvent.search.candidate import Candidate
from evolvent.search.islands import Islands, ring, scatter
from evolvent.search.loop import written
from evolvent.tasks.evaluation import Evaluation

RECIPE = """
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.admission import top
from evolvent.search.islands import Islands

archipelago = recipe(
    "archipelago",
    random_search,
    put("propose.children", 3),
    put("keep.admit", top),
    put("keep.admit.size", 4),
    wrap("keep", Islands, count=3, every=6),
    title="Islands",
)
"""


def member(uid: int, value: float, island: int = 0, seed: bool = False) -> Candidate:
    return Candidate(uid, {"program": str(uid)}, Evaluation(value), () if seed else (0,), island=island)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_best_go_to_both_neighbours() -> None:
    islands = [[member(10 * i + k, float(k), i) for k in range(4)] for i in range(4)]
    found = {(m.candidate.uid, m.origin, m.target, m.leaves) for m in ring(islands, rng(), share=0.5)}
    assert found == {(10 * i + k, i, (i + side) % 4, False) for i in range(4) for k in (2, 3) for side in (1, -1)}
    assert len(ring(islands, rng(), share=0.01)) == 8  # at least one of each


def test_two_islands_have_one_neighbour_each_and_one_has_none() -> None:
    assert [(m.origin, m.target) for m in ring([[member(0, 1.0)], [member(1, 1.0, 1)]], rng())] == [(0, 1), (1, 0)]
    assert ring([[member(0, 1.0)]], rng()) == []
    assert scatter([[member(0, 1.0), member(1, 0.0)]], rng()) == []


def test_migrants_do_not_go_on_and_nobody_comes_twice() -> None:
    migrant = member(7, 9.0, island=2)
    assert ring([[migrant, member(1, 1.0)], [member(2, 1.0, 1)], [migrant]], rng()) == [
        (member(2, 1.0, 1), 1, 0, False),
        (member(2, 1.0, 1), 1, 2, False),
        (migrant, 2, 1, False),
    ]


@given(st.lists(st.lists(st.integers(0, 5).map(float), max_size=8), min_size=2, max_size=4), st.floats(0, 1))
def test_some_move_and_neither_the_best_nor_the_seed(values: list[list[float]], share: float) -> None:
    seed = member(0, 9.0, seed=True)
    islands = [[seed, *(member(10 * i + k + 1, v, i) for k, v in enumerate(vs))] for i, vs in enumerate(values)]
    moves = scatter(islands, rng(), share=share)
    assert len({m.candidate.uid for m in moves}) == len(moves)
    for i, members in enumerate(islands):
        mine = [m for m in moves if m.origin == i]
        assert len(mine) == min(max(1, int(len(members) * share)), max(0, len(members) - 2))
        if mine:
            best = max(members[1:], key=lambda c: (c.value, -c.uid))
            assert {best.uid, 0}.isdisjoint(m.candidate.uid for m in mine)
        assert all(m.leaves and m.target != i for m in mine)


def step(t: int, values: list[float], uses: tuple[str, ...] = ("0",)) -> Step:
    """A step that has evaluated programs of these values."""
    request = Request(Problem("p", (), {}), 1, uses=uses)
    role: Any = SimpleNamespace(seed=0, name="main", ledger=Ledger())
    s = Step(t, role)
    for i, value in enumerate(values):
        made = written(str(i), request, f"{t} {i}", "rule")
        made.info["evaluation"] = Evaluation(value)
        s.groups.append(Group(request.problem, [made]))
    return s


def uids(islands: Islands) -> list[list[int]]:
    return [[c.uid for c in island] for island in islands.islands]


def test_islands_take_turns() -> None:
    keep = Islands(Archive(), count=2, every=4)
    keep(step(0, [1.0], ()))
    assert uids(keep) == [[0], [0]]
    for t in (1, 2, 3):
        keep(step(t, [float(t), -float(t)]))
    assert uids(keep) == [[0, 1, 2, 5, 6], [0, 3, 4]]
    assert [c.island for c in keep.inner.history] == [0, 0, 0, 1, 1, 0, 0]
    assert [c.uid for c in keep.inner.pool().members] == [0, 3, 4]
    s = step(4, [0.5, 0.6])
    keep(s)  # the eighth candidate of two islands: migration, of 5 and of 3
    assert uids(keep) == [[0, 1, 2, 3, 5, 6], [0, 3, 4, 5, 7, 8]]
    assert s.metrics | {"island": 1, "migrants": 2, "members": 9, "best": 3.0} == s.metrics
    assert keep.inner.best is keep.inner.history[5]
    assert [c["island"] for c in keep.inner.journal()] == [0, 0, 0, 1, 1, 0, 0, 1, 1]


def test_admission_holds_on_every_island() -> None:
    keep = Islands(Archive(partial(top, size=2)), count=2, every=2)
    keep(step(0, [1.0], ()))
    keep(step(1, [5.0, 4.0, 3.0]))
    assert uids(keep) == [[1, 2], [0]]
    keep(step(2, [9.0, 8.0]))
    assert uids(keep) == [[1, 4], [4, 5]]  # 4 has come; 1 was not good enough there


def test_who_moves_is_gone() -> None:
    keep = Islands(Archive(keep_all), count=2, every=2, migration=partial(scatter, share=1.0))
    keep(step(0, [1.0], ()))
    keep(step(1, [5.0, 4.0, 3.0]))
    keep(step(2, [9.0, 8.0]))
    assert uids(keep) == [[0, 1, 5], [0, 2, 3, 4]]


def test_migration_is_by_candidates_and_not_by_steps() -> None:
    """A step of a batch may have several times as many as there are between two migrations."""
    keep = Islands(Archive(), count=2, every=3)
    keep(step(0, [1.0], ()))
    arrived = []
    for t, count in enumerate([4, 1, 1, 5, 20, 1], start=1):
        keep(s := step(t, [float(t)] * count))
        arrived.append(s.metrics["migrants"] > 0)
    assert arrived == [False, False, True, False, True, False]  # after 6, and beyond 12, 18, 24 and 30 of them


def test_all_islands_together_have_so_many_members() -> None:
    """The worst of all go, wherever they are; the best of each island stays."""
    keep = Islands(Archive(keep_all), count=2, every=100, most=3)
    keep(step(0, [1.0], ()))
    keep(step(1, [5.0, 4.0, 3.0]))
    assert uids(keep) == [[1, 2], [0]]  # the seed program is the second island's best
    keep(step(2, [0.0, -1.0]))
    assert uids(keep) == [[1, 2], [0]]
    s = step(3, [9.0, 8.0, 7.0])
    keep(s)
    assert uids(keep) == [[6, 7], [0]]
    assert s.metrics["members"] == 3.0


def test_a_seed_program_that_is_lost_is_awaited() -> None:
    keep = Islands(Archive(), count=2)
    keep(step(0, [], ()))
    keep(step(1, [1.0], ()))
    assert uids(keep) == [[0], [0]]
    assert keep.turn == 0


def test_a_state_is_gone_back_to() -> None:
    first, second = Islands(Archive(), count=2, every=1), Islands(Archive(), count=2, every=1)
    for t, values in enumerate([[1.0], [2.0, 3.0], [0.0, 5.0]]):
        first(step(t, values, ("0",) if t else ()))
    second.inner.recall(first.inner.journal())
    second.inner.load_state_dict(first.inner.state_dict())
    second.load_state_dict(first.state_dict())
    for t in (3, 4):
        for keep in (first, second):
            keep(step(t, [float(t), 0.0]))
        assert uids(first) == uids(second)
        assert first.inner.history == second.inner.history
        assert first.inner.members == second.inner.members


def test_what_cannot_be() -> None:
    with pytest.raises(UserError, match="archive"):
        Islands(object()).check(None)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="keep has islands twice: two of the recipes .* leave one of them out"):
        Islands(Islands(Archive())).check(None)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_search_on_islands(tmp_path: Path, task: str) -> None:
    (tmp_path / "archipelago.py").write_text(RECIPE)
    spec = RunSpec(f"{tmp_path / 'archipelago.py'}:archipelago", task, "none", "14 steps", seed=3)
    whole = begin(spec, tmp_path / "one", logs=("jsonl",))
    found = whole.view.candidates
    assert len(found) == 1 + 13 * 3
    assert [found[uid]["island"] for uid in sorted(found)][1:] == [i % 3 for i in range(13) for _ in range(3)]
    assert sum(n for _, n in whole.view.curve("migrants")) > 0
    for c in found.values():  # parents live on the island, or have come to it
        apart = [p for p in c["parents"] if p and found[p]["island"] != c["island"]]
        assert not apart or c["step"] > 6

    store = Store(tmp_path / "two")
    halved = Session(store, spec, "halved", logs=("jsonl",))

    def stop(progress: Progress) -> None:
        if progress.t == 9:
            halved.stopping.set()

    halved.watch = stop
    assert halved.start(assemble(spec)).interrupted
    assert len(read_run(store, "halved").candidates) < len(found)
    assert resume(store, "halved").view.candidates == found
