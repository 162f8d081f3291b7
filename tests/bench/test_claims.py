"""The protocol, step by step: what is registered, tuned, measured, extended, carried on, and what goes stale.

Most tests take the pool's place with results that are known, so that verdicts are; the last runs real cells.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.small_model import small_model

from evolvent.bench import claims as page
from evolvent.bench.cell import Cell
from evolvent.bench.claims import MORE_SEEDS, TUNING_SEEDS, VERDICT_SEEDS, Study, stale, test
from evolvent.bench.closure import read_module
from evolvent.bench.evidence import Evidence
from evolvent.cli.bench import print_claims, print_pilot
from evolvent.cli.main import main
from evolvent.core.claim import Claim, claim, down, up
from evolvent.core.errors import UserError
from evolvent.core.grid import GridClaim
from evolvent.core.recipe import REGISTRY, Recipe
from evolvent.recipes import all_recipes

test.__test__ = False  # type: ignore[attr-defined]  # not one of pytest's
Score = Callable[[Cell], float]
WOBBLE = (0.012, -0.008, 0.004, -0.01, 0.009, -0.002, -0.011, 0.006)


class Pool:
    """Stands for `run_cells`: every cell scores what `score` says (nan: every answer failed). It may break
    down after some cells."""

    def __init__(self, score: Score, breaks_after: int | None = None) -> None:
        self.score, self.left, self.ran = score, breaks_after, list[Cell]()

    def __call__(self, cells: Sequence[Cell], jobs: int, say: object) -> Iterator[tuple[Cell, dict[str, Any]]]:
        for cell in cells:
            if self.left is not None:
                if not self.left:
                    raise KeyboardInterrupt
                self.left -= 1
            self.ran.append(cell)
            curve = [{"sampled": 0.1, "spent": 0.0}, {"sampled": self.score(cell), "spent": 5.0}]
            if math.isnan(curve[1]["sampled"]):
                curve[1]["errors"] = 40.0
            spent = {"steps": 5.0, "sampled": 100.0 + cell.seed}
            result = {"cell": {"seed": cell.seed}, "curve": curve, "spent": spent, "errors": {}}
            yield cell, {**result, "train": {}, "late": {}, "seconds": {"cell": 6.0}}


def better_by(effect: float, spread: float = 0.0) -> Score:
    """Ours gains `effect` on average, a seed more and another less."""
    return lambda cell: 0.5 + (cell.arm == "ours") * (effect + spread * WOBBLE[cell.seed % 8] / 0.01)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A folder with weights; nothing runs them."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return str(folder)


@pytest.fixture
def plain(model: str) -> Claim:
    """Better than GRPO by at least two points."""
    return claim("it is better", up("test.sampled", 0.02, "grpo"), task="arith:1x1", budget="5 steps", model=model)


@pytest.fixture
def study(tmp_path: Path, plain: Claim, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Study]:
    """Makes a study of claims about a recipe of the package's own family; the pool is put in place by `pool=`."""
    evidence = Evidence(tmp_path / "evidence")

    def make(pool: Pool | None = None, **claims: Any) -> Study:
        grpo = all_recipes()["grpo"]
        one = Recipe("mine", grpo, (), family=grpo.family, file=grpo.file, **(claims or {"outcome": plain}))
        monkeypatch.setitem(REGISTRY, "mine", one)
        if pool:
            monkeypatch.setattr(page, "run_cells", pool)
        return Study(one, evidence)

    return make


def changed(one: Claim, **fields: Any) -> Claim:
    """A claim with other fields."""
    return Claim(**{**{n: getattr(one, n) for n in one.__dataclass_fields__}, **fields})


# --- registration ---


def test_claims_are_written_down_before_anything_runs(study: Callable[..., Study]) -> None:
    pool = Pool(better_by(0.1))
    data = study(pool).register()
    assert not pool.ran
    assert data["claims"] == []
    assert data["registered"]["claims"]["outcome"]["components"][0]["delta"] == 0.02
    assert data["protocol"] == 1
    assert data["earlier"] == []


