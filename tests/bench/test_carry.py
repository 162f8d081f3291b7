"""Evidence is taken over where code does what it did, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from evolvent.bench import carry as page
from evolvent.bench import claims
from evolvent.bench.carry import Carry, configuration, differences
from evolvent.bench.cell import Cell
from evolvent.bench.claims import Study, stale
from evolvent.bench.evidence import Evidence
from evolvent.core.claim import claim, up
from evolvent.core.recipe import REGISTRY, Recipe
from evolvent.recipes import all_recipes


class Code:
    """Stands for the code that cells rest on and for the machine that runs them: what they score, and which ran."""

    def __init__(self) -> None:
        self.version, self.shift, self.ran = "1", {"ours": 0.0, "grpo": 0.0}, list[Cell]()

    def code(self, study: Study, cell: Cell) -> dict[str, str]:
        """One module, of some version."""
        return {"evolvent.some.module": self.version}

    def run(self, cells: Sequence[Cell], jobs: int, say: object = None) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Ours is better by about 0.1, in seconds that are never the same."""
        for cell in cells:
            self.ran.append(cell)
            score = 0.5 + self.shift[cell.arm] + (0.1 + 0.001 * (cell.seed % 4)) * (cell.arm == "ours")
            curve = [{"sampled": 0.1, "spent": 0.0}, {"sampled": score, "spent": 5.0}]
            clock = 6.0 + len(self.ran) + (cell.seed != 3) * 100
            spent = {"steps": 5.0, "seconds": clock, "verifier_seconds": clock}
            yield (
                cell,
                {
                    "cell": asdict(cell),
                    "curve": curve,
                    "spent": spent,
                    "errors": {},
                    "train": {"loss": 0.25},
                    "late": {},
                    "seconds": {"cell": clock},
                },
            )


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> Code:
    """Code that can be changed, and all that runs it."""
    made = Code()
    monkeypatch.setattr(Study, "code", lambda study, cell: made.code(study, cell))
    monkeypatch.setattr(claims, "run_cells", made.run)
    monkeypatch.setattr(page, "run_cells", made.run)
    return made


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """Claims to be better than GRPO, with a model whose weights are a file."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    better = claim("better", up("test.sampled", 0.02, "grpo"), task="arith:1x1", budget="5 steps", model=str(folder))
    grpo = all_recipes()["grpo"]
    made = Recipe("mine", grpo, (), family=grpo.family, file=grpo.file, outcome=better)
    monkeypatch.setitem(REGISTRY, "mine", made)
    return made


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """An empty folder."""
    return Evidence(tmp_path / "evidence")


def test_what_comes_out_the_same_is_taken_over(code: Code, recipe: Recipe, evidence: Evidence) -> None:
    before = Study(recipe, evidence).measure()
    assert len(code.ran) == 16
    code.version, code.ran = "2", []
    assert stale(evidence) == {"mine": ["evolvent.some.module"]}
    after = Carry(recipe, evidence).measure()
    assert [(c.arm, c.seed) for c in code.ran] == [("ours", 3), ("grpo", 3)]  # the quickest of each
    assert (before["taken_over"], after["taken_over"]) == (0, 14)
    assert after["claims"][0]["components"] == before["claims"][0]["components"]
    assert stale(evidence) == {}
    code.ran = []
    assert Study(recipe, evidence).measure()["taken_over"] == 14  # and stays so for whoever measures next
    assert not code.ran
    assert len(evidence.cells("mine")) == 16


def test_each_row_says_on_which_code_it_was_measured(code: Code, recipe: Recipe, evidence: Evidence) -> None:
    Study(recipe, evidence).measure()
    first = {r["cell"]["seed"]: r for r in evidence.cells("mine").values() if r["cell"]["arm"] == "ours"}
    for version in ("2", "3"):
        code.version = version
        Carry(recipe, evidence).measure()
    last = {r["cell"]["seed"]: r for r in evidence.cells("mine").values() if r["cell"]["arm"] == "ours"}
    assert "measured" not in last[3]
    for seed in (0, 1, 2, 4, 5, 6, 7):
        assert last[seed]["measured"] == {"key": first[seed]["key"], "rests_on": first[seed]["rests_on"]}
        assert last[seed]["key"] != first[seed]["key"]
        assert last[seed]["curve"] == first[seed]["curve"]


def test_an_arm_that_does_something_else_is_measured_anew(code: Code, recipe: Recipe, evidence: Evidence) -> None:
    Study(recipe, evidence).measure()
    code.version, code.ran, code.shift["grpo"] = "2", [], 0.03
    said: list[str] = []
    after = Carry(recipe, evidence, say=said.append).measure()
    assert sorted((c.arm, c.seed) for c in code.ran) == [*(("grpo", i) for i in range(8)), ("ours", 3)]
    assert after["claims"][0]["components"][0]["baselines"]["grpo"] == [0.53] * 8
    assert any("grpo (grpo), seed 3: curve came out otherwise; 8 cells are measured anew" in line for line in said)


def test_other_weights_are_never_the_same(code: Code, recipe: Recipe, evidence: Evidence, tmp_path: Path) -> None:
    Study(recipe, evidence).measure()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"others")
    code.ran = []
    assert Carry(recipe, evidence).measure()["taken_over"] == 0
    assert len(code.ran) == 16


def test_a_row_that_does_not_say_what_it_rests_on_is_not_believed(
    code: Code, recipe: Recipe, evidence: Evidence
) -> None:
    Study(recipe, evidence).measure()
    path = evidence.cells_file("mine")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({k: v for k, v in r.items() if k != "rests_on"}) + "\n" for r in rows))
    code.version, code.ran = "2", []
    assert Carry(recipe, evidence).measure()["taken_over"] == 0
    assert len(code.ran) == 16


def test_code_that_is_as_it_was_runs_nothing(code: Code, recipe: Recipe, evidence: Evidence) -> None:
    before = Study(recipe, evidence).measure()
    code.ran = []
    assert Carry(recipe, evidence).measure() == before
    assert not code.ran


def test_all_results_but_times_are_compared() -> None:
    row = {
        "key": "a",
        "rests_on": "b",
        "cell": {},
        "curve": [{"sampled": float("nan")}],
        "train": {"loss": 0.25},
        "spent": {"steps": 5.0, "seconds": 1.0, "verifier_seconds": 1.0},
        "seconds": {"cell": 9.0},
    }
    later = row | {"key": "c", "rests_on": "d", "spent": row["spent"] | {"seconds": 2.0}, "seconds": {"cell": 1.0}}
    assert differences(row, later) == []
    assert differences(row, later | {"train": {"loss": 0.250001}}) == ["train.loss"]
    assert differences(row, later | {"train": {"loss": 0.25, "kl": 0.0}}) == ["train.kl"]
    assert differences(row, later | {"curve": []}) == ["curve"]
    assert differences(row, later | {"spent": {"steps": 6.0}}) == ["spent.steps"]


def test_a_configuration_is_a_cell_without_its_seed_and_seed_model() -> None:
    def cell(seed: int, model: str, **settings: Any) -> Cell:
        return Cell("ours", "grpo", "arith:1x1", model, seed, "5 steps", settings)

    assert configuration(cell(0, "tiny-0")) == configuration(cell(5, "tiny-1"))
    assert configuration(cell(0, "tiny-0")) != configuration(cell(0, "small-0"))
    assert configuration(cell(0, "tiny-0")) != configuration(cell(0, "tiny-0", rate=1.0))


def test_seeds_that_begin_with_other_seed_models_are_one_configuration(
    code: Code, evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    better = claim("better", up("test.sampled", 0.02, "grpo"), task="arith:1x1", budget="5 steps", model="tiny")
    grpo = all_recipes()["grpo"]
    recipe = Recipe("mine", grpo, (), family=grpo.family, file=grpo.file, outcome=better)
    monkeypatch.setitem(REGISTRY, "mine", recipe)
    Study(recipe, evidence).measure()
    assert len({row["rests_on"] for row in evidence.cells("mine").values()}) == 4
    code.version, code.ran = "2", []
    assert Carry(recipe, evidence).measure()["taken_over"] == 14
    assert [c.seed for c in code.ran] == [3, 3]
