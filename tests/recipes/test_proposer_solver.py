"""Proposer and solver: what a proposal earns, what gets into the pool, who learns from it, and that it helps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import steps

from evolvent.bench.evaluate import Subject
from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.recipes.self_play.proposer_solver import Learnability, Pool
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.spec import RunSpec
from evolvent.tasks.base import distinct, split_of

SMALL = {"problems": 16, "n": 8}


def build(task: str = "countdown:3x20", **settings: Any) -> Assembled:
    """The pair on a seed model, which can propose."""
    plain: dict[str, Any] = {f"{role}/propose.{k}": v for role in ("proposer", "solver") for k, v in SMALL.items()}
    plain |= {f"{role}/learn.{k}": v for role in ("proposer", "solver") for k, v in (("lr", 3e-3), ("warmup", 0))}
    plain |= {"proposer/gate.every": 0, "solver/gate.every": 0}
    plain |= {path.replace("__", "/", 1).replace("__", "."): value for path, value in settings.items()}
    return assemble(RunSpec("proposer-solver", task, "tiny", settings=plain))


# --- the reward of a proposal, with a solver whose success rates are given -------------------------------------------


@dataclass
class Maker:
    """A task that reads a proposal as the problem of that name."""

    def parse(self, level: str, completion: str) -> Problem | None:
        """`?` is no problem."""
        return None if completion == "?" else Problem(completion, (), {})


@dataclass
class Proposer:
    """A role with that task."""

    task: Maker = field(default_factory=Maker)
    others: dict[str, Any] = field(default_factory=lambda: {"solver": None})


def keys_of(split: str, count: int) -> list[str]:
    """Names that belong to a split."""
    return [f"{i:04x}" for i in range(4096) if split_of(f"{i:04x}") == split][:count]


def earned(texts: list[str], rates: dict[str, float], pool: Pool) -> list[float]:
    """What each proposal earns."""
    request = Problem("request", (), {"level": "any"})
    rows = []
    for i, text in enumerate(texts):
        row = Trajectory(i, request, np.zeros(2, np.int32), np.arange(2) > 0, np.zeros(2, np.float32))
        row.completion = text
        rows.append(row)
    judge = Learnability()
    judge.pool = pool
    judge.rates = lambda solver, problems, s: {p.key: rates[p.key] for p in problems}  # type: ignore[method-assign]
    judge([Group(request, rows)], Step(0, Proposer()))  # type: ignore[arg-type]
    return [row.score for row in rows]


def test_a_proposal_earns_what_can_be_learned_from_it() -> None:
    hard, easy, known, never, always = keys_of("train", 5)
    (foreign,) = keys_of("test", 1)
    rates = {hard: 0.25, easy: 0.75, never: 0.0, always: 1.0}
    pool = Pool()
    pool.add([Problem(known, (), {})], {known: 0.5})
    texts = [hard, easy, never, always, known, foreign, "?"]
    assert earned(texts, rates, pool) == pytest.approx([0.75, 0.25, 0, 0, 0, 0, 0])
    assert set(pool.problems) == {hard, easy, known, never, always}
    assert [p.key for p in pool.useful] == [known, hard, easy]


def test_copies_share_what_their_problem_earns() -> None:
    (hard,) = keys_of("train", 1)
    assert earned([hard, hard, "?"], {hard: 0.25}, Pool()) == pytest.approx([0.375, 0.375, 0])


def test_the_oldest_leave_a_full_pool() -> None:
    pool = Pool(capacity=2)
    problems = [Problem(key, (), {}) for key in keys_of("train", 3)]
    pool.add(problems, {p.key: 0.5 for p in problems})
    assert [p.key for p in pool.useful] == [p.key for p in problems[1:]]


# --- the pair ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_solver_works_on_what_the_proposer_makes() -> None:
    made = build()
    before = {name: value.clone() for name, value in made.policy.weights().items()}
    base = made.policy.model.state_dict()
    frozen = {name: value.clone() for name, value in base.items() if "lora" not in name}
    first, second = steps(made.system, 1)
    pool = made.system.roles["proposer"].keep
    assert first.role.name == "proposer"
    assert first.metrics["proposals/valid"] > 0.2
    assert pool.useful
    assert all(split_of(key) == "train" for key in pool.problems)
    asked = [g.problem.key for g in second.groups]
    assert sum(key in pool for key in asked) >= second.metrics["proposals/used"] == 8
    after = made.policy.weights()
    for role in ("proposer", "solver"):
        own = [name for name in before if f".{role}." in name]
        assert any(not torch.equal(before[name], after[name]) for name in own)
    assert all(torch.equal(value, base[name]) for name, value in frozen.items())


def test_without_a_share_the_solver_is_on_its_own() -> None:
    _, solver = steps(build(solver__propose__share=0.0).system, 1)
    assert solver.metrics["proposals/used"] == 0
    assert len(solver.groups) == 16


def test_other_tasks_are_refused() -> None:
    with pytest.raises(UserError, match="makes up problems of countdown or arith, not of calc"):
        build("calc")


@pytest.mark.slow
def test_the_solver_gets_better_at_the_task() -> None:
    made = build("countdown", solver__propose__problems=64, proposer__propose__problems=32, solver__learn__lr=1e-3)

    def accuracy() -> float:
        role = made.system.roles["solver"]
        subject = Subject(role.policy, role.engine, made.task, role.ledger, 0, role.adapter)
        groups = subject.roll(distinct(made.task, "gate", 200, 0), 8, 1.0, "test")
        return float(np.mean([t.outcome for g in groups for t in g.trajectories]))

    start = accuracy()
    steps(made.system, 10)
    assert accuracy() > start + 0.05