def test_an_unchanged_registration_stays_as_it_is(study: Callable[..., Study]) -> None:
    made = study()
    first = made.register()
    first["notes"] = "by hand"
    made.evidence.write("mine", first)
    assert study().register() == first


def test_a_claim_may_be_changed_freely_before_it_is_measured(study: Callable[..., Study], plain: Claim) -> None:
    study().register()
    data = study(outcome=changed(plain, text="it is much better")).register()
    assert data["earlier"] == []


def test_a_claim_that_was_measured_and_changed_leaves_a_trace(study: Callable[..., Study], plain: Claim) -> None:
    before = study(Pool(better_by(0.0, 0.01))).measure()
    easier = changed(plain, components=(up("test.sampled", 0.001, "grpo"),))
    now = study(outcome=easier).register()
    assert now["claims"] == []
    assert [e["registered"]["hash"] for e in now["earlier"]] == [before["registered"]["hash"]]
    assert now["earlier"][0]["verdicts"] == {"outcome": before["claims"][0]["verdict"]}
    again = study(Pool(better_by(0.1)), outcome=easier).measure()
    assert again["earlier"] == now["earlier"]


def test_so_does_one_whose_verdict_seeds_had_only_begun(study: Callable[..., Study], plain: Claim) -> None:
    with pytest.raises(KeyboardInterrupt):
        study(Pool(better_by(0.0), breaks_after=3)).measure()
    now = study(outcome=changed(plain, text="something else")).register()
    assert len(now["earlier"]) == 1


def test_tuning_alone_leaves_none(study: Callable[..., Study], plain: Claim) -> None:
    tuned = changed(plain, tune=({"learn.lr": 1e-3}, {"learn.lr": 1e-4}))
    with pytest.raises(KeyboardInterrupt):
        study(Pool(better_by(0.0), breaks_after=8), outcome=tuned).measure()
    assert study(outcome=plain).register()["earlier"] == []


def test_a_recipe_without_claims_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="makes no claims"):
        Study(all_recipes()["grpo"], Evidence(tmp_path))


# --- verdicts ---


def test_a_clear_effect_holds_on_eight_paired_seeds(study: Callable[..., Study]) -> None:
    pool = Pool(better_by(0.1, 0.01))
    data = study(pool).measure()
    found = data["claims"][0]
    assert found["verdict"] == "holds"
    assert found["seeds"] == list(VERDICT_SEEDS)
    assert sorted((c.arm, c.seed) for c in pool.ran) == [(a, s) for a in ("grpo", "ours") for s in VERDICT_SEEDS]
    part = found["components"][0]
    assert part["ours"] == [pytest.approx(0.6 + w, abs=1e-6) for w in WOBBLE]
    assert part["baselines"] == {"grpo": [0.5] * 8}
    assert part["tests"][0]["effect"] == pytest.approx(0.1)
    assert part["tests"][0]["p_sign_flip"] == pytest.approx(2 / 256, rel=1e-4)
    assert found["budget"] == {"unit": "steps", "value": 5}
    assert data["spent"] == {"cells": 16, "cpu_minutes": 1.6}
    assert study().evidence.read("mine") == json.loads(json.dumps(data))


def test_no_effect_does_not_hold_at_once(study: Callable[..., Study]) -> None:
    found = study(Pool(better_by(0.0, 0.01))).measure()["claims"][0]
    assert found["verdict"] == "does-not-hold"
    assert found["seeds"] == list(VERDICT_SEEDS)


def test_where_eight_seeds_do_not_tell_eight_more_are_run_once(study: Callable[..., Study]) -> None:
    pool = Pool(better_by(0.02, 0.05))
    found = study(pool).measure()["claims"][0]
    assert found["seeds"] == [*VERDICT_SEEDS, *MORE_SEEDS]
    assert found["verdict"] == "inconclusive"
    assert len(pool.ran) == 32
    assert len(found["components"][0]["ours"]) == 16


