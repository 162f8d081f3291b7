"""eva: what problems are worth, whose children come, what these look like, and each of it switched off."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.recipes.recipe_runs import build, steps, without

from evolvent.core.errors import UserError
from evolvent.core.records import Problem
from evolvent.core.step import Step
from evolvent.propose.evolve import Evolve, alike, average, drawn, earned, gap, inverse, room, variance
from evolvent.recipes import all_recipes
from evolvent.tasks.base import split_of
from evolvent.tasks.registry import load_task
from evolvent.tasks.rewrite import rewrite

TASK = "arith:1x1,6x1"  # sometimes right; never right


def evolving(made: Any) -> Evolve:
    """The part that evolves the problems."""
    part = made.system.parts["propose.evolve"]
    assert isinstance(part, Evolve)
    return part


def seen(taken: list[Step]) -> list[Problem]:
    """The problems of all steps."""
    return [g.problem for s in taken for g in s.groups]


# --- estimate and sample ---------------------------------------------------------------------------------------------


def test_worth_by_hand() -> None:
    scores = np.array([1.0, 0.0, 0.5, 0.0])  # mean 3/8; squares 5/16
    found = [f(scores) for f in (gap, room, variance, average, inverse, alike)]
    assert found == pytest.approx([1, 5 / 8, 5 / 16 - 9 / 64, 3 / 8, 1, 1])
    assert [f(np.array([0.25, 0.25])) for f in (gap, inverse, alike)] == pytest.approx([0, 1000, 1])


def test_draws_are_in_proportion_and_without_repeats() -> None:
    rng, weight = np.random.default_rng(0), np.array([0.0, 1.0, 3.0, -1.0])
    first = [drawn(1, weight, rng)[0] for _ in range(4000)]
    assert np.bincount(first, minlength=4) / 4000 == pytest.approx([0, 0.25, 0.75, 0], abs=0.03)
    assert sorted(drawn(4, weight, rng)) == [1, 2]
    assert drawn(2, np.zeros(3), rng) == []


def test_parents_are_those_with_a_gap() -> None:
    made = build("eva", TASK, propose__problems=12)
    (s,) = steps(made.system, 1)
    gaps = {g.problem.key: max(t.score for t in g.valid) - min(t.score for t in g.valid) for g in s.groups}
    assert s.metrics["evolve/gap"] == pytest.approx(np.mean([gaps[g.problem.key] for g in s.groups]))
    assert 0 < s.metrics["evolve/gap"] < 1
    children = [p for p, _ in evolving(made).buffer.values()]
    parents = {p.origin for p in children}
    assert 0 < len(parents) <= 3  # a quarter of twelve
    assert all(gaps[str(key)] == 1 for key in parents)
    assert len(parents) < len(children) <= 12  # four of each, less twins


def test_without_info_parents_are_drawn_blindly() -> None:
    def useful(**settings: Any) -> float:
        still: dict[str, Any] = {
            "propose__problems": 16,
            "propose__n": 8,
            "propose__evolve__rewrite__depth": 0.0,
            "learn__lr": 1e-6,
        }
        taken = steps(build("eva", TASK, **still, **settings).system, 7)[2:]
        return float(np.mean([s.metrics["evolve/gap"] for s in taken]))

    assert useful() > useful(propose__evolve__worth="alike") + 0.2


# --- evolve ----------------------------------------------------------------------------------------------------------


def numbers(problem: Problem) -> list[int]:
    """The numbers of an expression without products."""
    return [int(n) for n in problem.data["expression"].replace("-", "+").split("+")]


def test_children_in_depth_and_in_breadth() -> None:
    task, rng = load_task("arith:2x1,2x2"), np.random.default_rng(0)
    for _ in range(50):
        parent = task.draw("train", rng, "2x1")
        wide, deep = (rewrite(parent, task, rng, depth=d) for d in (0.0, 1.0))
        assert (wide.category, deep.category) == ("2x1", "2x2")
        assert sum(a != b for a, b in zip(numbers(parent), numbers(wide), strict=True)) == 1
        assert deep.data["expression"].startswith(parent.data["expression"])
        assert len(numbers(deep)) == 3
        for child in (wide, deep):
            assert child.data["answer"] == eval(child.data["expression"])
            assert split_of(child.key) == "train"
            assert (child.origin, child.task) == (parent.key, parent.task)
        assert rewrite(deep, task, rng, depth=1.0).category == "2x2"  # there is no level after it


def reach(listed: list[int]) -> set[int]:
    """What three numbers, each used once, come to by any two operations, in 1 to 99 without fractions below zero."""
    found = set()
    for a, b, c in itertools.permutations(listed):
        for x in (a + b, a - b, a * b, a // b if b > 1 and a % b == 0 else 0):
            if x > 0:
                found |= {x + c, x - c, c - x, x * c}
                found |= {p // q for p, q in ((x, c), (c, x)) if q > 1 and p % q == 0}
    return {v for v in found if 1 <= v <= 99}


def test_a_countdown_aims_as_near_as_it_can() -> None:
    task, rng = load_task("countdown:2x20,3x20"), np.random.default_rng(1)
    for _ in range(20):
        parent = task.draw("train", rng, "2x20")
        child = rewrite(parent, task, rng, depth=1.0)
        assert child.data["numbers"][:2] == parent.data["numbers"]
        aim = parent.data["target"]
        possible = reach(child.data["numbers"])
        assert child.data["target"] in possible
        assert abs(child.data["target"] - aim) == min(abs(v - aim) for v in possible)


def test_other_tasks_have_new_problems_of_the_level() -> None:
    task, rng = load_task("calc:1x1,1x2"), np.random.default_rng(2)
    parent = task.draw("train", rng, "1x1")
    assert [rewrite(parent, task, rng, depth=d).category for d in (0.0, 1.0)] == ["1x1", "1x2"]
    both = load_task("arith:1x1+countdown:2x20")
    first = both.draw("train", rng, "arith:1x1/1x1")
    assert rewrite(first, both, rng, depth=1.0).task == "arith:1x1"


LISTED = """
def problems(): return [{"prompt": f"{i}+1=", "answer": str(i + 1)} for i in range(60)]
def reward(completion, answer): return float(completion == answer)
"""
REWRITE = """
def rewrite(answer, seed):
    if seed % 3 == 0: raise RuntimeError("no idea")
    return {"prompt": f"{answer}+{seed % 10}=", "answer": str(int(answer) + seed % 10)}
