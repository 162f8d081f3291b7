"""Claims about searches: their cells, what they rest on, the world, and the verdict.

Verdicts are of results that are known, put in the pool's place; the last test runs real cells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from evolvent.bench import claims as page
from evolvent.bench.cell import Cell
from evolvent.bench.claims import MORE_SEEDS, VERDICT_SEEDS, Study, stale
from evolvent.bench.closure import ROOT, closure, read_module
from evolvent.bench.evidence import Evidence
from evolvent.bench.search_cell import SearchCell
from evolvent.bench.search_claims import files_of, is_search, texts, world_of
from evolvent.cli.main import main
from evolvent.core.claim import Claim, claim, down, up
from evolvent.core.errors import UserError
from evolvent.core.recipe import REGISTRY, Recipe
from evolvent.recipes import all_recipes
from evolvent.search.parents import elite
from evolvent.search.write import Write

PACKING = "program:circle-packing:8"
LANDSCAPE = "program:landscape:kind=nk,k=1"
WOBBLE = (0.012, -0.008, 0.004, -0.01, 0.009, -0.002, -0.011, 0.006)


class Pool:
    """Stands for `run_cells`: the value anew of every cell is what `score` says."""

    def __init__(self, score: Callable[[SearchCell], float]) -> None:
        self.score, self.ran = score, list[SearchCell]()

    def __call__(
        self, cells: Sequence[SearchCell], jobs: int, say: object
    ) -> Iterator[tuple[SearchCell, dict[str, Any]]]:
        for cell in cells:
            self.ran.append(cell)
            value = self.score(cell)
            point = {"spent": 1.0, "best": 0.5, "valid": 1.0, "distinct": 1.0}
            yield (
                cell,
                {
                    "cell": {"arm": cell.arm, "seed": cell.seed, "budget": cell.budget},
                    "curve": [point, point],
                    "records": [[1.0, 1.0, 0.5], [4.0 if cell.arm == "ours" else 8.0, 4.0, value]],
                    "rescored": {"value": value, "found": value, "same": True},
                    "train": {"parent_rank": 0.0 if cell.arm == "ours" else 0.5},
                    "late": {},
                    "spent": {"verifier_calls": 20.0},
                    "errors": {},
                    "seconds": {"cell": 6.0},
                },
            )


def better_by(effect: float, spread: float = 0.0) -> Callable[[SearchCell], float]:
    """Ours is `effect` higher on average, a seed more and another less."""
    return lambda cell: 2.0 + (cell.arm == "ours") * (effect + spread * WOBBLE[cell.seed % 8] / 0.01)


@pytest.fixture
def plain() -> Claim:
    """Better than random search by at least 0.02."""
    better = up("final.rescored", 0.02, "random-search")
    return claim("it finds more", better, task=PACKING, budget="20 evaluations", model="none")


@pytest.fixture
def study(tmp_path: Path, plain: Claim, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Study]:
    """Makes a study of claims about a recipe of the package's own family; `pool` is put in place of the real one."""
    evidence = Evidence(tmp_path / "evidence")

    def make(pool: Pool | None = None, **claims: Any) -> Study:
        climb = all_recipes()["hill-climbing"]
        one = Recipe("mine", climb, (), family=climb.family, file=climb.file, **(claims or {"outcome": plain}))
        monkeypatch.setitem(REGISTRY, "mine", one)
        if pool:
            monkeypatch.setattr(page, "run_cells", pool)
        return Study(one, evidence)

    return make


def changed(one: Claim, **fields: Any) -> Claim:
    """A claim with other fields."""
    return Claim(**{**{n: getattr(one, n) for n in one.__dataclass_fields__}, **fields})


# --- cells ---


def test_the_task_decides_what_kind_of_cell_it_is(study: Callable[..., Study], plain: Claim) -> None:
    assert is_search(PACKING)
    assert not is_search("arith:1x1")
    searched = study().cell(plain, "ours", 3, {"propose.children": 4})
    assert searched == SearchCell(
        "ours", "mine", PACKING, "none", 3, "20 evaluations", {"propose.children": 4}, evals=plain.evals
    )
    answering = claim("x", up("test.sampled", 0.1, "grpo"), task="arith:1x1", budget="2 steps")
    assert isinstance(study(outcome=answering).cell(answering, "ours", 3, {}), Cell)
    written = changed(plain, model="tiny")
    assert study(outcome=written).cell(written, "ours", 6, {}).model == "tiny-2"


