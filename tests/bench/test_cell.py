"""A cell: what it measures, on which problems, at whose cost, and when it is the same cell as another."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
import torch
from tests.recipes import recipe_runs  # the profile `short`
from tests.small_model import small_model

from evolvent.bench.cell import Cell, failed_in, measure, run_cell
from evolvent.bench.evaluate import Subject
from evolvent.bench.probes import find_probe
from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Group, Problem
from evolvent.core.step import Step
from evolvent.guard.gate import Watch
from evolvent.tasks.base import Score, distinct, split_of


def cell(recipe: str = "grpo", **changes: Any) -> Cell:
    """Six small steps on one-digit sums, with three evaluations on the way."""
    assert "short" in recipe_runs.PROFILES
    made = Cell(recipe, recipe, "arith:1x1", small_model(), 0, "6 steps", profile="short", evals=3, problems=24)
    return dataclasses.replace(made, **changes)


@cache
def usual() -> dict[str, Any]:
    """The result of the usual cell."""
    return run_cell(cell())


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    """A result less what differs from run to run, and the name of its arm."""
    kept = {k: v for k, v in result.items() if k != "seconds"}
    kept["spent"] = {k: v for k, v in kept["spent"].items() if "seconds" not in k}
    kept["cell"] = {k: v for k, v in kept["cell"].items() if k != "arm"}
    return kept


def test_it_repeats_under_another_name_too() -> None:
    assert without_times(run_cell(cell(arm="ours"))) == without_times(usual())


def test_evaluations_come_at_equal_shares_of_the_budget() -> None:
    assert [p["step"] for p in usual()["curve"]] == [0, 2, 4, 6]
    assert [p["spent"] for p in usual()["curve"]] == [0, 2, 4, 6]


def test_watching_costs_nothing_and_changes_nothing() -> None:
    often, once = usual(), run_cell(cell(evals=1))
    assert len(once["curve"]) == 2
    assert often["curve"][-1] == once["curve"][-1]
    assert often["train"] == once["train"]
    counts = ("sampled", "trained", "verifier_calls", "steps")
    assert {u: often["spent"][u] for u in counts} == {u: once["spent"][u] for u in counts}


def test_a_budget_in_tokens_is_passed_by_at_most_a_step() -> None:
    result = run_cell(cell(budget="300 tokens"))
    spent, steps = result["spent"]["sampled"], result["spent"]["steps"]
    assert 300 <= spent < 300 + 2 * spent / steps
    assert result["curve"][-1]["spent"] == spent


def test_seeds_start_alike_and_go_different_ways() -> None:
    other = run_cell(cell(seed=1))
    assert other["curve"][0] == usual()["curve"][0]
    assert other["train"] != usual()["train"]


def test_what_does_not_learn_is_evaluated_once_and_spends_nothing() -> None:
    result = run_cell(cell("no-change"))
    assert result["curve"] == usual()["curve"][:1]
    assert sum(result["spent"].values()) == 0


def test_training_and_testing_share_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    trained, tested = set[str](), set[str]()
    look, roll = Watch.__call__, Subject.roll

    def looked(self: Watch, s: Step) -> bool:
        trained.update(g.problem.key for g in s.groups)
        return look(self, s)

    def rolled(self: Subject, problems: Sequence[Problem], *rest: Any) -> list[Group]:
        tested.update(p.key for p in problems)
        return roll(self, problems, *rest)

    monkeypatch.setattr(Watch, "__call__", looked)
    monkeypatch.setattr(Subject, "roll", rolled)
    run_cell(cell(budget="2 steps", evals=1))
    assert {split_of(key) for key in trained} == {"train"}
    assert {split_of(key) for key in tested} == {"test"}
    assert len(tested) == 24


def test_more_samples_give_pass_at_k() -> None:
    point = run_cell(cell("no-change", k=4))["curve"][0]
    assert point["sampled"] <= point["pass@4"]
    assert 1 <= point["distinct"] <= 4
    assert "pass@4" not in usual()["curve"][0]


def measured(outage: Callable[[int, str], bool]) -> dict[str, float]:
    """An evaluation, 4 samples of 24 problems, where the verifier is out for some of the problems' completions."""
    made = recipe_runs.build("no-change", "arith:1x1")
    problems = distinct(made.task, "test", 24)
    place = {p.key: i for i, p in enumerate(problems)}

    class Sometimes:
        """The task, but for its outages."""

        def __getattr__(self, name: str) -> Any:
            return getattr(made.task, name)

        def score(self, problem: Problem, completion: str) -> Score:
            """See `Task`."""
            if outage(place[problem.key], completion):
                raise VerifierError("out")
            return made.task.score(problem, completion)

    return measure(cell("no-change", k=4), made, Sometimes(), problems)


