"""Methods against each other: paired seeds, equal budget, learning curves with bands, final test score."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from evolvent.bench.cell import Cell, failed_in
from evolvent.bench.kept import run_kept
from evolvent.bench.metrics import metric
from evolvent.bench.pool import AnyCell
from evolvent.bench.statistics import Interval, sign_flip_p, t_interval
from evolvent.core.errors import UserError
from evolvent.core.files import whole
from evolvent.core.ledger import Budget
from evolvent.lineage.figures import clamped
from evolvent.lineage.runs import RunView
from evolvent.models.load import seed_models
from evolvent.run.assemble import assemble
from evolvent.run.check import refuse_hopeless
from evolvent.run.spec import RunSpec

SHOWN = ("sampled", "greedy", "pass@16", "length")


@dataclass
class Arm:
    """One competitor: a composition with settings of its own."""

    name: str
    recipe: str
    settings: dict[str, str] = field(default_factory=dict)


@dataclass
class Comparison:
    """What was found: per arm the values by seed, and the paired difference to the first arm.

    nan where an evaluation has no answer that could be judged.
    """

    task: str
    budget: Budget
    seeds: list[int]
    rows: dict[str, list[dict[str, Any]]]
    measured: ClassVar = "test accuracy, sampled at temperature 1"  # by the curves

    def values(self, arm: str, name: str) -> list[float]:
        """A metric of an arm, seed by seed."""
        return [metric(name, r) for r in self.rows[arm]]

    def table(self) -> list[dict[str, Any]]:
        """One row an arm: means with intervals, difference to the first arm, spending."""
        first = next(iter(self.rows))
        found = []
        for arm, rows in self.rows.items():
            row: dict[str, Any] = {"arm": arm}
            for what in SHOWN:
                if what in rows[0]["curve"][-1]:
                    row[what] = t_interval(self.values(arm, f"test.{what}"))
            row["start"] = sum(r["curve"][0]["sampled"] for r in rows) / len(rows)
            if arm != first:
                difference = [
                    a - b
                    for a, b in zip(self.values(arm, "test.sampled"), self.values(first, "test.sampled"), strict=True)
                ]
                row["difference"] = t_interval(difference)
                row["p_sign_flip"] = sign_flip_p(difference) if len(difference) <= 16 else None
            row["spent"] = {u: sum(r["spent"][u] for r in rows) / len(rows) for u in rows[0]["spent"]}
            row["errors"] = sum(sum(r["errors"].values()) for r in rows)
            row["failed"] = sum(failed_in(r) for r in rows)  # in the evaluations
            found.append(row)
        return found

    def curves(self) -> dict[str, list[tuple[float, Interval]]]:
        """Per arm (budget spent, accuracy over seeds) at every evaluation that all seeds reached."""
        found = {}
        for arm, rows in self.rows.items():
            points = []
            for place in range(min(len(r["curve"]) for r in rows)):
                at = [r["curve"][place] for r in rows]
                one = t_interval([p["sampled"] for p in at])
                share = Interval(one.mean, clamped(one.low), clamped(one.high))
                points.append((sum(p["spent"] for p in at) / len(at), share))
            found[arm] = points
        return found


def parse_arm(text: str) -> Arm:
    """`grpo+sec`, or with settings of its own: `grpo[propose.n=4,learn.lr=1e-4]`."""
    match = re.fullmatch(r"([^\[\]]+)(?:\[(.*)\])?", text.strip())
    if not match:
        raise UserError(f"`{text}` is no arm; give a recipe, perhaps with settings as in 'grpo[propose.n=4]'")
    settings = {}
    for item in filter(None, (match[2] or "").split(",")):
        path, sign, value = item.partition("=")
        if not sign:
            raise UserError(f"`{text}`: `{item}` is no setting; write path=value")
        settings[path.strip()] = value.strip()
    return Arm(text.strip(), match[1].strip(), settings)


def compare(
    arms: Sequence[Arm],
    task: str,
    model: str,
    budget: str,
    seeds: int,
    settings: dict[str, Any],
    test: str = "",
    jobs: int = 1,
    k: int = 16,
    problems: int = 1000,
    say: Callable[[str], None] = lambda line: None,
    kept: Path | None = None,
) -> Comparison:
    """Run every arm on every seed, from where the same comparison was interrupted (`by_arm`).

    `UserError` if an arm spent more than one step over the budget.
    """
    refuse_unfit(arms, seeds)
    cap = Budget.parse(budget)
    refuse_misfits(arms, task, model, budget, settings)
    cells = [
        Cell(
            a.name,
            a.recipe,
            task,
            seed_model(model, s),
            s,
            budget,
            {**settings, **a.settings},
            test=test,
            k=k,
            problems=problems,
        )
        for s in range(seeds)
        for a in arms
    ]
    rows = by_arm(cells, jobs, say, kept)
    refuse_overspent(rows, cap)
    return Comparison(task, cap, list(range(seeds)), rows)


def refuse_misfits(arms: Sequence[Arm], task: str, model: str, budget: str, settings: Mapping[str, Any]) -> None:
    """`UserError` for an arm that cannot run on the task, before the first one spends anything."""
    for a in arms:
        refuse_hopeless(assemble(RunSpec(a.recipe, task, seed_model(model, 0), budget, 0, {**settings, **a.settings})))


def refuse_unfit(arms: Sequence[Arm], seeds: int) -> None:
    """`UserError` for arms that are the same, and for too few or too many seeds."""
    if len({a.name for a in arms}) < len(arms):
        raise UserError("two arms are the same; give one of them other settings, as in 'grpo[propose.n=4]'")
    if not 2 <= seeds <= 64:
        raise UserError(f"a comparison needs 2 to 64 seeds, got {seeds}; 8 is a good number")


def by_arm(
    cells: Sequence[AnyCell], jobs: int, say: Callable[[str], None], kept: Path | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Results of all cells by arm, in the order of arms and seeds in which the cells are given; `kept` is the folder
    where they stay until all are there."""
    found = {(cell.arm, cell.seed): result for cell, result in run_kept(cells, jobs, say, kept)}
    rows: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        rows.setdefault(cell.arm, []).append(found[cell.arm, cell.seed])
    return rows


