"""Guided evolution without a model: generations, crossing, mutation, and the change of an elite carried over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.search.test_segments import SOURCE

from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.segments import differing

EVALUATOR = """
import importlib.util


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("candidate", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {"combined_score": float(module.run()), "parameters": float(len(open(program_path).read()))}
"""


def run(tmp_path: Path, sandboxed: str, steps: int = 6, **settings: str) -> list[dict[str, Any]]:
    """The candidates of a run, in their order."""
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "first.py").write_text(SOURCE)
    task = f"program:{tmp_path / 'evaluator.py'}:{tmp_path / 'first.py'}"
    named = {name.replace("__", "."): value for name, value in settings.items()}
    fixed = {"propose.start": "8", "propose.children": "4"}
    spec = RunSpec("guided-evolution", task, "none", f"{steps} steps", seed=3, settings={**fixed, **named})
    result = begin(spec, tmp_path / "runs", logs=("jsonl",))
    return [result.view.candidates[uid] for uid in sorted(result.view.candidates)]


def done(candidates: list[dict[str, Any]]) -> list[str]:
    """All that was done to the candidates after the start population, by name."""
    return [gene["operator"] for c in candidates if c["step"] > 1 for gene in c["notes"]["genes"]]


def test_generations(tmp_path: Path, sandboxed: str) -> None:
    found = run(tmp_path, sandboxed)
    assert [c["step"] for c in found][:9] == [0] + [1] * 8
    for c in found[1:9]:
        assert list(c["parents"]) == [0]
        assert len(c["notes"]["genes"]) == 1
    assert all(sum(c["step"] == t for c in found) <= 4 for t in range(2, 6))
    valid = {c["uid"] for c in found if c["evaluation"]["value"] is not None}
    assert {uid for c in found for uid in c["parents"]} <= valid
    for c in found[1:]:
        before = found[c["parents"][0]]["payload"]["program"]
        assert set(differing(before, c["payload"]["program"])) <= {gene["segment"] for gene in c["notes"]["genes"]}
        assert c["operator"] == "+".join(gene["operator"] for gene in c["notes"]["genes"])


def test_an_elite_teaches(tmp_path: Path, sandboxed: str) -> None:
    found = run(tmp_path, sandboxed, rollout__mutate__thought="1", propose__crossover="0")
    taught = [c for c in found if c["operator"] == "thought"]
    assert taught
    for c in taught:
        (gene,) = c["notes"]["genes"]
        elite = found[gene["with"]]
        assert c["parents"][1] == elite["uid"]
        assert gene["segment"] in differing(SOURCE, elite["payload"]["program"])
        new = set(c["payload"]["program"].split("\n")) - set(found[c["parents"][0]]["payload"]["program"].split("\n"))
        assert new <= set(elite["payload"]["program"].split("\n"))


@pytest.mark.slow
def test_each_mechanism_is_switched_off(tmp_path: Path, sandboxed: str) -> None:
    for i, (off, name) in enumerate({"rollout__mutate__thought": "thought", "propose__crossover": "cross"}.items()):
        folder = tmp_path / str(i)
        folder.mkdir()
        assert name not in done(run(folder, sandboxed, 8, **{off: "0"}))
    (tmp_path / "on").mkdir()
    both = done(run(tmp_path / "on", sandboxed, 8, rollout__mutate__thought="0.5", propose__crossover="0.9"))
    assert {"thought", "cross"} <= set(both)


def test_without_mutation_and_crossing_nothing_is_made(tmp_path: Path, sandboxed: str) -> None:
    found = run(tmp_path, sandboxed, 5, rollout__mutate__mutation="0", propose__crossover="0")
    assert len(found) == 9
