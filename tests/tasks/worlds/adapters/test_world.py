"""The world of adapters: programs in the sandbox, operators on them, and a search."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.lineage.descent import text_of
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.variation.constants import constants
from evolvent.search.variation.syntax import mutate
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.adapters.genome import read
from evolvent.tasks.worlds.adapters.model import measured
from evolvent.tasks.worlds.adapters.world import COMPONENTS, SEED, Adapters, judge

TASK = "program:adapters:16"
CALL = "    add(seed=1, size=0.0)\n"


def program(*lines: str) -> str:
    """The seed program with other lines in its function."""
    return SEED.replace(CALL, "".join(f"    {line}\n" for line in lines))


def test_programs_are_judged_by_the_model_that_they_stand_for(task: ProgramTask) -> None:
    loop = program("for seed in range(3, 5):", "    add(seed, size=1.0 / seed)")
    arrays = program("import numpy as np", "[add(s, x) for s, x in zip(np.array([4, 3]), 1.0 / np.array([4, 3]))]")
    seed, first, second = task.evaluate([SEED, loop, arrays])
    value, accuracy = measured((), "train", 16, 16)
    assert (seed.value, seed.metrics["accuracy"], seed.metrics["parameters"]) == (value, accuracy, 0.0)
    assert seed.feedback == f"{round(16 * accuracy)} of 16 answers are right"
    assert first.value == second.value == measured(((3, 1 / 3), (4, 0.25)), "train", 16, 16)[0]
    assert first.value != seed.value
    assert first.metrics["parameters"] == 4.0


def test_splits_have_problems_of_their_own(task: ProgramTask) -> None:
    gate, both = task.evaluate([SEED, SEED], [task.instances("gate"), ("train", "gate")])
    assert set(gate.metrics) == {"accuracy", "parameters", "instance/gate"}
    assert gate.feedback.endswith(" of 300 answers are right")
    assert both.value == pytest.approx((both.metrics["instance/train"] + both.metrics["instance/gate"]) / 2)
    assert both.metrics["instance/gate"] == gate.value


@pytest.mark.parametrize(
    ("line", "status", "reason"),
    [
        ("add(1, float('nan'))", "invalid", "the size should be a number from -10 to 10"),
        ("add(1, 1e-3 * 1e6)", "invalid", "the size should be"),
        ("add(-3, 0.1)", "invalid", "the seed should be a whole number"),
        ("add(1.5, 0.1)", "invalid", "the seed should be"),
        ("[add(i, 0.001) for i in range(33)]", "invalid", "add was called 33 times, and 32 are allowed"),
        ("add(1, add)", "unreadable", ""),
        ("add(1)", "raised", "size"),
    ],
)
def test_what_a_program_does_wrong_is_told(task: ProgramTask, line: str, status: str, reason: str) -> None:
    (verdict,) = task.evaluate([program(line)])
    assert verdict.value is None
    assert reason in verdict.feedback
    assert verdict.status == status


def test_a_program_that_stands_for_no_model_is_refused(sandboxed: str) -> None:
    made = load_task(TASK)
    assert isinstance(made, Adapters)
    assert made.genome(program("add(5, 0.5)", "add(5, -0.5)", "add(2, 1)")) == ((2, 1.0),)
    with pytest.raises(UserError, match="the program stands for no model: call 1 of add: the size should be"):
        made.policy_of(program("add(5, 50.0)"))
    for size in ("3", "many", "2001"):
        with pytest.raises(UserError, match=f"adapters:{size}: the number of problems goes from 10 to 2000"):
            load_task(f"program:adapters:{size}")


def genome_of(text: str) -> object:
    """What a program gives, here: operators write no programs that do harm."""
    found: list[list[object]] = []
    names: dict[str, object] = {}
    exec(text, names)
    names["adapter"](lambda seed, size: found.append([seed, size]))  # type: ignore[operator]
    return read(found)


def test_components_are_calls_and_operators_make_genomes_of_them() -> None:
    found = [genome_of(program(*c.split("\n"))) for c in COMPONENTS]
    assert [len(genome) for genome in found] == [2] * len(COMPONENTS)  # type: ignore[arg-type]
    assert len({seed for genome in found for seed, _ in genome}) == 2 * len(COMPONENTS)  # type: ignore[attr-defined]
    rng, texts, made = np.random.default_rng(0), [program(*COMPONENTS[0].split("\n"))], Counter[str]()
    for _ in range(150):
        child = mutate(texts[-1], rng, texts[-3:-1], COMPONENTS)
        try:
            good = isinstance(genome_of(child.source), tuple)
        except Exception:
            good = False
        made[child.operator] += good
        if good and genome_of(child.source) != genome_of(texts[-1]):
            texts.append(child.source)
    assert {"tune", "insert", "delete", "cross", "replace"} <= {name for name, count in made.items() if count > 2}
    assert len({genome_of(t) for t in texts}) > 50


def test_what_tunes_all_numbers_leaves_the_seeds() -> None:
    assert [c.value for c in constants(program(*COMPONENTS[6].split("\n")))] == [-0.3, -0.3]


def test_a_search_finds_seeds_that_help(task: ProgramTask, tmp_path: Path) -> None:
    spec = RunSpec("hill-climbing", TASK, "none", "40 evaluations", seed=0)
    candidates = begin(spec, tmp_path, "one", logs=(), final=False).view.candidates
    worth = {uid: c["evaluation"]["value"] for uid, c in candidates.items() if c["evaluation"]["value"] is not None}
    best = max(worth, key=lambda uid: worth[uid])
    assert worth[best] > worth[0]
    (again,) = task.evaluate([text_of(candidates[best])])
    assert again.value == worth[best]
    assert again == judge([[s, x] for s, x in genome_of(text_of(candidates[best]))], ("train",), 16)  # type: ignore[attr-defined]


def test_torch_is_imported_when_a_genome_is_judged_and_not_before() -> None:
    code = "import sys; from evolvent.tasks.registry import load_task; load_task('program:adapters'); "
    code += "print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
