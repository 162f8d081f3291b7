"""Comparisons: what may be ranked, and what the table and the picture say."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.small_model import small_model

from evolvent.bench import compare as page
from evolvent.bench.compare import (
    Arm,
    Comparison,
    compare,
    compare_runs,
    parse_arm,
    plot,
    refuse_overspent,
    seed_model,
)
from evolvent.bench.statistics import Interval, sign_flip_p, t_interval
from evolvent.cli.bench import print_comparison
from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget
from evolvent.lineage.runs import RunView

CAP = Budget(1000, "sampled")


def run(*sampled: float, spent: float = 1000, steps: float = 10) -> dict[str, Any]:
    """What one cell found."""
    curve = [{"spent": 100.0 * i, "sampled": s, "greedy": s, "length": 5.0} for i, s in enumerate(sampled)]
    return {"curve": curve, "spent": {"sampled": spent, "steps": steps}, "errors": {"verifier: out": 1}}


@pytest.mark.parametrize(("text", "recipe", "settings"), [
    ("grpo", "grpo", {}),
    (" grpo+sec ", "grpo+sec", {}),
    ("grpo[propose.n=4]", "grpo", {"propose.n": "4"}),
    ("grpo[propose.n=4, learn.lr = 1e-4]", "grpo", {"propose.n": "4", "learn.lr": "1e-4"}),
    ("grpo[]", "grpo", {}),
])  # fmt: skip
def test_arms_as_written(text: str, recipe: str, settings: dict[str, str]) -> None:
    arm = parse_arm(text)
    assert (arm.name, arm.recipe, arm.settings) == (text.strip(), recipe, settings)


@pytest.mark.parametrize("text", ["grpo[propose.n]", "grpo[propose.n=4", "[propose.n=4]", ""])
def test_what_is_no_arm(text: str) -> None:
    with pytest.raises(UserError, match="no arm|no setting"):
        parse_arm(text)


def test_unequal_budgets_are_not_ranked() -> None:
    fair = [run(0.1, spent=1000), run(0.1, spent=1090), run(0.1, spent=300, steps=3), run(0.1, spent=0, steps=0)]
    refuse_overspent({"a": fair}, CAP)
    with pytest.raises(UserError, match="arm b spent 1,300 of 1,000 tokens sampled; budgets are not equal"):
        refuse_overspent({"a": fair, "b": [run(0.1, spent=1300)]}, CAP)


def test_a_comparison_needs_several_seeds_and_different_arms() -> None:
    arms = [Arm("grpo", "grpo"), Arm("rloo", "rloo")]
    for seeds in (0, 1, 65):
        with pytest.raises(UserError, match="2 to 64 seeds"):
            compare(arms, "arith", "tiny", "2 steps", seeds, {})
    with pytest.raises(UserError, match="two arms are the same"):
        compare([arms[0], arms[0]], "arith", "tiny", "2 steps", 2, {})
    with pytest.raises(UserError, match="has no unit"):
        compare(arms, "arith", "tiny", "2", 2, {})


def found(**rows: list[dict[str, Any]]) -> Comparison:
    """A comparison of arms that ran."""
    return Comparison("arith", CAP, list(range(len(next(iter(rows.values()))))), rows)


def test_the_table_has_means_intervals_and_paired_differences() -> None:
    a = [run(0.1, 0.2 + 0.1 * s, 0.4 + 0.1 * s) for s in range(3)]
    b = [run(0.1, 0.3 + 0.1 * s, 0.6 + 0.1 * s + 0.02 * (s == 2)) for s in range(3)]
    first, second = found(a=a, b=b).table()
    assert first["sampled"].mean == pytest.approx(0.4)
    assert first["sampled"].low == pytest.approx(t_interval([0.3, 0.4, 0.5]).low)
    differences = [0.15, 0.15, 0.16]  # the seeds differ by more than the arms: pairs do not care
    assert second["difference"].mean == pytest.approx(sum(differences) / 3)
    assert second["difference"].low > 0.1
    assert second["p_sign_flip"] == sign_flip_p(differences)
    assert "difference" not in first
    assert second["start"] == pytest.approx(0.1)
    assert second["spent"] == {"sampled": 1000, "steps": 10}
    assert second["errors"] == 3


def test_failures_are_told_and_are_no_zeros(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = [run(0.1, 0.4), run(0.1, 0.5)], [run(0.1, math.nan), run(0.1, 0.6)]
    bad[0]["curve"][1]["errors"] = 1200.0
    comparison = found(a=good, b=bad)
    first, second = comparison.table()
    assert (first["failed"], second["failed"]) == (0, 1200)
    assert math.isnan(second["difference"].mean)
    assert math.isnan(second["p_sign_flip"])
    for row in [*good, *bad]:
        row["spent"]["seconds"] = 1.0
    monkeypatch.setenv("COLUMNS", "200")
    print_comparison(comparison)
    said = capsys.readouterr().out
    assert "not measured" in said
    assert "Errors of b, left out: 2 in training, 1,200 when it was tested" in said


def test_arms_are_named_as_they_were_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {name: [run(0.1, 0.3), run(0.1, 0.7)] for name in ("grpo", "grpo[propose.n=4]", "grpo[red]")}
    for row in (one for arm in rows.values() for one in arm):
        row["spent"]["seconds"] = 1.0
    monkeypatch.setenv("COLUMNS", "200")
    print_comparison(found(**rows))
    said = capsys.readouterr().out
    assert all(name in said for name in rows)
    assert "50.0 [0.0, 100.0]" in said
    assert "+0.0 [+0.0, +0.0]" in said


def test_curves_go_as_far_as_all_seeds_went_and_are_drawn(tmp_path: Path) -> None:
    comparison = found(a=[run(0.1, 0.2, 0.3), run(0.1, 0.4)], b=[run(0.1), run(0.3)])
    curves = comparison.curves()
    assert [x for x, _ in curves["a"]] == [0, 100]
    [narrow] = found(a=[run(0.1, 0.6), run(0.1, 0.61)]).curves().values()
    assert narrow[1][1] == t_interval([0.6, 0.61])
    wide = t_interval([0.2, 0.4])
    assert wide.low < 0 < 1 < wide.high  # of shares there are none beyond
    assert curves["a"][1][1] == Interval(wide.mean, 0.0, 1.0)
    assert curves["b"][0][1].mean == pytest.approx(0.2)
    plot(comparison, tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")
    with pytest.raises(UserError, match="cannot draw"):
        plot(comparison, tmp_path / "curves.nonsense")


def test_tiny_stands_for_its_checkpoints_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "seed_models", lambda: ["small", "tiny-0", "tiny-1", "tiny-2"])
    assert [seed_model("tiny", s) for s in range(4)] == ["tiny-0", "tiny-1", "tiny-2", "tiny-0"]
    assert seed_model("small", 3) == "small"
    assert seed_model("some/folder", 3) == "some/folder"


def view(name: str, **spec: Any) -> RunView:
    """A finished run."""
    usual = {"recipe": "grpo", "task": "arith", "model": "tiny", "budget": "9 steps", "seed": 0}
    found = {"evolved": {"evaluation": {"greedy": 0.5}}}
    return RunView(name, {**usual, **spec}, status="finished", evaluations=found)


@pytest.mark.parametrize(("key", "other"), [("budget", "10 steps"), ("task", "calc"), ("model", "small")])
def test_finished_runs_must_be_alike(key: str, other: str) -> None:
    with pytest.raises(UserError, match=f"unequal {key}s"):
        compare_runs([view("a"), view("b", **{key: other})])


def test_finished_runs_side_by_side() -> None:
    rows = compare_runs([view("a"), view("b", recipe="rloo", seed=1), view("c", recipe="no-change", budget="1 step")])
    assert [(r["run"], r["recipe"], r["seed"], r["greedy"]) for r in rows][1] == ("b", "rloo", 1, 0.5)
    unfinished = view("d")
    unfinished.evaluations = {}
    with pytest.raises(UserError, match="no final evaluation of its head.*evolvent resume d"):
        compare_runs([view("a"), unfinished])


@pytest.mark.parametrize(("status", "remedy"), [("interrupted", "`evolvent resume d` finishes"), ("running", "wait")])
def test_figures_from_before_a_run_was_carried_on_are_not_compared(status: str, remedy: str) -> None:
    unfinished = view("d")
    unfinished.status = status
    with pytest.raises(UserError, match=f"d is not finished but {status}; {remedy}"):
        compare_runs([view("a"), unfinished])


@pytest.mark.slow
def test_a_comparison_for_real(tmp_path: Path) -> None:
    """Two processes; `no-change` spends nothing, and the pairs share their start."""
    arms = [parse_arm("no-change"), parse_arm("grpo[propose.problems=6,propose.n=4]")]
    said: list[str] = []
    made = compare(arms, "arith:1x1", small_model(), "4 steps", 2, {}, jobs=2, k=2, problems=24, say=said.append)
    assert len(said) == 4
    idle, learned = made.table()
    assert idle["spent"]["sampled"] == 0 < learned["spent"]["sampled"]
    assert idle["start"] == learned["start"]
    assert learned["spent"]["steps"] == 4
    plot(made, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_all_arms_are_looked_at_before_the_first_one_runs() -> None:
    said: list[str] = []
    arms = [Arm("grpo", "grpo"), Arm("search", "hill-climbing")]
    with pytest.raises(UserError, match="evolves programs"):
        compare(arms, "arith:1x1", small_model(), "1 step", 2, {}, say=said.append)
    assert said == []