def test_an_evaluation_that_failed_decides_nothing_and_is_told(
    study: Callable[..., Study], capsys: pytest.CaptureFixture[str]
) -> None:
    usual = better_by(0.1)
    pool = Pool(lambda cell: math.nan if (cell.arm, cell.seed) == ("ours", 3) else usual(cell))
    data = study(pool).measure()
    (found,) = data["claims"]
    assert found["verdict"] == "inconclusive"
    assert found["failed"] == {"ours": 40}
    print_claims(data)
    said = capsys.readouterr().out
    assert "not measured inconclusive" in said
    assert "40 answers of ours could not be judged" in said
    print_claims(
        {**data, "id": "[bold]mine[/]", "claims": [{**found, "text": "arms such as grpo[learn.lr=1] and a[/]"}]}
    )
    said = capsys.readouterr().out
    assert "[bold]mine[/]  world" in said  # brackets are no markup
    assert "grpo[learn.lr=1] and a[/]" in said


def test_every_component_counts(study: Callable[..., Study], plain: Claim) -> None:
    parts = (up("test.sampled", 0.02, "grpo"), down("spent.sampled", 0.1, "grpo"))
    data = study(Pool(better_by(0.1, 0.01)), mechanism=plain, outcome=changed(plain, components=parts)).measure()
    assert [(c["kind"], c["verdict"]) for c in data["claims"]] == [("mechanism", "holds"), ("outcome", "does-not-hold")]


def test_both_claims_share_their_cells(study: Callable[..., Study], plain: Claim) -> None:
    pool = Pool(better_by(0.1, 0.01))
    study(pool, mechanism=plain, outcome=changed(plain, text="in other words")).measure()
    assert len(pool.ran) == 16


def test_less_may_be_better_and_ratios_are_compared_by_logarithms() -> None:
    part = down("reach.sampled@0.5", 0.1, "grpo", scale="log")
    verdict, interval, differences = test(part, [50, 100, 51, 99] * 2, [100, 200, 100, 200] * 2)
    assert verdict == "holds"
    assert interval.mean == pytest.approx(0.6931, abs=0.01)
    assert differences[0] == pytest.approx(0.6931, abs=1e-3)
    with pytest.raises(UserError, match="no logarithm"):
        test(part, [0, 1], [1, 1])


# --- a pilot ---


def test_a_pilot_decides_nothing_and_leaves_the_verdicts_seeds_alone(
    study: Callable[..., Study], capsys: pytest.CaptureFixture[str]
) -> None:
    pool = Pool(better_by(0.1, 0.01))
    made = study(pool)
    [found] = made.pilot()["pilot"]
    assert {c.seed for c in pool.ran} == set(TUNING_SEEDS)
    assert made.evidence.read("mine") is None
    [part] = found["components"]
    assert sum(part["ours"]) / 4 == pytest.approx(0.6 - 0.0005)
    assert sum(part["baselines"]["grpo"]) / 4 == pytest.approx(0.5)
    [row] = part["tests"]
    assert row["effect"] == pytest.approx(0.0995)
    assert "verdict" not in row
    print_pilot(made.pilot())
    assert len(pool.ran) == 8, "cells are kept"
    assert "grpo: 0.5, ours better by +0.0995" in capsys.readouterr().out
    made.measure()
    assert {c.seed for c in pool.ran[8:]} == set(VERDICT_SEEDS)


def test_a_pilot_of_a_grid_is_one_of_every_point(study: Callable[..., Study], plain: Claim) -> None:
    points = ({"propose.n": 2}, {"propose.n": 4}), ({"propose.n": 1},)
    fields = {name: getattr(plain, name) for name in Claim.__dataclass_fields__}
    pool = Pool(better_by(0.1))
    found = study(pool, outcome=GridClaim(**fields, where=points[0], nowhere=points[1])).pilot()["pilot"]
    assert [c["components"][0]["point"] for c in found] == [*points[0], *points[1]]
    assert len(pool.ran) == 3 * 8


