"""The simulated world: the form of its programs, what is refused, and that reading gives what running would."""

from __future__ import annotations

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Sandbox
from evolvent.search.variation.blocks import blocks
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.landscape import NAMES, Landscape, part_name, read
from evolvent.tasks.worlds.terrain import Terrain

SMALL = Landscape(Terrain(parts=5, options=3, k=1, traits=1, seed=2))
SEED = SMALL.seed_program


def test_a_program_says_its_choices() -> None:
    for choices in np.random.default_rng(0).integers(3, size=(20, 6)):
        text = SMALL.text(choices)
        assert (SMALL.choices(text) == choices).all()
        assert SMALL.evaluate([text])[0].value == SMALL.terrain.value(choices) == SMALL.true_value(text)
    assert len(blocks(SEED)) == 1


def test_reading_gives_what_running_would() -> None:
    names: dict[str, object] = {}
    exec(SEED, names)  # our own text
    assert names["machine"]() == read(SEED)  # type: ignore[operator]


def test_it_is_judged_alike_where_it_runs(sandboxed: str) -> None:
    with Sandbox() as sandbox:
        (outcome,) = sandbox.run([SMALL.world.call(SEED, ())], SMALL.world.limits)
    assert SMALL.world.judge(outcome.value, ()) == SMALL.evaluate([SEED])[0]


def test_a_later_line_counts() -> None:
    line = next(line for line in SEED.split("\n") if "=" in line)
    name = line.split()[0]
    twice = SEED.replace("    return", f'    {name} = "eager"\n    return')
    assert read(twice)[name] == "eager"
    assert (SMALL.options[SMALL.choices(twice)[SMALL.places[name]]]) == "eager"


LINE = SEED.split("\n")[6]
PART = LINE.split()[0]
WRONG = {
    "": "must be one function machine",
    "x = 1": "must be one function machine",
    "import os\n" + SEED: "must be one function machine",
    SEED + "\nmachine()": "must be one function machine",
    SEED.replace("machine()", "engine()"): "must be one function machine",
    SEED.replace("machine()", "machine(x=__import__('os'))"): "takes no arguments",
    SEED.replace("def machine", "@staticmethod\ndef machine"): "no decorators",
    SEED.replace("return locals()", "return {}"): "must be an assignment",
    SEED.replace("    return locals()", "    pass"): "must be an assignment",
    SEED.replace("    return locals()\n", ""): "must end in return locals",
    SEED.replace("return locals()", "return locals()\n    engine = 'lazy'"): "comes after the return",
    SEED.replace(LINE, f"    {PART} = 3"): "must be an assignment",
    SEED.replace(LINE, f"    {PART} = 'lazy' + ''"): "must be an assignment",
    SEED.replace(LINE, f"    {PART}, _ = 'lazy', 1"): "must be an assignment",
    SEED.replace(LINE, "    pass"): "must be an assignment",
    SEED.replace(LINE + "\n", ""): f"no implementation of {PART}",
    SEED.replace(LINE, f'    {PART} = "quick"'): f"{PART} has no implementation 'quick'",
    SEED.replace(LINE, f'    {PART} = "sparse"'): "has no implementation 'sparse'",  # of another landscape
    SEED.replace(LINE, LINE + '\n    engine = "lazy"'): "there is no part engine",
}


@pytest.mark.parametrize("program", WRONG)
def test_other_forms_are_not_valid(program: str) -> None:
    (found,) = SMALL.evaluate([program])
    assert (found.value, found.status) == (None, "invalid")
    assert WRONG[program] in found.feedback


@pytest.mark.parametrize("program", ["def machine(:", "\0", "(" * 3000])
def test_what_is_no_python(program: str) -> None:
    (found,) = SMALL.evaluate([program])
    assert found.value is None
    assert found.feedback


def test_what_is_asked_tells_the_names_and_nothing_of_what_they_are_worth() -> None:
    landscape = Landscape(Terrain(traits=2, hint=True))
    told = landscape.world.goal + landscape.seed_program
    assert all(f"{name}" in told for name in (*landscape.names, *landscape.options))
    assert f"{landscape.terrain.optimum[0]:.3f}" not in told
    same = Landscape(Terrain(traits=2, hint=True, kind="stones")).world.goal
    assert same == landscape.world.goal  # not even of what kind it is
    assert landscape.evaluate([landscape.seed_program])[0].feedback.startswith("The part that adds least: ")
    assert SMALL.evaluate([SEED])[0].feedback == ""


def test_trials_are_binomial_and_the_same_each_time() -> None:
    noisy = Landscape(Terrain(trials=50, seed=1))
    rows = np.random.default_rng(1).integers(4, size=(300, 24))
    found = [noisy.verdict(row) for row in rows]
    assert found == [noisy.verdict(row) for row in rows]
    true = noisy.terrain.values(rows)
    errors = np.array([v.value for v in found], float) - true
    assert abs(errors.mean()) < 4 * np.sqrt((true * (1 - true)).mean() / 50 / 300)
    assert errors.var() == pytest.approx((true * (1 - true)).mean() / 50, rel=0.35)
    for verdict in found:
        assert verdict.metrics["successes"] + verdict.metrics["failures"] == 50
        assert verdict.value == verdict.metrics["successes"] / 50


def test_names_of_parts_differ() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert len({part_name(i) for i in range(220)}) == 220


def test_it_is_a_task_by_name() -> None:
    task = load_task("program:landscape:k=3,seed=5")
    assert isinstance(task, Landscape)
    assert (task.terrain.k, task.terrain.seed, task.name) == (3, 5, "program:landscape:k=3,seed=5")
    assert load_task("program:landscape").name == "program:landscape"
    with pytest.raises(UserError, match="landscape: k must be int"):
        load_task("program:landscape:k=often")
