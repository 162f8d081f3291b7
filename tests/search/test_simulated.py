"""Searches by the simulated model: through the whole loop, resumed, and without texts, which has to be the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evolvent.core.ledger import Budget
from evolvent.engine.simulated_writer import Habits
from evolvent.lineage.store import Store
from evolvent.run.assemble import assemble
from evolvent.run.result import Progress
from evolvent.run.session import Session, begin, resume
from evolvent.run.spec import RunSpec
from evolvent.search import context, parents
from evolvent.search.archive import Archive
from evolvent.search.simulated import simulate
from evolvent.tasks.registry import load_task
from evolvent.tasks.settings import read_settings
from evolvent.tasks.worlds.landscape import Landscape

WRITES = {"rollout": "evolvent.search.write:Write"}
FULL = "skill=0.1,breakage=0.2,unusable=0.2,lazy=0.1,diversity=0.5,feedback=0.5,inspiration=0.3,edits=2"


def facts(archive: Archive) -> list[Any]:
    """What is to be the same; the feedback on what is not valid is not."""
    return [
        (c.uid, c.value, c.parents, c.operator, c.step, dict(c.evaluation.metrics), c.text if c.valid else "")
        for c in archive.history
    ]


@pytest.mark.parametrize(
    ("task", "model", "rule", "beside"),
    [
        ("program:landscape", "skill=0.3", "elite", "alone"),
        ("program:landscape:traits=2,trials=10,hint=true", FULL, "weighted", "best_and_random"),
        ("program:landscape:kind=stones,block=2,options=3", "skill=0.2", "thompson_clade", "alone"),
    ],
)
def test_without_texts_it_is_the_same_search(task: str, model: str, rule: str, beside: str) -> None:
    settings = {**WRITES, "propose.children": "1", "propose.parent": rule, "propose.context": beside}
    made = assemble(RunSpec("random-search", task, f"simulated:{model}", seed=3, settings=settings))
    for _ in made.system.run(Budget.parse("50 evaluations")):
        pass
    landscape = load_task(task)
    assert isinstance(landscape, Landscape)
    habits = read_settings(Habits, model, "simulated")
    found = simulate(landscape, habits, getattr(parents, rule), 50, 3, getattr(context, beside))
    whole = made.system.parts["keep"]
    assert isinstance(whole, Archive)
    assert facts(found) == facts(whole)
    assert made.system.ledger.of("verifier_calls") == 50
    assert made.system.ledger.of("sampled") > 0
    assert made.system.ledger.of("prefilled") > made.system.ledger.of("sampled")


def test_a_run_climbs_and_resumes_to_the_same_candidates(tmp_path: Path) -> None:
    spec = RunSpec("hill-climbing", "program:landscape", "simulated", "8 steps", 3, settings=WRITES)
    whole = begin(spec, tmp_path / "one", logs=("jsonl",))
    values = [value for _, value in whole.view.curve("best")]
    assert values[-1] > values[0]
    assert (whole.folder / "best.py").read_text().startswith('"""A machine')
    store = Store(tmp_path / "two")
    first = Session(store, spec, "halved", logs=("jsonl",))

    def stop(progress: Progress) -> None:
        if progress.t == 3:
            first.stopping.set()

    first.watch = stop
    assert first.start(assemble(spec)).interrupted
    resumed = resume(store, "halved")
    assert resumed.view.candidates == whole.view.candidates
    assert resumed.ledger.of("sampled") == whole.ledger.of("sampled")


def test_syntax_operators_find_their_way_as_well() -> None:
    made = assemble(RunSpec("hill-climbing", "program:landscape:parts=6", "none"))
    for _ in made.system.run(Budget.parse("60 evaluations")):
        pass
    archive = made.system.parts["keep"]
    assert isinstance(archive, Archive)
    assert archive.best is not None
    assert archive.best.value > archive.history[0].value


def test_more_skill_finds_more() -> None:
    landscape = load_task("program:landscape:k=1")
    assert isinstance(landscape, Landscape)
    found = []
    for skill in (0.0, 0.9):
        runs = [simulate(landscape, Habits(skill=skill), parents.elite, 40, seed).best for seed in range(4)]
        found.append(np.mean([best.value for best in runs if best is not None]))
    assert found[1] > found[0] + 0.03
