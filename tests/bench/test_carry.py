"""Evidence is taken over where code does what it did, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from evolvent.bench import carry as page
from evolvent.bench import claims
from evolvent.bench.carry import Carry, configuration, differences, typical
from evolvent.bench.cell import Cell
from evolvent.bench.claims import Study, stale
from evolvent.bench.evidence import Evidence
from evolvent.cli.main import main
from evolvent.core.claim import claim, up
from evolvent.core.errors import UserError
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
    assert [(c.arm, c.seed) for c in code.ran] == [("ours", 4), ("grpo", 4)]  # the middle one of each by seconds
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
    [again] = [seed for seed, row in last.items() if "measured" not in row]
    for seed in set(range(8)) - {4, again}:  # 4 was run again first
        assert last[seed]["measured"] == {"key": first[seed]["key"], "rests_on": first[seed]["rests_on"]}
        assert last[seed]["key"] != first[seed]["key"]
        assert last[seed]["curve"] == first[seed]["curve"]


def test_an_arm_that_does_something_else_is_measured_anew(code: Code, recipe: Recipe, evidence: Evidence) -> None:
    Study(recipe, evidence).measure()
    code.version, code.ran, code.shift["grpo"] = "2", [], 0.03
    said: list[str] = []
    after = Carry(recipe, evidence, say=said.append).measure()
    assert sorted((c.arm, c.seed) for c in code.ran) == [*(("grpo", i) for i in range(8)), ("ours", 4)]
    assert after["claims"][0]["components"][0]["baselines"]["grpo"] == [0.53] * 8
    assert any("grpo (grpo), seed 4: curve came out otherwise; 8 cells are measured anew" in line for line in said)


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
    assert differences(row, later | {"train": {"loss": 0.25, "kl": 0.0}}) == []  # that was not looked at before
    assert differences(row, later | {"train": {"kl": 0.0}}) == ["train.loss"]
    assert differences(row, later | {"curve": []}) == ["curve"]
    assert differences(row, later | {"spent": {"steps": 6.0}}) == ["spent.steps"]


def test_a_configuration_is_a_cell_without_its_seed_and_seed_model() -> None:
    def cell(seed: int, model: str, **settings: Any) -> Cell:
        return Cell("ours", "grpo", "arith:1x1", model, seed, "5 steps", settings)

    assert configuration(asdict(cell(0, "tiny-0"))) == configuration(asdict(cell(5, "tiny-1")))
    assert configuration(asdict(cell(0, "tiny-0"))) != configuration(asdict(cell(0, "small-0")))
    assert configuration(asdict(cell(0, "tiny-0"))) != configuration(asdict(cell(0, "tiny-0", rate=1.0)))


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
    assert len(code.ran) == 2


def test_what_was_refuted_stays_so(code: Code, recipe: Recipe, evidence: Evidence) -> None:
    """Also after the study was killed, and where the cell that would be run again is another one."""
    Study(recipe, evidence).measure()
    code.version, code.ran, code.shift["grpo"] = "2", [], 0.03
    before, begun = code.run, iter(range(4))

    def killed(cells: Sequence[Cell], jobs: int, say: object = None) -> Iterator[tuple[Cell, dict[str, Any]]]:
        for one in before(cells, jobs, say):
            if next(begun, None) is None:
                raise KeyboardInterrupt
            yield one

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "run_cells", killed)
        patch.setattr(page, "run_cells", killed)
        with pytest.raises(KeyboardInterrupt):
            Carry(recipe, evidence).measure()
    code.shift["grpo"] = 0.0  # as if the other seeds were not touched by what has changed
    Carry(recipe, evidence).measure()
    rows = [r for r in evidence.cells("mine").values() if r["cell"]["arm"] == "grpo" and "measured" in r]
    assert not rows


def test_cells_count_once_however_often_they_are_taken_over(code: Code, recipe: Recipe, evidence: Evidence) -> None:
    Study(recipe, evidence).measure()
    for version in ("2", "3", "4"):
        code.version = version
        data = Carry(recipe, evidence).measure()
        assert (data["spent"]["cells"], data["taken_over"]) == (16, 14)


def test_who_ended_early_vouches_for_nobody(code: Code, recipe: Recipe, evidence: Evidence) -> None:
    cells = [Cell("ours", "mine", "arith:1x1", "m", seed, "5 steps") for seed in range(3)]
    rows = [{"seconds": {"cell": 5.0}}, {"seconds": {"cell": 9.0}, "stuck": "so"}, {"seconds": {"cell": 7.0}}]
    assert typical(list(zip(cells, rows, strict=True))).seed == 2
    assert typical([(cells[1], rows[1])]).seed == 1


def test_without_names_only_changed_code_is_taken_over(
    code: Code, recipe: Recipe, evidence: Evidence, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Study(recipe, evidence).measure()
    folder = str(evidence.root)

    def call(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["claims", "--carry", "--evidence", folder, *words])
        return int(ended.value.code or 0)

    assert call() == 0
    assert "there is nothing to take over" in capsys.readouterr().out
    assert call("--register") == 2
    assert "give one of them" in capsys.readouterr().err
    code.version, code.ran = "2", []
    assert call("--jobs", "1") == 0
    assert len(code.ran) == 2
    assert recipe.outcome is not None
    other = replace(recipe, outcome=replace(recipe.outcome, text="in other words"))
    monkeypatch.setitem(REGISTRY, "mine", other)
    assert call() == 0
    assert "mine is left out: the claims themselves" in capsys.readouterr().err
    assert len(code.ran) == 2


def test_a_result_goes_to_the_code_that_it_was_begun_on(code: Code, recipe: Recipe, evidence: Evidence) -> None:
    """A file that is changed while cells run does not get what they bring."""
    run = code.run

    def changing(cells: Sequence[Cell], jobs: int, say: object = None) -> Iterator[tuple[Cell, dict[str, Any]]]:
        code.version = "2"
        yield from run(cells, jobs, say)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "run_cells", changing)
        Study(recipe, evidence).measure()
    code.version, code.ran = "1", []
    Study(recipe, evidence).measure()
    assert not code.ran


def there(code: Code, version: str, shift: float) -> Any:
    """Stands for a checkout of another version, on a machine whose sums come out by `shift` otherwise."""

    def row(study: Carry, asked: Any) -> dict[str, Any]:
        cell, _, old, _ = asked
        now = code.version, dict(code.shift)
        code.version, code.shift = version, dict.fromkeys(code.shift, shift)
        [(_, result)] = code.run([cell], 1)
        code.version, code.shift = now
        return {"key": old["key"], "rests_on": old["rests_on"], **claims.rounded(result)}

    return row


@pytest.mark.parametrize(("shift", "taken"), [(0.03, 16), (0.04, 0)])
def test_on_another_processor_the_code_as_it_was_is_asked(
    code: Code,
    recipe: Recipe,
    evidence: Evidence,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shift: float,
    taken: int,
) -> None:
    before = Study(recipe, evidence).measure()
    code.version, code.ran = "2", []
    code.shift = dict.fromkeys(code.shift, 0.03)  # what this machine makes of it, whatever the code
    study = Carry(recipe, evidence)
    study.before = tmp_path
    monkeypatch.setattr(Carry, "as_it_was", there(code, "1", shift))
    after = study.measure()
    assert after["taken_over"] == taken
    if taken:  # all results are those of the machine that they were measured on
        assert after["claims"][0]["components"] == before["claims"][0]["components"]
        assert [(c.arm, c.seed) for c in code.ran] == [("ours", 4), ("grpo", 4), ("ours", 4), ("grpo", 4)]
    else:
        assert after["claims"][0]["components"][0]["baselines"]["grpo"] == [0.53] * 8


def test_a_folder_with_other_code_is_refused(
    code: Code, recipe: Recipe, evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Study(recipe, evidence).measure()
    code.version, code.shift["grpo"] = "2", 0.03
    study = Carry(recipe, evidence)
    study.before = tmp_path
    with pytest.raises(UserError, match="cannot be run on the code in"):
        study.measure()
    told = json.dumps({"rests_on": "another"})
    monkeypatch.setattr(page, "THERE", f"print({told!r})")
    with pytest.raises(UserError, match="does not hold the code that grpo, seed 4 was measured on; check out"):
        study.measure()
    with pytest.raises(SystemExit) as ended:
        main(["claims", "sec", "--carry", "--before", str(tmp_path)])
    assert ended.value.code == 2