def test_errors_of_the_verifier_are_no_wrong_answers() -> None:
    """Problems that it cannot judge are left out of every figure, and counted."""
    whole, half = measured(lambda i, _: False), measured(lambda i, _: i % 2 == 0)
    assert "errors" not in whole
    assert half["errors"] == 12 + 12 * 4
    odd = measured(lambda i, _: i % 2 == 1)
    for name in ("greedy", "sampled", "pass@4", "distinct"):
        assert whole[name] == pytest.approx((half[name] + odd[name]) / 2), name
    none = measured(lambda i, _: True)
    assert all(math.isnan(none[name]) for name in ("greedy", "sampled", "pass@4", "distinct", "length"))
    assert failed_in({"curve": [whole, half, none]}) == 60 + 120


def test_another_task_may_be_the_test() -> None:
    own, other = usual()["curve"][0], run_cell(cell("no-change", test="arith:3x2"))["curve"][0]
    assert other["greedy"] < own["greedy"]


def test_a_probe_is_asked_at_every_evaluation() -> None:
    result = run_cell(cell("mc-grpo", task="arith:1x1-chain", budget="1 step", evals=1, probes=("sign_flips",)))
    assert all(0 <= p["probe.sign_flips"] <= 1 for p in result["curve"])
    assert result["spent"]["sampled"] < 1000  # 64 rollouts of 32 problems are on another account


def test_of_several_roles_the_one_with_the_task_is_measured() -> None:
    """The proposer has an adapter of its own, which must not be what is tested."""
    one = cell("proposer-solver", budget="1 step", evals=1)
    assert [p["step"] for p in run_cell(one)["curve"]] == [0, 1]
    made = recipe_runs.build("proposer-solver")
    problems = distinct(made.task, "test", 24)

    def after_a_change_of(role: str) -> dict[str, float]:
        with torch.no_grad():
            for name, parameter in made.policy.model.named_parameters():
                if f".{role}." in name:
                    parameter.normal_(std=0.5)
        return measure(one, made, made.task, problems)

    before = measure(one, made, made.task, problems)
    assert after_a_change_of("proposer") == before
    assert after_a_change_of("solver") != before


CHANGES = {
    "recipe": "rloo",
    "task": "arith:2x1",
    "model": "tiny-1",
    "seed": 1,
    "budget": "7 steps",
    "settings": {"learn.lr": 1e-4},
    "take": {"learn.lr": "grpo"},
    "profile": "paper",
    "test": "arith:2x1",
    "evals": 4,
    "problems": 25,
    "k": 2,
    "probes": ("sign_flips",),
}


def test_the_key_knows_everything_but_the_arms_name() -> None:
    plain = cell()
    assert {f.name for f in dataclasses.fields(Cell)} == {*CHANGES, "arm"}
    keys = {cell(**{name: value}).key("code") for name, value in CHANGES.items()}
    assert len(keys) == len(CHANGES)
    assert plain.key("code") not in keys
    assert plain.key("other code") != plain.key("code")
    assert cell(arm="ours").key("code") == plain.key("code")


def share_of_one(role: Any, t: int) -> float:
    """A probe of somebody's own."""
    return 0.25 + t


def test_probes_can_come_from_anywhere() -> None:
    assert find_probe(f"{__name__}:share_of_one")(None, 1) == 1.25  # type: ignore[arg-type]
    for name in ("sign_flip", f"{__name__}:nothing", "no.such.module:x"):
        with pytest.raises(UserError, match=r"unknown probe `.*give module:function"):
            find_probe(name)