# --- tuning ---


def test_every_arm_gets_its_best_of_the_same_configurations(study: Callable[..., Study], plain: Claim) -> None:
    best = {"ours": 1e-3, "grpo": 1e-4}
    pool = Pool(lambda c: 0.5 + 0.1 * (c.arm == "ours") + 0.05 * (c.settings["learn.lr"] == best[c.arm]))
    tuned = changed(plain, tune=({"learn.lr": 1e-3}, {"learn.lr": 1e-4}), common={"propose.n": 4})
    data = study(pool, outcome=tuned).measure()
    assert data["claims"][0]["chosen"] == {a: {"learn.lr": lr} for a, lr in best.items()}
    assert [(t["arm"], t["settings"]["learn.lr"]) for t in data["tuning"]] == [
        (a, lr) for a in ("ours", "grpo") for lr in (1e-3, 1e-4)
    ]
    tuning, verdict = pool.ran[:16], pool.ran[16:]
    assert {c.seed for c in tuning} == set(TUNING_SEEDS)
    assert {c.seed for c in verdict} == set(VERDICT_SEEDS)
    assert all(c.settings["learn.lr"] == best[c.arm] for c in verdict)
    assert all(c.settings["propose.n"] == 4 for c in pool.ran)


def test_arms_are_recipes_with_settings(study: Callable[..., Study], plain: Claim) -> None:
    parts = (up("test.sampled", 0.02, "rloo", "blind"),)
    arms = {"blind": {"recipe": "grpo+sec", "learn.lr": 0.5}, "ours": {"propose.n": 2}}
    pool = Pool(better_by(0.1, 0.01))
    study(pool, outcome=changed(plain, components=parts, arms=arms)).measure()
    found = {c.arm: (c.recipe, dict(c.settings)) for c in pool.ran}
    assert found == {
        "ours": ("mine", {"propose.n": 2}),
        "rloo": ("rloo", {}),
        "blind": ("grpo+sec", {"learn.lr": 0.5}),
    }


# --- carrying on ---


def test_what_was_finished_is_not_run_again(study: Callable[..., Study]) -> None:
    whole = study(Pool(better_by(0.1, 0.01))).measure()
    made = study()
    made.evidence.cells_file("mine").unlink()
    with pytest.raises(KeyboardInterrupt):
        study(Pool(better_by(0.1, 0.01), breaks_after=5)).measure()
    pool = Pool(better_by(0.1, 0.01))
    assert study(pool).measure() == whole
    assert len(pool.ran) == 11
    idle = Pool(better_by(0.1))
    assert study(idle).measure() == whole
    assert not idle.ran


def test_a_line_that_was_cut_off_is_run_again(study: Callable[..., Study]) -> None:
    made = study(Pool(better_by(0.1, 0.01)))
    whole = made.measure()
    path = made.evidence.cells_file("mine")
    path.write_text(path.read_text()[:-40])
    pool = Pool(better_by(0.1, 0.01))
    assert study(pool).measure() == whole
    assert len(pool.ran) == 1
    assert len(made.evidence.cells("mine")) == 16


def test_other_weights_are_other_cells(study: Callable[..., Study], model: str) -> None:
    study(Pool(better_by(0.1, 0.01))).measure()
    Path(model, "model.safetensors").write_bytes(b"other weights")
    pool = Pool(better_by(0.1, 0.01))
    study(pool).measure()
    assert len(pool.ran) == 16


# --- what goes stale ---


def test_nothing_is_stale_until_something_changes(study: Callable[..., Study], plain: Claim, model: str) -> None:
    made = study(Pool(better_by(0.1, 0.01)))
    made.register()
    assert stale(made.evidence) == {"mine": ["registered, not measured"]}
    made.measure()
    assert stale(made.evidence) == {}
    study(outcome=changed(plain, text="in other words"))
    assert stale(made.evidence) == {"mine": ["the claims themselves"]}
    study()
    Path(model, "model.safetensors").write_bytes(b"other weights")
    assert stale(made.evidence) == {"mine": [f"model {model}"]}


