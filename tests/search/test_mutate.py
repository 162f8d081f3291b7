"""Variation by rules: what a choice of operators learns, what novelty turns down, and how both go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evolvent.lineage.store import Store
from evolvent.run.assemble import assemble
from evolvent.run.result import Progress
from evolvent.run.session import Session, begin, resume
from evolvent.run.spec import RunSpec
from evolvent.search.choice import AsymmetricUCB, outcomes
from evolvent.search.mutate import Mutate
from evolvent.search.novelty import likeness

CHOICE = {"rollout.mutate.choice": "evolvent.search.choice:AsymmetricUCB"}


def candidates(folder: Path, task: str, budget: str = "40 evaluations", **settings: str) -> list[dict[str, Any]]:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    result = begin(RunSpec("hill-climbing", task, "none", budget, 2, named), folder, logs=("jsonl",))
    return list(result.view.candidates.values())


def test_a_choice_learns_from_every_candidate(tmp_path: Path, task: str) -> None:
    spec = RunSpec("hill-climbing", task, "none", "40 evaluations", 2, CHOICE)
    session = Session(Store(tmp_path / "runs"), spec, "one", logs=("jsonl",))
    assembled = assemble(spec)
    session.start(assembled)
    mutate = assembled.main_role.parts["rollout.mutate"]
    archive = assembled.main_role.slots["keep"]
    assert isinstance(mutate, Mutate)
    assert isinstance(mutate.choice, AsymmetricUCB)
    learned = archive.history[: mutate.told]
    assert mutate.choice.updated.sum() == sum(c.operator in mutate.choice.arms for c in learned)
    again = AsymmetricUCB(mutate.choice.arms)
    for c, reward in outcomes(learned, 0):
        if c.operator in again.arms:
            again.update(c.operator, reward)
    assert mutate.choice.log_means() == pytest.approx(again.log_means())


def test_what_is_too_similar_is_varied_anew(tmp_path: Path, task: str) -> None:
    rule = {
        "rollout__mutate__novel": "dissimilar",
        "rollout__mutate__novel__threshold": "0.97",
        "rollout__mutate__tries": "40",
    }
    free, strict = candidates(tmp_path / "free", task), candidates(tmp_path / "strict", task, **rule)

    def nearest(found: list[dict[str, Any]]) -> list[float]:
        texts = [c["payload"]["program"] for c in found]
        valid = [c["evaluation"]["value"] is not None for c in found]
        return [
            max(likeness(texts[i], texts[k]) for k in range(i) if valid[k] and found[k]["step"] < found[i]["step"])
            for i in range(1, len(found))
        ]

    near = sum(x >= 0.97 for x in nearest(free))
    assert near > 2 * sum(x >= 0.97 for x in nearest(strict))


@pytest.mark.slow
def test_a_choice_goes_on_where_it_was(tmp_path: Path, task: str) -> None:
    spec = RunSpec("hill-climbing", task, "none", "6 steps", 3, CHOICE)
    whole = begin(spec, tmp_path / "one", logs=("jsonl",))
    store = Store(tmp_path / "two")
    first = Session(store, spec, "halved", logs=("jsonl",))

    def stop(progress: Progress) -> None:
        if progress.t == 3:
            first.stopping.set()

    first.watch = stop
    assert first.start(assemble(spec)).interrupted
    assert resume(store, "halved").view.candidates == whole.view.candidates
