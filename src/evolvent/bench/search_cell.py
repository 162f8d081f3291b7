"""One cell of a comparison of searches: an arm with a seed, run to its budget; what it found, and what that is worth.

Everything that is measured of an arm is computed from candidates within the budget: a step makes several, and what it
makes beyond the budget does not count.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget
from evolvent.run.assemble import assemble
from evolvent.run.spec import RunSpec
from evolvent.search.archive import Stuck, archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import programs_of
from evolvent.search.rescore import REPEATS, TOP, believe, form_of

IDLE = 50  # steps that may spend nothing in the unit of the budget
EPSILON = 1e-9  # relative; shares of a step are rounded


@dataclass(frozen=True)
class SearchCell:
    """What a cell's result depends on, the code and the model's weights aside.

    evals    points of the curve of best values, at equal shares of the budget
    top      candidates that are evaluated anew at the end, up to `repeats` times
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
    evals: int = 20
    top: int = TOP
    repeats: int = REPEATS

    def key(self, code: str) -> str:
        """Hash of everything that the result depends on; the arm's name is not part of it."""
        data = {k: v for k, v in asdict(self).items() if k != "arm"}
        text = json.dumps(["search", data, code], sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


@dataclass
class Tally:
    """Candidates in the order in which they were made, with what had been spent after each.

    Within a step, what it spent is shared out equally: for evaluations that is exact where all cost the same. Who is
    evaluated further is as it was at the end of that step.
    """

    before: tuple[float, float] = (0.0, 0.0)  # (spent, evaluations), when it was last told of candidates
    candidates: list[Candidate] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)  # in the unit of the budget
    evaluations: list[float] = field(default_factory=list)
    verdicts: list[tuple[float, float, Candidate]] = field(default_factory=list)  # new and further ones, in order

    def look(self, history: Sequence[Candidate], after: tuple[float, float], cap: float) -> None:
        """All candidates, (spent, evaluations) after a step, and the budget: who is evaluated further beyond it is as
        before."""
        known = len(self.candidates)
        if after[0] <= cap * (1 + EPSILON):
            self.revise(history[:known], after)
        self.add(history[known:], self.before, after)
        self.before = after

    def forget(self, kept: int) -> None:
        """All candidates after the first so many, which were never evaluated, are as if they had not been made."""
        for told in (self.candidates, self.spent, self.evaluations):
            del told[kept:]

    def add(self, new: Sequence[Candidate], before: tuple[float, float], after: tuple[float, float]) -> None:
        """The candidates of one step, and (spent, evaluations) before and after it."""
        for place, candidate in enumerate(new, 1):
            share = place / len(new)
            self.candidates.append(candidate)
            self.spent.append(before[0] + share * (after[0] - before[0]))
            self.evaluations.append(before[1] + share * (after[1] - before[1]))
            self.verdicts.append((self.spent[-1], self.evaluations[-1], candidate))

    def revise(self, history: Sequence[Candidate], after: tuple[float, float]) -> None:
        """The same candidates, some of them evaluated further in a step, and (spent, evaluations) after it."""
        for place, candidate in enumerate(history):
            if candidate is not self.candidates[place]:
                self.candidates[place] = candidate
                self.verdicts.append((*after, candidate))

    def within(self, amount: float) -> int:
        """How many candidates there were when so much had been spent; the seed program is always one of them."""
        return max(1, int(np.searchsorted(self.spent, amount * (1 + EPSILON), side="right")))

    def records(self, amount: float) -> list[list[float]]:
        """[spent, evaluations, value] of each that was better than all before it, when so much had been spent.

        Only what is valid and was evaluated wholly counts.
        """
        found: list[list[float]] = []
        most = max(amount * (1 + EPSILON), self.spent[0])
        for spent, evaluations, c in self.verdicts:
            if spent <= most and c.valid and c.evaluation.complete and (not found or c.value > found[-1][2]):
                found.append([spent, evaluations, c.value])
        return found

    def curve(self, cap: float, points: int) -> list[dict[str, Any]]:
        """The state after the seed program, and at equal shares of the budget; `best` is None before the first value.

        `valid` and `distinct` are shares of all candidates so far: those with a value, and different normal forms.
        """
        forms = [form_of(c) for c in self.candidates]
        records, found = self.records(cap), []
        for amount in [self.spent[0], *(cap * i / points for i in range(1, points + 1))]:
            count = self.within(amount)
            best = [value for spent, _, value in records if spent <= max(amount * (1 + EPSILON), self.spent[0])]
            found.append(
                {
                    "step": self.candidates[count - 1].step,
                    "spent": amount,
                    "evaluations": self.evaluations[count - 1],
                    "candidates": count,
                    "best": best[-1] if best else None,
                    "valid": sum(c.valid for c in self.candidates[:count]) / count,
                    "distinct": len(set(forms[:count])) / count,
                }
            )
        return found