def test_changed_code_is_named(study: Callable[..., Study]) -> None:
    made = study(Pool(better_by(0.1, 0.01)))
    data = made.measure()
    data["code"]["evolvent.learn.credit"] = "0"
    made.evidence.write("mine", data)
    assert stale(made.evidence) == {"mine": ["evolvent.learn.credit"]}


def test_a_recipe_that_is_gone_is_stale(study: Callable[..., Study]) -> None:
    made = study(Pool(better_by(0.1, 0.01)))
    made.measure()
    del REGISTRY["mine"]
    assert "named by its file, FILE:mine" in stale(made.evidence)["mine"][0]
    REGISTRY["mine"] = made.recipe  # the fixture takes it away again


def test_the_code_of_a_claim_is_that_of_its_arms_tasks_and_reference(study: Callable[..., Study], plain: Claim) -> None:
    found = study(outcome=changed(plain, test="rg/products:1", task="arith:1x1+countdown:3x12")).code_of_all()
    assert {
        "evolvent.recipes.policy_gradient.grpo",
        "evolvent.tasks.arith",
        "evolvent.tasks.countdown",
        "evolvent.tasks.reasoning_gym.compact",
        "evolvent.models.reference",
        "evolvent.engine.local",
    } <= set(found)
    probing = changed(plain, components=(up("probe.evolvent.bench.votes:vote_gain", 0.1, "grpo"),))
    assert {"evolvent.bench.votes", "evolvent.judge.elect"} <= set(study(outcome=probing).code_of_all())
    assert "evolvent.tasks.calc" not in found


def test_a_users_recipe_and_task_are_part_of_the_key(
    study: Callable[..., Study], plain: Claim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine, rows = tmp_path / "mine.py", tmp_path / "rows.csv"
    mine.write_text("x = 1\n")
    rows.write_text("prompt,answer\n1+1=,2\n")
    one = Recipe("mine", all_recipes()["grpo"], (), file=str(mine), outcome=changed(plain, task="rows.csv"))
    monkeypatch.setitem(REGISTRY, "mine", one)
    keys = set()
    for path, text in ((mine, "x = 2\n"), (mine, "x = 3\n"), (rows, "prompt,answer\n1+1=,3\n")):
        path.write_text(text)
        read_module.cache_clear()  # a process reads its code once, and a study what its cells rest on
        made = Study(one, Evidence(tmp_path / "evidence"))
        cell = made.cell(made.claims["outcome"], "ours", 0, {})
        assert cell.recipe == "mine.py:mine"
        keys.add(made.key(cell))
    assert len(keys) == 3
    assert {"mine.py", "rows.csv"} <= set(made.code_of_all())


# --- for real ---

METHOD = '''"""GRPO with another name."""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.policy_gradient.grpo import grpo

mine = recipe(
    "mine",
    grpo,
    put("learn.lr", 1e-3),
    outcome=claim(
        "it learns",
        up("gain.sampled", 0.001, "no-change"),
        task="arith:1x1",
        budget="2 steps",
        model="{model}",
        problems=16,
        common={{"propose.problems": 4, "propose.n": 4}},
        arms={{"no-change": {{"recipe": "no-change"}}}},
    ),
)
'''


@pytest.mark.slow
def test_a_claim_of_ones_own_file_is_measured_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(METHOD.format(model=small_model()))
    with pytest.raises(SystemExit) as end:
        main(["claims", "mine.py:mine", "--jobs", "2", "--json"])
    REGISTRY.pop("mine", None)
    assert end.value.code in (0, None)
    data = json.loads(Path("evidence/mine.json").read_text())
    assert data["claims"][0]["verdict"] in ("holds", "does-not-hold", "inconclusive")
    assert json.loads(capsys.readouterr().out)[0] == data
