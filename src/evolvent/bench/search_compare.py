"""Searches against each other: paired seeds, equal budget, the simple baselines always beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from evolvent.bench.compare import Arm, Comparison, by_arm, refuse_misfits, refuse_unfit, refuse_unlike, seed_model
from evolvent.bench.search_cell import SearchCell
from evolvent.bench.statistics import Interval, sign_flip_p, t_interval
from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget
from evolvent.core.recipe import compile_plan
from evolvent.lineage.descent import best_of, valid
from evolvent.lineage.runs import RunView
from evolvent.recipes import all_recipes, resolve

BASELINES = ("random-search", "iid-sampling", "sequential-sampling")
SAME_AS = {"best-of-n": "iid-sampling"}  # n programs, each varied from the seed program, and the best of them

WORDS = {
    "verifier_calls": "evaluations",
    "verifier_seconds": "CPU seconds",
    "sampled": "tokens",
    "money": "dollars",
}


@dataclass
class SearchComparison(Comparison):
    """What was found by searches: per arm the results by seed, and the paired difference to the first arm.

    Curves are of the best value so far, at equal shares of the budget.
    """

    measured: ClassVar = "best value so far"

    def table(self) -> list[dict[str, Any]]:
        """One row an arm: means with intervals, what the best is worth anew, difference to the first arm, spending."""
        first, found = next(iter(self.rows)), []
        for arm, rows in self.rows.items():
            best, anew = self.values(arm, "final.best"), self.anew(arm)
            row: dict[str, Any] = {
                "arm": arm,
                "start": t_interval([r["curve"][0]["best"] for r in rows]).mean,
                "best": t_interval(best),
                "most": max(best),
                "rescored": t_interval(anew) if anew else None,
                "reproduced": sum(r["rescored"]["same"] for r in rows),
                "area": t_interval(self.values(arm, "area.best")),
                "valid": t_interval(self.values(arm, "share.valid")).mean,
                "distinct": t_interval(self.values(arm, "share.distinct")).mean,
            }
            if arm != first and anew and (theirs := self.anew(first)):
                difference = [a - b for a, b in zip(anew, theirs, strict=True)]
                row["difference"] = t_interval(difference)
                row["p_sign_flip"] = sign_flip_p(difference) if len(difference) <= 16 else None
            row["spent"] = {u: sum(r["spent"][u] for r in rows) / len(rows) for u in rows[0]["spent"]}
            row["errors"] = sum(sum(r["errors"].values()) for r in rows)
            row["stuck"] = sum("stuck" in r for r in rows)
            found.append(row)
        return found

    def anew(self, arm: str) -> list[float]:
        """What the winners are worth, evaluated anew, seed by seed; nothing if one of them is not valid any more."""
        values = [r["rescored"]["value"] for r in self.rows[arm]]
        return [] if None in values else values

    def curves(self) -> dict[str, list[tuple[float, Interval]]]:
        """Per arm (budget spent, best value so far over seeds), from where all seeds have one."""
        found = {}
        for arm, rows in self.rows.items():
            points = []
            for at in zip(*(r["curve"] for r in rows), strict=True):
                if all(p["best"] is not None for p in at):
                    spent = sum(p["spent"] for p in at) / len(at)
                    points.append((spent, t_interval([p["best"] for p in at])))
            found[arm] = points
        return found


def with_baselines(arms: Sequence[Arm]) -> list[Arm]:
    """The arms, and those baselines after them that are none of them."""
    there = {a.recipe for a in arms if not a.settings}
    return [*arms, *(Arm(name, name) for name in BASELINES if name not in there)]


def named(arm: Arm) -> Arm:
    """The arm, under the recipe that it is of searches."""
    return Arm(arm.name, SAME_AS.get(arm.recipe, arm.recipe), arm.settings)


def refuse_answering(arm: Arm) -> None:
    """`UserError` for a recipe that has a model answer problems instead of evaluating programs."""
    parts = [entry.value for entry in compile_plan(resolve(arm.recipe), all_recipes(), arm.settings).values.values()]
    if "judge" not in arm.settings and not any(hasattr(part, "evaluates") for part in parts):
        raise UserError(f"{arm.recipe} has a model answer problems; compare recipes that search, such as hill-climbing")


def compare_searches(
    arms: Sequence[Arm],
    task: str,
    model: str,
    budget: str,
    seeds: int,
    settings: Mapping[str, Any],
    jobs: int = 1,
    baselines: bool = True,
    say: Callable[[str], None] = lambda line: None,
    kept: Path | None = None,
) -> SearchComparison:
    """Run every arm on every seed, the baselines beside them, from where the same comparison was interrupted.

    Nothing that was made beyond the budget counts.
    """
    arms = [named(a) for a in arms]
    arms = with_baselines(arms) if baselines else arms
    if len(arms) < 2:
        raise UserError("compare needs at least two arms; leave the baselines on, or name another recipe")
    refuse_unfit(arms, seeds)
    for arm in arms:
        refuse_answering(arm)
    cap = Budget.parse(budget)
    refuse_misfits(arms, task, model, budget, settings)
    cells = [
        SearchCell(a.name, a.recipe, task, seed_model(model, s), s, budget, {**settings, **a.settings})
        for s in range(seeds)
        for a in arms
    ]
    found = by_arm(cells, jobs, say, kept)
    return SearchComparison(task, cap, list(range(seeds)), {a.name: found[a.name] for a in arms})


def compare_search_runs(views: Sequence[RunView]) -> list[dict[str, Any]]:
    """Finished searches side by side; refused unless task, model and budget are the same."""
    if strange := [v.name for v in views if not v.candidates]:
        raise UserError(f"{strange[0]} is no search that has begun, so it is not compared with searches")
    refuse_unlike(views)
    found = []
    for v in views:
        if v.status != "finished":
            raise UserError(f"run {v.name} is not finished; `evolvent resume {v.name}` finishes it")
        tried, spent = list(v.candidates.values()), v.spent["method"]
        found.append(
            {
                "run": v.name,
                "recipe": v.spec["recipe"],
                "seed": v.spec["seed"],
                "best": max(c["evaluation"]["value"] for c in tried if valid(c)),
                "rescored": v.rescored,
                "candidate": best_of(v)["uid"],
                "candidates": len(tried),
                "valid": sum(valid(c) for c in tried) / len(tried),
                "spent": spent,
            }
        )
    return found


def unit_name(unit: str) -> str:
    """A unit of the ledger as it is called in tables of searches."""
    return WORDS.get(unit, unit.replace("_", " "))
