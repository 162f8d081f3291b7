"""One cell of a comparison: an arm with a seed, run to its budget and evaluated on the test split on the way."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evolvent.bench.evaluate import Subject
from evolvent.bench.probes import find_probe
from evolvent.bench.statistics import average
from evolvent.core.ledger import Budget
from evolvent.core.recipe import compile_plan, show_path
from evolvent.core.records import Problem
from evolvent.guard.gate import Watch
from evolvent.recipes import all_recipes, resolve
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.spec import RunSpec
from evolvent.tasks.base import distinct
from evolvent.tasks.registry import load_task

TEST_SEED = 0  # every cell of every comparison is tested on the same problems


@dataclass(frozen=True)
class Cell:
    """What a cell's result depends on, the code and the model's weights aside.

    task      trained on; `test` is evaluated on (the same if empty)
    evals     evaluations on the way, at equal shares of the budget; the final score is the mean of the last three
    problems  of the test split; `k` samples of each give pass@k (1: only greedy and one sample)
    probes    names of further measurements, made at every evaluation
    """

    arm: str
    recipe: str
    task: str
    model: str
    seed: int
    budget: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    take: Mapping[str, str] = field(default_factory=dict)
    profile: str = "auto"
    test: str = ""
    evals: int = 10
    problems: int = 1000
    k: int = 1
    probes: tuple[str, ...] = ()

    def key(self, code: str) -> str:
        """Hash of everything that the result depends on; the arm's name is not part of it."""
        data = {k: v for k, v in asdict(self).items() if k != "arm"}
        text = json.dumps([data, code], sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run a cell on one thread; plain data: the curve of evaluations, means of step metrics, what was spent.

    Deterministic but for the entries under `seconds`. The threads are the caller's to set.
    """
    begun = time.perf_counter()
    spec = RunSpec(
        cell.recipe,
        cell.task,
        cell.model,
        cell.budget,
        cell.seed,
        {**_unwatched(cell), **cell.settings},
        cell.take,
        cell.profile,
    )
    assembled = assemble(spec)
    system, budget = assembled.system, Budget.parse(cell.budget)
    test = load_task(cell.test or cell.task, assembled.policy.format.wording)
    problems = distinct(test, "test", cell.problems, TEST_SEED)
    curve = [measure(cell, assembled, test, problems)]
    metrics: list[Mapping[str, float]] = []
    due = 1
    learns = any("learn" in role.slots for role in system.roles.values())
    for steps in system.run(budget) if learns else ():
        metrics.append({k: v for s in steps for k, v in s.metrics.items() if not k.startswith("seconds/")})
        share = system.ledger.of(budget.unit) / budget.amount
        if share >= due / cell.evals:
            curve.append(measure(cell, assembled, test, problems))
            due = int(share * cell.evals) + 1
    return {
        "cell": asdict(cell),
        "curve": curve,
        "train": _means(metrics),
        "late": _means(metrics[-max(1, len(metrics) // 4) :]),
        "spent": dict(system.ledger.spent["method"]),
        "errors": dict(system.errors),
        "seconds": {"cell": time.perf_counter() - begun},
    }


def _unwatched(cell: Cell) -> dict[str, Any]:
    """Settings that switch off gates which only look: the cell is evaluated anyway, and on its own account."""
    plan = compile_plan(resolve(cell.recipe), all_recipes(), cell.settings, cell.take)
    gates = {role: plan.values.get((role, "gate")) for role in plan.roles}
    return {show_path((r, "gate", "every")): 0 for r, gate in gates.items() if gate and gate.value is Watch}


def measure(cell: Cell, assembled: Assembled, test: Any, problems: list[Problem]) -> dict[str, float]:
    """One evaluation: accuracies of the policy as it is, and what has been spent so far. Charged to `evidence`.

    What failed is left out, counted as `errors` where there are some; nan where nothing is left.
    """
    system, role = assembled.system, assembled.main_role
    subject = Subject(assembled.policy, role.engine, test, system.ledger, seed=TEST_SEED, adapter=role.adapter)
    greedy = subject.roll(problems, 1, 0.0, "test")
    sampled = subject.roll(problems, cell.k, 1.0, "test")
    rows = [t for g in sampled for t in g.valid]
    found = {
        "step": float(system.t),
        "spent": system.ledger.of(Budget.parse(cell.budget).unit),
        "greedy": average([t.outcome for g in greedy for t in g.valid]),
        "sampled": average([t.outcome for t in rows]),
        "length": average([t.sampled for t in rows]),
        "problems": float(len(problems)),
    }
    if cell.k > 1:
        judged = [g.valid for g in sampled if g.valid]
        found[f"pass@{cell.k}"] = average([max(t.outcome for t in valid) for valid in judged])
        found["distinct"] = average([len({t.completion for t in valid}) for valid in judged])
    if failed := sum(t.error is not None for g in [*greedy, *sampled] for t in g.trajectories):
        found["errors"] = float(failed)
    for name in cell.probes:
        with system.ledger.account("evidence"):
            found[f"probe.{name}"] = find_probe(name)(role, system.t)
    return found


def failed_in(result: Mapping[str, Any]) -> int:
    """How many answers could not be judged in the evaluations of a cell."""
    return int(sum(point.get("errors", 0) for point in result["curve"]))


def _means(metrics: list[Mapping[str, float]]) -> dict[str, float]:
    """Mean over steps of every metric, where it was recorded."""
    values: dict[str, list[float]] = {}
    for row in metrics:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {name: average(v) for name, v in sorted(values.items())}
