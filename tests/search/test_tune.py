"""Numbers that move all at once, by steps that adapt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.run.assemble import assemble
from evolvent.run.session import Result, begin
from evolvent.run.spec import RunSpec
from evolvent.search.tune import step
from evolvent.search.variation.constants import constants

START = "def f(x, c=1.0):\n    return 1.0 * x * x + -1.0 * x + c\n"
EVALUATOR = """
import math

def evaluate(program_path):
    scope = {}
    exec(open(program_path).read(), scope)
    error = 0.0
    for i in range(9):
        x = i / 4 - 1
        error += (scope["f"](x) - (2.5 * x * x - 3.2 * x + 0.7)) ** 2
    return {"combined_score": -error}
"""
Search = Callable[..., Result]


@pytest.fixture
def search(tmp_path: Path, sandboxed: str) -> Search:
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "program.py").write_text(START)
    task = f"program:{tmp_path}/evaluator.py:{tmp_path}/program.py"

    def run(recipe: str, name: str, budget: int = 200, **settings: str) -> Result:
        found = {key.replace("__", "."): value for key, value in settings.items()}
        spec = RunSpec(recipe, task, "none", f"{budget} evaluations", 0, found)
        return begin(spec, tmp_path / "runs", name, final=False, logs=())

    return run


def test_a_step_is_the_strategy_s() -> None:
    """sigma' is log-normal about sigma with tau = 1 / sqrt(2 d); a point is sigma' times a normal vector."""
    found = constants(START)
    sigmas, points = [], []
    for seed in range(600):
        text, sigma = step(START, found, 0.2, np.random.default_rng(seed))
        now = [c.value for c in constants(text)]
        points.append((np.log(now[0]) / sigma, np.log(now[1]) / sigma, (now[2] + 1.0) / sigma))  # -1.0 is shifted
        sigmas.append(np.log(sigma / 0.2))
    assert np.mean(sigmas) == pytest.approx(0.0, abs=4 / np.sqrt(6 * 600))
    assert np.std(sigmas) == pytest.approx(1 / np.sqrt(6), rel=0.12)
    assert np.mean(points, axis=0) == pytest.approx(np.zeros(3), abs=4 / np.sqrt(600))
    assert np.cov(np.transpose(points)) == pytest.approx(np.eye(3), abs=0.25)


@pytest.mark.slow
def test_steps_are_inherited_and_shrink_towards_an_optimum(search: Search) -> None:
    found = search("memetic", "es", rollout__tune__share="1").view.candidates
    tuned = {uid: c for uid, c in found.items() if c["operator"] == "numbers"}
    assert len(tuned) == len(found) - 1
    drawn = [np.log(c["notes"]["sigma"] / found[c["parents"][0]]["notes"].get("sigma", 0.3)) for c in tuned.values()]
    assert np.mean(drawn) == pytest.approx(0.0, abs=4 / np.sqrt(6 * len(drawn)))  # about the parent's
    best = max(found.values(), key=lambda c: c["evaluation"]["value"])
    assert best["evaluation"]["value"] > -1e-2
    numbers = [c.value for c in constants(best["payload"]["program"])]
    assert numbers == pytest.approx([0.7, 2.5, -3.2], abs=0.15)
    assert best["notes"]["sigma"] < 0.1


@pytest.mark.slow
def test_beside_operators_it_finds_better_numbers(search: Search) -> None:
    values = {}
    for recipe in ("memetic", "hill-climbing"):
        view = search(recipe, recipe, budget=150).view
        values[recipe] = max(c["evaluation"]["value"] or -np.inf for c in view.candidates.values())
        operators = {c["operator"] for c in view.candidates.values()}
        assert ("numbers" in operators) == (recipe == "memetic")
        assert len(operators) > 4  # the others have their share
    assert values["memetic"] > values["hill-climbing"]


def test_without_numbers_the_operators_remain(tmp_path: Path, sandboxed: str) -> None:
    (tmp_path / "evaluator.py").write_text("def evaluate(path):\n    return {'a': float(len(open(path).read()) % 7)}\n")
    (tmp_path / "program.py").write_text("def f(x):\n    return x + x\n")
    task = f"program:{tmp_path}/evaluator.py:{tmp_path}/program.py"
    spec = RunSpec("memetic", task, "none", "6 evaluations", 0, {"rollout.tune.share": "1"})
    found = begin(spec, tmp_path / "runs", "r", final=False, logs=()).view.candidates
    assert found[1]["operator"] not in ("numbers", "seed")


@pytest.mark.parametrize(("name", "value"), [("share", "1.5"), ("sigma", "0")])
def test_what_makes_no_sense(name: str, value: str) -> None:
    with pytest.raises(UserError, match=f"rollout.tune.{name} must be"):
        assemble(RunSpec("memetic", "program:circle-packing:5", "none", settings={f"rollout.tune.{name}": value}))