class Row(NamedTuple):
    """A step: how many candidates there were before it, whether it evaluated any, and its metrics."""

    known: int
    evaluated: bool
    metrics: Mapping[str, float]


def run_search(cell: SearchCell) -> dict[str, Any]:
    """Run a cell on one thread; plain data: curve and records of best values, means of step metrics, what was spent,
    and the best evaluated anew (`search.rescore`).

    Deterministic but for the entries under `seconds`, where budget and evaluator are. The threads are the caller's to
    set. `stuck` is there only of a search that ended before its budget, and says why; the candidates that nobody could
    evaluate, after which it gave up, are left out. `UserError` where nothing is valid, or the budget is in a unit that
    the search never spends.
    """
    begun, budget = time.perf_counter(), Budget.parse(cell.budget)
    spec = RunSpec(
        cell.recipe, cell.task, cell.model, cell.budget, cell.seed, cell.settings, cell.take, cell.profile
    )  # fmt: skip
    assembled = assemble(spec)
    system, role = assembled.system, assembled.main_role
    archive, task, ledger = archive_of(role), programs_of(role), system.ledger
    tally, rows, stuck = Tally(), list[Row](), ""

    def spent() -> tuple[float, float]:
        return ledger.of(budget.unit), ledger.of("verifier_calls")

    try:
        try:
            for steps in system.run(budget):
                found = {k: v for s in steps for k, v in s.metrics.items() if not k.startswith("seconds/")}
                rows.append(Row(len(tally.candidates), spent()[1] > tally.before[1], found))
                if system.t >= IDLE and not spent()[0]:
                    raise UserError(f"a budget of {budget} would never be used up by {cell.recipe}; give evaluations")
                tally.look(archive.history, spent(), budget.amount)
        except Stuck as reason:  # a result of its rules, and no error: what it has found until then is its result
            if not spent()[0]:
                raise
            made = archive.history[: -archive.untried]
            tally.forget(len(made))
            tally.look(made, spent(), budget.amount)
            rows, stuck = [r for r in rows if r.evaluated or r.known < len(made)], str(reason)
        metrics = [r.metrics for r in rows]
        count = tally.within(budget.amount) if tally.candidates else 0
        rescored = believe(role, tally.candidates[:count], cell.top, cell.repeats)
        if rescored is None:
            raise UserError(f"{cell.recipe} found nothing valid on {cell.task} within {budget}")
    finally:
        if task.sandbox is not None:  # some worlds run nothing
            task.sandbox.close()
    return {
        "cell": asdict(cell),
        "curve": tally.curve(budget.amount, cell.evals),
        "records": tally.records(budget.amount),
        "rescored": rescored,
        "train": means(metrics),
        "late": means(metrics[-max(1, len(metrics) // 4) :]),
        "spent": dict(ledger.spent["method"]),
        "errors": dict(system.errors),
        "seconds": {"cell": time.perf_counter() - begun},
        **({"stuck": stuck} if stuck else {}),
    }


def means(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean over steps of every metric, where it was recorded."""
    names = sorted({name for row in metrics for name in row})
    return {name: float(np.mean([row[name] for row in metrics if name in row])) for name in names}