def refuse_overspent(rows: Mapping[str, Sequence[Mapping[str, Any]]], cap: Budget) -> None:
    """`UserError` if a run spent more than the budget and one of its (larger) steps."""
    for name, results in rows.items():
        for r in results:
            spent, steps = r["spent"][cap.unit], max(1.0, r["spent"]["steps"])
            if spent > cap.amount + 1.5 * spent / steps:
                raise UserError(f"arm {name} spent {spent:,.0f} of {cap}; budgets are not equal, so nothing is ranked")


def seed_model(model: str, seed: int) -> str:
    """`tiny` stands for its four checkpoints in turn, so that seeds vary the start model too."""
    count = sum(re.fullmatch(r"tiny-\d+", name) is not None for name in seed_models())
    return f"tiny-{seed % count}" if model == "tiny" and count else model


def compare_runs(views: Sequence[RunView]) -> list[dict[str, Any]]:
    """Finished runs side by side; refused unless task, model and budget are the same (controls are exempt)."""
    refuse_unlike(views)
    for v in views:
        if v.status != "finished":
            remedy = "wait for it" if v.status == "running" else f"`evolvent resume {v.name}` finishes it"
            raise UserError(f"run {v.name} is not finished but {v.status}; {remedy}")
        if "evolved" not in v.evaluations:
            raise UserError(
                f"run {v.name} has no final evaluation of its head, version {v.head}; "
                f"`evolvent resume {v.name} --final --budget ...` with a larger budget measures it"
            )
    return [
        {"run": v.name, "recipe": v.spec["recipe"], "seed": v.spec["seed"], **v.evaluations["evolved"]["evaluation"]}
        for v in views
    ]


def refuse_unlike(views: Sequence[RunView]) -> None:
    """`UserError` unless there are two runs or more, all different and alike in task, model and budget."""
    names = [v.name for v in views]
    if len(set(names)) < max(2, len(names)):
        raise UserError("compare needs at least two different runs; `evolvent runs` lists them")
    for key in ("task", "model", "budget"):
        values = {v.spec[key] for v in views if v.spec["recipe"] != "no-change"}
        if len(values) > 1:
            listed = ", ".join(f"{v.name}: {v.spec[key]}" for v in views)
            raise UserError(
                f"these runs have unequal {key}s ({listed}), so they are not ranked; "
                "run them alike, or `evolvent diff` them"
            )


def plot(comparison: Comparison, path: Path) -> None:
    """Learning curves with bands, as PNG, SVG or PDF by the suffix."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for arm, points in comparison.curves().items():
        x = [p[0] for p in points]
        y = [p[1].mean for p in points]
        (line,) = axes.plot(x, y, label=arm, linewidth=2)
        if all(math.isfinite(p[1].low) for p in points):
            axes.fill_between(
                x, [p[1].low for p in points], [p[1].high for p in points], alpha=0.15, color=line.get_color()
            )
    axes.set_xlabel(comparison.budget.unit.replace("_", " "))
    axes.set_ylabel(comparison.measured)
    axes.set_title(f"{comparison.task}: {len(comparison.seeds)} paired seeds, 97.5 % bands")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    try:
        with whole(path) as part:
            figure.savefig(part, dpi=150, format=path.suffix.removeprefix("."))
    except ValueError as reason:
        raise UserError(f"cannot draw {path}: {reason}") from None
    finally:
        plt.close(figure)
