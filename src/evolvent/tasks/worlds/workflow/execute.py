"""The one executor of teams: level by level, each node once, with a trajectory of every node and what it cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from evolvent.tasks.worlds.workflow.library import LEVEL_PRICE, SCRIPTED, TOOL_PRICE
from evolvent.tasks.worlds.workflow.questions import Question
from evolvent.tasks.worlds.workflow.scripted import Done, Work, work
from evolvent.tasks.worlds.workflow.team import Team

Worker = Callable[[Sequence[Work]], Sequence[Done | str]]  # a text: why it failed, which is nobody's fault
ANSWER = re.compile(r"answer:\s*`?(-?\d+(?:\.\d+)?)(?![\d.]*\d)", re.IGNORECASE)


@dataclass
class NodeRun:
    """A node's part of a trajectory: its input, its prompt, the tools that it called, its output."""

    name: str
    text: str
    prompt: str
    done: Done


@dataclass
class Trace:
    """One question answered by one team: the nodes in the order in which they ran, the answer, whether it is right,
    and the cost. `lost` says why a node failed, where that is not the team's fault."""

    question: Question
    runs: list[NodeRun]
    answer: str = ""
    right: bool = False
    cost: float = 0.0
    lost: str = ""

    def of(self, name: str) -> NodeRun:
        """A node's part."""
        return next(run for run in self.runs if run.name == name)


def scripted(jobs: Sequence[Work]) -> list[Done]:
    """The scripted worker."""
    return [work(job) for job in jobs]


def execute(jobs: Sequence[tuple[Team, Question]], worker: Worker = scripted) -> list[Trace]:
    """Traces of teams at questions, in their order. Nodes of one level, of all jobs, are one batch of the worker.

    A node reads the question, if it is one of `first`, then what the nodes before it hand over, in the order of the
    edges.
    """
    traces = [Trace(question, []) for _, question in jobs]
    outputs: list[dict[str, str]] = [{} for _ in jobs]
    plans = [team.levels() for team, _ in jobs]
    for level in range(max(map(len, plans), default=0)):
        places, batch = list[int](), list[Work]()
        for i, (team, question) in enumerate(jobs):
            if level >= len(plans[i]) or traces[i].lost:
                continue
            for name in plans[i][level]:
                parts = [f"question: {question.text}"] if name in team.first else []
                parts += [outputs[i][before] for before in team.before(name) if outputs[i][before]]
                places.append(i)
                batch.append(Work(team[name], question, "\n".join(parts)))
        for i, job, done in zip(places, batch, worker(batch), strict=True):
            if isinstance(done, str):
                traces[i].lost = done
                continue
            outputs[i][job.node.name] = done.text
            traces[i].runs.append(NodeRun(job.node.name, job.text, job.node.prompt, done))
    for trace, (team, question), plan in zip(traces, jobs, plans, strict=True):
        if not trace.lost:
            trace.answer = answer_in(trace.of(team.last).done.text)
            trace.right = same(trace.answer, question.answer)
            trace.cost = cost(team, trace, len(plan))
    return traces


def cost(team: Team, trace: Trace, levels: int) -> float:
    """Prices of all nodes' backbones, of their calls of tools, and of the levels that have to wait for each other."""
    calls = sum(len(run.done.calls) for run in trace.runs)
    return sum(SCRIPTED[n.backbone].price for n in team.nodes) + TOOL_PRICE * calls + LEVEL_PRICE * levels


def answer_in(text: str) -> str:
    """The number in the last line `answer: ...`; empty if there is none."""
    found = ANSWER.findall(text)
    return found[-1] if found else ""


def same(given: str, wanted: str) -> bool:
    """Whether two numbers are equal, exactly."""
    try:
        return Decimal(given) == Decimal(wanted)
    except InvalidOperation:
        return False
