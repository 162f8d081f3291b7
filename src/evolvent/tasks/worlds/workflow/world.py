"""The world `workflow`: questions of several steps with exact answers; what evolves is a team of agents with tools.

    value of a question = 1 if the answer is right, else 0, minus beta * cost

    program:workflow                      8 questions of each of 6 kinds
    program:workflow:questions=4,beta=0   see `Settings`

A team is data (`team.py`) and is executed here, not in the sandbox. Without a model a scripted worker is every node;
the splits `gate` and `test` have other questions than those that a search sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Call
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM, ProgramTask, World
from evolvent.tasks.settings import read_settings
from evolvent.tasks.worlds.workflow.diagnose import explained
from evolvent.tasks.worlds.workflow.execute import Trace, Worker, execute, scripted
from evolvent.tasks.worlds.workflow.questions import KINDS, named, names
from evolvent.tasks.worlds.workflow.seeds import POOL
from evolvent.tasks.worlds.workflow.team import Team, TeamError, read

GATE, TEST = 20, 170  # questions of each kind
GOAL = """Find a team of agents that answers questions about journeys and goods. A team is JSON: nodes by name, each
with a backbone (tiny, small, large), tools (lookup, converter, calculator) and a prompt (steps, method, output); edges;
the nodes that get the question (first), and the one whose line `answer: NUMBER` counts (last). Edges have no circle.
The value is the share of right answers, less the cost of the calls."""


@dataclass(frozen=True)
class Settings:
    """questions of each kind that a search sees; beta, what a unit of cost takes away; seed of all questions."""

    questions: int = 8
    beta: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.questions <= 200 or not 0 <= self.beta <= 1:
            raise UserError("workflow: questions goes from 1 to 200, beta from 0 to 1")


class Workflow(ProgramTask):
    """The world as a task. `worker` carries nodes out, `explain` says what went wrong in a trajectory, for feedback;
    `traces` keeps those of the latest evaluation."""

    scripted_agent: ClassVar = True  # evidence says so: rules act where a model would

    sandbox: Any = None  # nothing runs but the executor

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        self.worker: Worker = scripted
        self.explain: Callable[[Team, Trace], str] = explained
        self.traces: dict[tuple[str, str], Trace] = {}
        self.pool = {name: team.text() for name, team in POOL.items()}
        splits = {"train": settings.questions, "gate": GATE, "test": TEST}
        super().__init__(
            World(
                name=name,
                goal=GOAL,
                seed=self.pool["chain"],
                call=lambda text, names: Call({PROGRAM: text}, "program", "team"),
                judge=lambda value, names: invalid("teams are executed, not run"),
                instances={split: names(split, each, settings.seed) for split, each in splits.items()},  # type: ignore[misc]
            )
        )
        self.known = {q for found in self.world.instances.values() for q in found}

    def kind(self, name: str) -> str:
        """Of an instance."""
        return name.rpartition("-")[0]

    def evaluate(self, programs: Sequence[str], names: Sequence[Sequence[str]] | None = None) -> list[Evaluation]:
        """Verdicts, in the order of the teams. What is no team is not valid; where a node failed for no fault of the
        team's, the verdict is `lost`."""
        asked = [tuple(self.instances("train")) for _ in programs] if names is None else [tuple(n) for n in names]
        verdicts: list[Evaluation | None] = []
        jobs, places = [], []
        for i, text in enumerate(programs):
            try:
                team = read(text)
            except TeamError as reason:
                verdicts.append(invalid(str(reason), "unreadable"))
                continue
            verdicts.append(None)
            for name in asked[i]:
                jobs.append((team, named(name, self.settings.seed)))
                places.append(i)
        traces = execute(jobs, self.worker)
        self.traces = {(programs[i], t.question.name): t for i, t in zip(places, traces, strict=True)}
        for i, text in enumerate(programs):
            if verdicts[i] is None:
                verdicts[i] = self.verdict(read(text), [self.traces[text, name] for name in asked[i]])
        return [v for v in verdicts if v is not None]

    def verdict(self, team: Team, traces: Sequence[Trace]) -> Evaluation:
        """On the traces of one team."""
        if lost := [t.lost for t in traces if t.lost]:
            return invalid(f"a node could not be carried out: {lost[0]}", "lost")
        if not traces:
            return invalid("there is no question")
        values = {t.question.name: float(t.right) - self.settings.beta * t.cost for t in traces}
        metrics = {
            "right": sum(t.right for t in traces) / len(traces),
            "cost": sum(t.cost for t in traces) / len(traces),
        }
        found = over_instances(values, metrics)
        seen = self.instances("train")  # of others nobody is told
        told = [self.explain(team, t) for t in traces if not t.right and t.question.name in seen]
        return Evaluation(found.value, found.metrics, "\n".join(told))


def world(settings: str = "") -> Workflow:
    """The task. `UserError` for settings that there are not."""
    return Workflow(
        read_settings(Settings, settings, "workflow"), "program:workflow" + (f":{settings}" if settings else "")
    )


__all__ = ["KINDS", "Settings", "Workflow", "world"]
