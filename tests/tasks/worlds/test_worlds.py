"""What all worlds of the package have in common: seeds that run, components that help, no values in what is asked."""

from __future__ import annotations

import ast
import warnings
from typing import Any

import pytest

from evolvent.core import places
from evolvent.core.errors import UserError
from evolvent.tasks.program import ProgramTask, World
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds import WORLDS

SEEDS = {  # name -> the value of its seed program, a component that improves it, to what at least
    "autocorrelation-1": (-2.0, "h = descend(h, 400)", -1.55),
    "autocorrelation-2": (2 / 3, "h = climb(h, 400)", 0.8),
    "autocorrelation-3": (-2.0, "h = descend(h, 400)", -1.55),
    "heilbronn": (4 / 10**3, "points = polish(points, 40)", 0.01),
    "overlap": (-0.5, "h = descend(h, 6)", -0.45),
}
SIZES = [(name, size) for name in SEEDS for size in WORLDS[name][1].split(", ")]
END = "\n# EVOLVE-BLOCK-END"


def make(name: str, *size: str) -> World:
    world = places.at(WORLDS[name][0])(*size)
    assert isinstance(world, World)
    return world


def varied(seed: str, component: str) -> str:
    """A seed program with one more statement before it returns."""
    body, end = seed.split(END)
    *before, last = body.split("\n")
    return "\n".join([*before, f"    {component}", last]) + END + end


@pytest.mark.parametrize(("name", "size"), SIZES)
def test_nothing_that_is_asked_tells_a_best_known_value(name: str, size: str) -> None:
    world = make(name, size)
    told = "\n".join([world.goal, world.seed, *world.components])
    assert f"program:{name}:{size}" == world.name
    for known in (k for n in places.at(WORLDS[name][0].replace(":world", ":KNOWN")).values() for k in n):
        assert f"{abs(known[0]):.3f}" not in told
        assert f"{int(abs(known[0]) * 1000) / 1000:.3f}" not in told


@pytest.mark.parametrize("name", SEEDS)
def test_sizes(name: str) -> None:
    known = places.at(WORLDS[name][0].replace(":world", ":KNOWN"))
    assert all(make(name, str(n)).known == values for n, values in known.items())
    assert make(name).name.endswith(":" + WORLDS[name][1].split(", ")[0])
    for size in ("many", "0", "-3", "99999"):
        with pytest.raises(UserError, match=f"{name}:{size}: the number of (steps|points) goes from") as refused:
            load_task(f"program:{name}:{size}")
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", SEEDS)
def test_components_are_statements_that_run_in_the_seed(name: str) -> None:
    world = make(name, "12")
    for component in world.components:
        assert len(ast.parse(component).body) == 1
        names: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(varied(world.seed, component), names)
            found = world.judge(names["run"](12, 0).tolist(), ())
        assert found.value is not None or found.feedback.startswith("point "), component


@pytest.mark.parametrize("name", SEEDS)
def test_programs_of_a_world(name: str, sandboxed: str) -> None:
    value, component, least = SEEDS[name]
    task = ProgramTask(make(name))
    assert component in task.components
    cheating = "def run(n, seed):\n    return [float('nan')] * n\n"
    with task.sandbox:
        seed, better, wrong = task.evaluate([task.seed_program, varied(task.seed_program, component), cheating])
    assert seed.value == pytest.approx(value, abs=1e-12)
    assert better.value is not None
    assert better.value > least
    assert (wrong.value, wrong.status) == (None, "invalid")
