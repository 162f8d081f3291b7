"""SE-Agent's attempts at a bug: one after the other by a plan, each steered by what is remembered of those before.

arXiv 2508.02085.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evolvent.core.errors import UserError, unknown
from evolvent.core.records import Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.attempts.remember import Remember, toolbox
from evolvent.search.attempts.summary import Summary

OPERATORS = ("base", "revision", "recombination", "refinement")


@dataclass
class Iterations:
    """Propose: for the bug of the step one attempt after the other, as `plan` says; the best of them is handed in.

        score = completion * passed / shown + quality / lines changed + efficiency * share of the effort left

    The paper names these three and gives no weights. Only visible tests count; `quality` is here how small a patch is,
    and 0 without one. `pool` says how many of the latest summaries operators read (0: all). An attempt that failed with
    an error is in no pool. Metrics: `solved` (1 if the patch that is handed in passes all visible tests), `covered`
    (share of the scripted agent's operators that were in use), `repeated` (share of its changes that were tried before
    at this bug), `steered` (attempts that had a strategy).
    """

    plan: tuple[str, ...] = OPERATORS
    completion: float = 0.8
    quality: float = 0.1
    efficiency: float = 0.1
    pool: int = 0
    remember: Any = Remember

    def setup(self, role: Role) -> None:
        """A plan of operators that there are, and weights."""
        if not self.plan:
            raise UserError("propose.plan is empty; give for example --set propose.plan=base,revision")
        for name in self.plan:
            if name not in OPERATORS:
                raise unknown("operator", name, OPERATORS, f"propose.plan has {', '.join(OPERATORS)}")
        if min(self.completion, self.quality, self.efficiency, self.pool) < 0:
            raise UserError("propose.completion, .quality, .efficiency and .pool must be at least 0")

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round for each attempt."""
        problem = self.remember.bug(s)
        made: list[tuple[Trajectory, Summary]] = []
        steered = 0
        for operator in self.plan:
            pool = [summary for _, summary in made][-self.pool :]
            [strategy] = self.remember.strategies(operator, pool, 1, problem, s)
            steered += bool(strategy)
            yield [self.remember.request(problem, strategy)]
            new = [(t, operator, strategy) for g in s.fresh for t in g.valid]
            made += zip((t for t, _, _ in new), self.remember.summaries(new, s), strict=True)
        s.log("steered", steered / len(self.plan))
        hand_in(made, self.best([summary for _, summary in made]), s)

    def best(self, pool: Sequence[Summary]) -> int | None:
        """The place of the attempt with the highest score, the first of equals; None if there is none."""
        return max(range(len(pool)), key=lambda i: (self.score(pool[i]), -i), default=None)

    def score(self, a: Summary) -> float:
        """Task completion, quality and efficiency, weighted."""
        small = 1.0 / a.edits if a.changed else 0.0
        return self.completion * a.passed / a.shown + self.quality * small + self.efficiency * a.left


def hand_in(made: Sequence[tuple[Trajectory, Summary]], place: int | None, s: Step) -> None:
    """Say which attempt's patch is handed in, and what the attempts have been."""
    for i, (t, summary) in enumerate(made):
        t.info["summary"] = summary
        t.info["handed in"] = i == place
    if place is None:
        return
    s.log("solved", made[place][1].solved)
    tried = [t[0] for _, summary in made for t in summary.tried if t[1] != "known"]
    if tried:
        s.log("repeated", 1 - len(set(tried)) / len(tried))
        used = {name for _, summary in made for name in summary.tools}
        s.log("covered", len(used) / len(toolbox(s.role).operators))
