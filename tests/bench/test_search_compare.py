"""Comparisons of searches: who is in, what the table says, and which finished runs are alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evolvent.bench.compare import Arm, parse_arm, plot
from evolvent.bench.search_compare import (
    BASELINES,
    SearchComparison,
    compare_search_runs,
    compare_searches,
    named,
    unit_name,
    with_baselines,
)
from evolvent.bench.statistics import sign_flip_p, t_interval
from evolvent.cli.main import main
from evolvent.cli.searches import print_searches
from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget
from evolvent.lineage.runs import RunView, read_run
from evolvent.lineage.store import Store
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec


def test_baselines_are_beside_whoever_is_compared() -> None:
    arms = with_baselines([parse_arm("hill-climbing"), parse_arm("random-search")])
    assert [a.name for a in arms] == ["hill-climbing", "random-search", "iid-sampling", "sequential-sampling"]
    other = with_baselines([parse_arm("random-search[propose.children=2]")])
    assert [a.name for a in other] == ["random-search[propose.children=2]", *BASELINES]


def test_best_of_n_is_independent_sampling() -> None:
    arm = named(parse_arm("best-of-n"))
    assert (arm.name, arm.recipe) == ("best-of-n", "iid-sampling")
    assert [a.name for a in with_baselines([arm])] == ["best-of-n", "random-search", "sequential-sampling"]


def test_one_arm_without_baselines_is_no_comparison() -> None:
    one = [Arm("hill-climbing", "hill-climbing")]
    with pytest.raises(UserError, match="at least two arms"):
        compare_searches(one, "program:circle-packing:8", "none", "9 evaluations", 2, {}, baselines=False)
    with pytest.raises(UserError, match="2 to 64 seeds"):
        compare_searches(one, "program:circle-packing:8", "none", "9 evaluations", 1, {})


def run(*best: float | None, anew: float | None, same: bool = True, calls: float = 10.0) -> dict[str, Any]:
    """What one cell found: best values at equal shares of ten evaluations."""
    curve = [{"spent": 5.0 * i or 1.0, "best": b, "valid": 0.5, "distinct": 0.75} for i, b in enumerate(best)]
    records = [[p["spent"], p["spent"], p["best"]] for p in curve if p["best"] is not None]
    return {
        "cell": {"arm": "a", "seed": 0, "budget": "10 evaluations"},
        "curve": curve,
        "records": records,
        "rescored": {"value": anew, "found": best[-1], "same": same},
        "spent": {"verifier_calls": calls, "verifier_seconds": 0.25, "sampled": 0.0, "money": 0.0},
        "errors": {},
    }


def found(**rows: list[dict[str, Any]]) -> SearchComparison:
    """A comparison of arms that ran."""
    seeds = list(range(len(next(iter(rows.values())))))
    return SearchComparison("program:toy", Budget(10, "verifier_calls"), seeds, rows)


def test_arms_are_compared_by_values_that_the_search_never_saw(capsys: pytest.CaptureFixture[str]) -> None:
    a = [run(1.0, 2.0, 3.0 + s, anew=3.0 + s) for s in range(3)]
    b = [run(1.0, 9.0, 9.0, anew=2.0 + s + 0.25 * (s == 2), same=False) for s in range(3)]
    b[1]["stuck"] = "none of the last 200 candidates could be evaluated"
    made = found(a=a, b=b)
    first, second = made.table()
    assert first["best"] == t_interval([3.0, 4.0, 5.0])
    assert first["area"].mean == pytest.approx((1.0 * 4 + 2.0 * 5) / 9)  # the last value has no width
    assert (first["start"], first["most"], first["reproduced"]) == (1.0, 5.0, 3)
    assert "difference" not in first
    differences = [-1.0, -1.0, -0.75]
    assert second["difference"] == t_interval(differences)
    assert second["p_sign_flip"] == sign_flip_p(differences)
    assert (second["reproduced"], second["spent"]["verifier_calls"]) == (0, 10.0)
    print_searches(made)
    said = capsys.readouterr().out
    for word in ("evaluations", "CPU", "(noisy)", "difference", "The seed program has 1"):  # titles may be folded
        assert word in said
    assert "tokens" not in said
    assert "b ended before its budget on 1 of 3 seeds" in said
    assert "a ended" not in said


def test_an_arm_whose_winner_fell_through_is_not_ranked() -> None:
    first, second = found(a=[run(1.0, anew=1.0)] * 2, b=[run(2.0, anew=None), run(2.0, anew=2.0)]).table()
    assert second["rescored"] is None
    assert "difference" not in second
    assert first["rescored"] is not None


def test_curves_begin_where_all_seeds_have_a_value(tmp_path: Path) -> None:
    made = found(a=[run(None, 2.0, 3.0, anew=3.0), run(1.0, 4.0, 5.0, anew=5.0)])
    assert made.curves()["a"] == [(5.0, t_interval([2.0, 4.0])), (10.0, t_interval([3.0, 5.0]))]
    plot(made, tmp_path / "curves.svg")
    assert "best value so far" in (tmp_path / "curves.svg").read_text()


def test_units_as_they_are_called() -> None:
    units = ["evaluations", "CPU seconds", "environment steps"]
    assert [unit_name(u) for u in ("verifier_calls", "verifier_seconds", "environment_steps")] == units


# --- finished runs ---


def test_finished_searches_side_by_side(tmp_path: Path, task: str, capsys: pytest.CaptureFixture[str]) -> None:
    store, names = Store(tmp_path / "runs"), []
    twelve = "12 evaluations"
    for recipe, budget in (("hill-climbing", twelve), ("iid-sampling", twelve), ("hill-climbing", "9 steps")):
        names.append(begin(RunSpec(recipe, task, "none", budget), store, logs=()).name)
    views = [read_run(store, name) for name in names]
    rows = compare_search_runs(views[:2])
    assert [(r["recipe"], r["candidates"]) for r in rows] == [("hill-climbing", 17), ("iid-sampling", 17)]
    assert [r["best"] for r in rows] == [r["rescored"]["value"] for r in rows]
    with pytest.raises(UserError, match="unequal budgets"):
        compare_search_runs([views[0], views[2]])
    with pytest.raises(UserError, match="is no search"):
        compare_search_runs([views[0], RunView("model")])
    with pytest.raises(SystemExit) as end:
        main(["compare", *names[:2], "--store", str(tmp_path / "runs"), "--json"])
    assert end.value.code in (0, None)
    assert [r["run"] for r in json.loads(capsys.readouterr().out)] == names[:2]
    with pytest.raises(SystemExit):
        main(["compare", *names[:2], "--store", str(tmp_path / "runs")])
    said = capsys.readouterr().out
    assert "finished searches" in said
    assert f"{rows[0]['best']:.10g}" in said


def test_a_search_that_was_stopped_is_not_ranked(task: str) -> None:
    spec = {"task": task, "model": "none", "budget": "9 evaluations", "recipe": "hill-climbing", "seed": 0}
    tried = {0: {"uid": 0, "evaluation": {"value": 1.0}}}
    views = [RunView(name, spec, status="interrupted", candidates=tried) for name in ("a", "b")]
    with pytest.raises(UserError, match="run a is not finished; `evolvent resume a`"):
        compare_search_runs(views)


@pytest.mark.slow
def test_a_comparison_from_the_command_line(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["compare", "hill-climbing", "--task", task, "--budget", "12 evaluations", "--seeds", "2", "--json"])
    assert end.value.code in (0, None)
    said = capsys.readouterr()
    data = json.loads(said.out)
    assert [a["arm"] for a in data["arms"]] == ["hill-climbing", *BASELINES]
    assert "8/8 cells" in said.err
    assert all(a["rescored"]["mean"] == pytest.approx(a["best"]["mean"]) for a in data["arms"])
    assert data["budget"] == "12 verifier calls"
    assert Path("compare.png").stat().st_size > 1000


def test_all_searches_are_looked_at_before_the_first_one_runs() -> None:
    said: list[str] = []
    arms = [Arm("hill-climbing", "hill-climbing"), Arm("dgm", "dgm")]
    with pytest.raises(UserError):
        compare_searches(arms, "program:circle-packing:4", "none", "4 evaluations", 2, {}, say=said.append)
    assert said == []
