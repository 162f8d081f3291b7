"""Proposer and solver: one adapter makes up problems, the other solves them, on one engine.

The pattern, and not one paper's method: the proposer is rewarded as in Absolute Zero (arXiv 2505.03335, section 3.2),
with two sets of weights as in R-Zero (arXiv 2508.05004). Absolute Zero itself has one model in both roles, three kinds
of tasks about programs, a baseline for each kind and role, and no problems of others.

    proposer's reward   (1 - p) / copies where 0 < p < 1, else 0
                        p: share of `tries` attempts of the solver that are right; copies: of the proposal in its batch
    solver's reward     the verifier's verdict

A proposal that does not parse, cannot be solved, belongs to the gate or test split, or was made before earns nothing.
The others go to a pool, from which the solver takes `share` of its problems; the rest are the task's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from evolvent.core.errors import UserError
from evolvent.core.recipe import put, recipe
from evolvent.core.records import Change, Group, Problem, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.judge.verify import verify
from evolvent.models.lora import Lora
from evolvent.propose.problems import Problems
from evolvent.recipes.policy_gradient.grpo import grpo
from evolvent.tasks.base import Task, split_of
from evolvent.tasks.roles.propose import Propose


def proposals(task: Task) -> Propose:
    """The proposer's task: make up problems of the run's task, at its levels."""
    family = task.name.partition(":")[0]
    if family not in ("countdown", "arith"):
        raise UserError(
            f"proposer-solver makes up problems of countdown or arith, not of {task.name}; choose one of these"
        )
    return Propose(tuple(f"{family}:{level}" for level in task.categories), getattr(task, "wording", "compact"))


@dataclass
class Learnability:
    """Judge of proposals: worth most where the solver succeeds now and then."""

    tries: int = 8

    def setup(self, role: Role) -> None:
        """The pool is the proposer's own store."""
        self.pool: Pool = role.slots["keep"]

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Have the solver try every valid, new proposal; one attempt at a proposal counts for all its copies."""
        solver = s.role.others["solver"]
        task: Any = s.role.task
        made: dict[str, Problem] = {}
        keys: dict[int, str] = {}
        rows = [t for g in groups for t in g.valid]
        for t in rows:
            problem = task.parse(t.problem.data["level"], t.completion)
            if problem is not None and split_of(problem.key) == "train":
                keys[t.uid] = problem.key
                made.setdefault(problem.key, problem)
        fresh = [p for p in made.values() if p.key not in self.pool]
        rates = self.rates(solver, fresh, s) if fresh else {}
        for t in rows:
            rate = rates.get(keys.get(t.uid, ""), 0.0)
            copies = sum(key == keys.get(t.uid) for key in keys.values())
            t.reward("learnability", (1 - rate) / copies if 0 < rate < 1 else 0.0, "solver")
        s.log("proposals/valid", sum(t.uid in keys for t in rows) / max(1, len(rows)))
        s.log("proposals/new", len(fresh) / max(1, len(rows)))
        self.pool.add(fresh, rates)

    def rates(self, solver: Role, problems: list[Problem], s: Step) -> dict[str, float]:
        """Success rate of the solver at each problem, by key."""
        groups = solver.act([Request(p, self.tries) for p in problems], s, "tries")
        found = {}
        for group in groups:
            scores = verify(solver.task, group.trajectories, solver.ledger)
            outcomes = [x.outcome for x in scores if not isinstance(x, Exception)]
            found[group.problem.key] = sum(outcomes) / len(outcomes) if outcomes else 0.0
        return found


@dataclass
class Pool:
    """Proposed problems, newest last; at most `capacity`, of which only those of middling difficulty are handed out."""

    capacity: int = 4096
    problems: dict[str, Problem] = field(default_factory=dict, init=False)
    rates: dict[str, float] = field(default_factory=dict, init=False)

    def __contains__(self, key: str) -> bool:
        return key in self.problems

    def add(self, problems: Sequence[Problem], rates: dict[str, float]) -> None:
        """Take in problems with the solver's success rates."""
        for p in problems:
            self.problems[p.key], self.rates[p.key] = p, rates.get(p.key, 0.0)
        for key in list(self.problems)[: max(0, len(self.problems) - self.capacity)]:
            del self.problems[key], self.rates[key]

    @property
    def useful(self) -> list[Problem]:
        """Those that the solver neither always nor never solved."""
        return [p for k, p in self.problems.items() if 0 < self.rates[k] < 1]

    def __call__(self, s: Step) -> list[Change]:
        """The judge fills the pool; here it is only counted."""
        s.log("proposals/pool", len(self.problems))
        return []

    def state_dict(self) -> dict[str, Any]:
        """All problems with their rates."""
        return {"problems": list(self.problems.values()), "rates": list(self.rates.values())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.problems = {p.key: p for p in state["problems"]}
        self.rates = dict(zip(self.problems, state["rates"], strict=True))


@dataclass
class FromPool(Problems):
    """`share` of the problems from the proposer's pool, as far as it reaches; the rest from the task."""

    share: Annotated[float, Field(ge=0, le=1)] = 0.5

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of both."""
        pool: Pool = s.role.others["proposer"].slots["keep"]
        useful = pool.useful[-4 * self.problems :]
        count = min(len(useful), round(self.share * self.problems))
        picked: list[int] = s.rng("pool").choice(len(useful), count, replace=False).tolist() if count else []
        s.log("proposals/used", count)
        yield [Request(useful[i], self.n) for i in picked] + self.requests(self.problems - count, s)


proposer_solver = recipe(
    "proposer-solver",
    None,
    put("proposer/task", proposals),
    put("proposer/adapter", Lora, rank=16),
    put("proposer/judge", Learnability),
    put("proposer/keep", Pool),
    put("solver/adapter", Lora, rank=16),
    put("solver/propose", FromPool),
    roles={"proposer": grpo, "solver": grpo},
    title="Proposer and solver (pattern)",
)