"""


def test_a_task_of_the_users_own_rewrites_its_problems(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(LISTED + REWRITE)
    made = build("eva", str(tmp_path / "own.py"), propose__problems=12, propose__evolve__worth="alike")
    taken = steps(made.system, 3)
    children = [p for p in seen(taken[1:]) if p.origin is not None]
    assert children
    assert all(p.data["prompt"].partition("+")[2] != "1=" or int(p.data["answer"]) > 60 for p in children)
    assert 0 < taken[0].metrics["evolve/failed"] < 12


@pytest.mark.parametrize(
    ("more", "what"), [("", "is a list of problems"), ("def rewrite(): 1 / 0", "fails in rewrite")]
)
def test_a_list_that_cannot_be_rewritten_is_refused(tmp_path: Path, more: str, what: str) -> None:
    (tmp_path / "own.py").write_text(LISTED + more)
    with pytest.raises(UserError, match=what):
        build("eva", str(tmp_path / "own.py"))
    build("eva", str(tmp_path / "own.py"), propose__evolve__share=0.0)  # the problems as they are


def test_depth_decides_how_many_are_harder() -> None:
    def harder(depth: float) -> float:
        made = build("eva", "arith:1x1,1x2", propose__problems=12, propose__evolve__rewrite__depth=depth)
        steps(made.system, 4)
        young = [p for p, _ in evolving(made).buffer.values()]
        assert young
        return float(np.mean([p.category == "1x2" for p in young]))

    assert harder(1.0) == 1.0 > harder(0.0)


# --- the problems of a step ------------------------------------------------------------------------------------------


def test_four_fifths_are_children() -> None:
    made = build("eva", propose__problems=12)
    taken = steps(made.system, 5)
    for before, s in itertools.pairwise(taken):
        expected = min(10, round(before.metrics["evolve/buffer"]))
        assert s.metrics["evolve/children"] == sum(g.problem.origin is not None for g in s.groups) == expected
    assert max(s.metrics["evolve/children"] for s in taken) == 10
    assert all(p.origin is None for p in seen(taken[:1]))


def test_without_children_there_are_only_the_seeds() -> None:
    made = build("eva", propose__problems=6, propose__evolve__share=0.0, propose__evolve__seeds=8)
    taken = seen(steps(made.system, 6))
    assert {p.key for p in taken} <= {p.key for p in evolving(made).known}
    assert len(evolving(made).known) == 8
    assert all(p.origin is None for p in taken)
    with without("eva", "propose") as ablated:
        free = steps(build(ablated, "arith:2x2", propose__problems=6).system, 6)
        assert len({p.key for p in seen(free)}) > 30  # no set of seeds, either


def test_the_number_of_children() -> None:
    def young(count: int) -> float:
        made = build("eva", "arith:1x1,1x2", propose__problems=12, propose__evolve__children=count)
        return steps(made.system, 1)[0].metrics["evolve/buffer"]

    assert 0 < young(1) <= 3 < young(4) <= 12


@pytest.mark.parametrize("again", [False, True])
def test_children_come_once_or_by_their_worth(again: bool) -> None:
    made = build("eva", "arith:2x1", propose__problems=10, propose__evolve__again=again)
    part, rng = evolving(made), np.random.default_rng(0)
    problems = {p.key: p for p in (made.task.draw("train", rng) for _ in range(20))}
    part.buffer = {key: (p, float(i % 2)) for i, (key, p) in enumerate(problems.items())}
    before = dict(part.buffer)
    (requests,) = part(Step(0, made.system.roles[""]))
    given = [r.problem.key for r in requests][:8]
    assert len(set(given)) == 8
    assert set(part.buffer) == set(before) - (set() if again else set(given))
    assert again == all(before[key][1] == 1.0 for key in given)


def test_a_child_that_was_tried_is_worth_what_its_answers_show() -> None:
    made = build("eva-rloo", propose__problems=10, propose__evolve__warmup=0)
    for _ in range(3):
        (s,) = steps(made.system, 1)
    tried = {g.problem.key: g for g in s.groups if g.problem.key in evolving(made).buffer}
    assert tried
    for key, group in tried.items():
        outcomes = [t.outcome for t in group.valid]
        assert evolving(made).buffer[key][1] == pytest.approx(max(outcomes) - min(outcomes))


def test_the_reference_takes_nothing_from_what_is_earned() -> None:
    made = build("eva-rloo", learn__lr=1e-2)
    s = steps(made.system, 3)[-1]
    rows = [t for g in s.groups for t in g.valid]
    assert any(abs(t.score - t.outcome) > 1e-6 for t in rows)
    assert [earned(t) for t in rows] == [t.outcome for t in rows]


def test_phases() -> None:
    made = build("eva-rloo", propose__problems=10, propose__evolve__warmup=2, propose__evolve__alone=6)
    shares = [s.metrics["evolve/children"] for s in steps(made.system, 8)]
    assert shares[:2] == [0, 0]
    assert max(shares[2:6]) == 8
    assert max(shares[6:]) > 8


# --- the solver ------------------------------------------------------------------------------------------------------


def test_the_solver_is_that_of_the_scripts() -> None:
    eva = all_recipes()["eva"]
    values = {".".join(op.path[1:]): getattr(op, "value", None) for op in eva.ops}
    assert values == {"propose.n": 6, "propose": None, "learn.beta": 0.05, "learn.lr": 5e-7, "learn.epochs": 2}
    (batch,) = [b for s in steps(build("eva", propose__problems=10).system, 1) for b in s.batches]
    pairs = batch.columns["pair"]
    for i in np.unique(pairs):
        best, worst = (batch.rows[j] for j in np.flatnonzero(pairs == i))
        assert (best.outcome, worst.outcome) == (1.0, 0.0)