def test_a_part_among_the_settings_is_called_by_its_name(study: Callable[..., Study], plain: Claim) -> None:
    one = changed(plain, arms={"ours": {"propose.parent": elite}})
    assert "evolvent.search.parents:elite" in json.dumps(study(outcome=one).registration())
    cell = study(outcome=one).cell(one, "ours", 0, {})
    assert cell.settings == {"propose.parent": "evolvent.search.parents:elite"}
    assert cell.key("code") == study(outcome=one).cell(one, "ours", 0, {}).key("code")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"components": (up("test.sampled", 0.1, "random-search"),)}, "no metric `test.sampled` of a search"),
        ({"tune": ({"propose.children": 4},)}, "no metric `test.sampled` of a search"),
        ({"test": "program:circle-packing:10"}, "a search is tested on its own task only"),
        ({"model": "http://localhost/v1#x"}, "which nobody can repeat"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(
    study: Callable[..., Study], plain: Claim, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        study(outcome=changed(plain, **changes))


# --- what a cell rests on ---


def test_the_code_of_a_search_is_its_rules_its_world_and_its_sandbox(study: Callable[..., Study], plain: Claim) -> None:
    found = set(study().code_of_all())
    assert {
        "evolvent.bench.search_cell",
        "evolvent.engine.absent",
        "evolvent.guard.inside.keeper",
        "evolvent.guard.sandbox",
        "evolvent.recipes.search.hill_climbing",
        "evolvent.recipes.search.random_search",
        "evolvent.search.archive",
        "evolvent.search.parents",
        "evolvent.search.rescore",
        "evolvent.search.variation.syntax",
        "evolvent.tasks.program",
        "evolvent.tasks.worlds.circle_packing",
        "evolvent.tasks.worlds.sized",
    } <= found
    assert not {"evolvent.tasks.worlds.heilbronn", "evolvent.search.islands", "evolvent.bench.cell"} & found
    assert not {name.split(".")[1] for name in found if name.startswith("evolvent.")} & {"cli", "serve", "lineage"}
    assert not any(name.startswith("model ") for name in found)
    other = study(outcome=changed(plain, task="program:heilbronn:11")).code_of_all()
    assert "evolvent.tasks.worlds.heilbronn" in other
    written = study(outcome=changed(plain, task=LANDSCAPE, model="simulated:skill=0.5")).code_of_all()
    assert {"evolvent.tasks.worlds.terrain", "evolvent.engine.simulated_writer"} <= set(written)


def test_prompts_belong_to_what_writes_with_them(
    study: Callable[..., Study], plain: Claim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = {"common": {"rollout": Write}, "model": "tiny"}
    names = [n for n in study(outcome=changed(plain, **writing)).code_of_all() if "prompts" in n]
    files = [path for path in (ROOT / "search/prompts").rglob("*") if path.is_file()]
    assert names == sorted(f"evolvent/{path.relative_to(ROOT)}" for path in files)
    assert {"evolvent/search/prompts/diff.md", "evolvent/search/prompts/rewrite.md"} <= set(names)
    assert not [n for n in study().code_of_all() if "prompts" in n]  # where no model is, none are read
    monkeypatch.chdir(tmp_path)  # names do not depend on where one stands, keys neither
    made = study(outcome=changed(plain, **writing))
    assert [n for n in made.code_of_all() if "prompts" in n] == names
    own = tmp_path / "mine"
    own.mkdir()
    (own / "diff.md").write_text("Write less.")
    writing["common"] = {"rollout": Write, "rollout.prompts": str(own)}
    one = changed(plain, **writing)
    before = study(outcome=one).key(study(outcome=one).cell(one, "ours", 0, {}))
    (own / "diff.md").write_text("Write more.")
    assert study(outcome=one).key(study(outcome=one).cell(one, "ours", 0, {})) != before


def test_a_users_evaluator_and_program_are_part_of_the_key(
    study: Callable[..., Study], plain: Claim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keys = set()
    for code, seed in (("1", "2"), ("3", "2"), ("3", "4")):
        Path("judge.py").write_text(f"def evaluate(path):\n    return {code}\n")
        Path("first.py").write_text(f"x = {seed}\n")
        read_module.cache_clear()
        one = changed(plain, task="program:judge.py:first.py")
        made = study(outcome=one)
        keys.add(made.key(made.cell(one, "ours", 0, {})))
    assert len(keys) == 3
    assert {"judge.py", "first.py"} <= set(made.code_of_all())


def test_texts_leave_caches_aside(tmp_path: Path) -> None:
    for name in ("a.md", "b/c.json", "__pycache__/d.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [p.name for p in texts(tmp_path)] == ["a.md", "c.json"]
    assert texts(tmp_path / "nothing") == []


class Pretends(Write):
    """A writer that only simulates one."""

    simulated = True


def test_a_claim_about_adapters_rests_on_the_model_and_the_engine() -> None:
    cell = SearchCell("ours", "hill-climbing", "program:adapters:20", "none", 0, "2 evaluations", {}, evals=2)
    found = closure(files_of(cell, []))
    assert "evolvent.engine.local" in found
    assert any(name.endswith("tiny-0/model.safetensors") for name in found)


def test_the_kind_of_world(plain: Claim) -> None:
    answering = claim("x", up("test.sampled", 0.1, "grpo"), task="arith:1x1", budget="2 steps")
    assert world_of([plain], "hill-climbing") == "real"
    assert world_of([changed(plain, model="tiny")], "hill-climbing") == "tiny-policy"
    assert world_of([answering], "grpo") == "tiny-policy"
    assert world_of([plain, answering], "hill-climbing") == "tiny-policy"
    assert world_of([changed(answering, model="simulated")], "grpo") == "simulated"
    assert world_of([changed(plain, task=LANDSCAPE)], "hill-climbing") == "simulated"
    assert world_of([plain, changed(plain, common={"rollout": Pretends})], "hill-climbing") == "simulated"
    assert world_of([changed(plain, task="program:adapters:20")], "hill-climbing") == "tiny-policy"
    assert world_of([changed(plain, task="program:sql:20")], "hill-climbing") == "scripted"
    assert world_of([plain, changed(plain, task="program:sql:20")], "hill-climbing") == "scripted"


# --- verdicts ---


def test_a_claim_about_a_search_is_decided_by_the_protocol(study: Callable[..., Study], plain: Claim) -> None:
    pool = Pool(better_by(0.1, 0.01))
    greedy = changed(plain, text="it is greedy", components=(down("train.parent_rank", 0.2, "random-search"),))
    sooner = changed(plain, components=(*plain.components, down("reach.best@2", 0.2, "random-search", scale="log")))
    data = study(pool, mechanism=greedy, outcome=sooner).measure()
    assert data["world"] == "real"
    assert [(c["kind"], c["verdict"], c["seeds"]) for c in data["claims"]] == [
        ("mechanism", "holds", list(VERDICT_SEEDS)), ("outcome", "holds", list(VERDICT_SEEDS))
    ]  # fmt: skip
    assert len(pool.ran) == 16  # both claims share them
    value, time = data["claims"][1]["components"]
    assert value["ours"] == [pytest.approx(2.1 + w, abs=1e-5) for w in WOBBLE]
    assert value["tests"][0]["effect"] == pytest.approx(0.1)
    assert time["tests"][0]["effect"] == pytest.approx(0.693147, abs=1e-5)  # twice as soon, as a logarithm
    assert data["claims"][1]["controls"] == {"seed-program": [0.5] * 8}
    assert data["claims"][1]["budget"] == {"unit": "verifier_calls", "value": 20}
    again = Pool(better_by(0.1))
    assert study(again, mechanism=greedy, outcome=sooner).measure() == data
    assert not again.ran
    assert stale(study(mechanism=greedy, outcome=sooner).evidence) == {}


def test_what_eight_seeds_do_not_tell_sixteen_are_asked(study: Callable[..., Study]) -> None:
    pool = Pool(better_by(0.02, 0.05))
    found = study(pool).measure()["claims"][0]
    assert found["seeds"] == [*VERDICT_SEEDS, *MORE_SEEDS]
    assert len(pool.ran) == 32


def test_values_keep_their_last_digits(study: Callable[..., Study], tmp_path: Path) -> None:
    study(Pool(lambda cell: 2.63598308491)).measure()
    row = json.loads((tmp_path / "evidence/cells/mine.jsonl").read_text().splitlines()[0])
    assert row["rescored"]["value"] == 2.635983085


METHOD = '''"""Climbing with another name."""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.parents import elite

AT = {{"task": "{task}", "budget": "6 evaluations", "model": "none"}}
climbing = recipe(
    "climbing-again",
    random_search,
    put("propose.parent", elite),
    mechanism=claim("it varies the best", down("train.parent_rank", 0.05, "random-search"), **AT),
    outcome=claim("it finds more", up("final.rescored", 0.1, "random-search"), **AT),
)
'''


@pytest.mark.slow
def test_a_claim_of_ones_own_file_is_measured_by_one_command(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("climbing.py").write_text(METHOD.format(task=task))
    with pytest.raises(SystemExit) as end:
        main(["claims", "climbing.py:climbing-again", "--jobs", "2", "--json"])
    assert end.value.code in (0, None)
    data = json.loads(Path("evidence/climbing-again.json").read_text())
    assert data["world"] == "real"
    assert [c["kind"] for c in data["claims"]] == ["mechanism", "outcome"]
    assert data["claims"][0]["components"][0]["ours"] == [0.0] * len(data["claims"][0]["seeds"])
    assert json.loads(capsys.readouterr().out)[0] == data
