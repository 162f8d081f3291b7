"""Nodes carried out by a model: each turn of a node is one episode with the tools that the node has."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evolvent.core.records import Message, Problem, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.core.untrusted import read_json
from evolvent.search.asking import answers
from evolvent.tasks.base import Reply, Tools, key_of
from evolvent.tasks.worlds.workflow.execute import Trace
from evolvent.tasks.worlds.workflow.questions import Question
from evolvent.tasks.worlds.workflow.scripted import Done, Work
from evolvent.tasks.worlds.workflow.team import BACKBONES, Team
from evolvent.tasks.worlds.workflow.tools import SCHEMAS, use
from evolvent.tasks.worlds.workflow.units import ToolError

USE = re.compile(r"^use (\w+) (\{.*\})\s*$", re.MULTILINE)
TRACE = "  trace "
EXCERPT = 600  # characters of a text that a trace shows


@dataclass
class Turn:
    """Stands for the task where a model is a node: its tools answer, whatever else it says is what it hands over."""

    name: str
    categories: tuple[str, ...]
    questions: dict[str, Question] = field(default_factory=dict)
    max_tokens: int = 2048
    max_turns: int = 8

    def tools(self, problem: Problem) -> Tools | None:
        """Those of the node."""
        names = problem.data["tools"]
        if not names:
            return None
        rows = [f"use {n} {json.dumps(dict.fromkeys(SCHEMAS[n][1], '...'))}  {SCHEMAS[n][0]}" for n in names]
        text = "To use a tool, write one line of this form and nothing else:\n" + "\n".join(rows)
        return Tools(tuple(schema(name) for name in names), text)

    def episode(self, problem: Problem) -> Tooling:
        """A turn of a node."""
        return Tooling(self.questions[problem.data["question"]], problem.data["tools"])


def schema(name: str) -> dict[str, Any]:
    """A tool as a JSON schema."""
    text, arguments = SCHEMAS[name]
    properties = {a: {"type": "string"} for a in arguments}
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": parameters}}


class Tooling:
    """Answers a node's calls of tools, and writes them down as the note `used`."""

    def __init__(self, question: Question, tools: Sequence[str]) -> None:
        self.question, self.tools = question, tools
        self.used: list[tuple[str, dict[str, Any], str]] = []

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """A call in the model's own form."""
        try:
            found = use(name, arguments, self.question) if name in self.tools else f"error: there is no tool {name}"
        except ToolError as reason:
            found = f"error: {reason}"
        self.used.append((name, dict(arguments), found))
        return Reply(found, note={"used": list(self.used)})

    def respond(self, turn: str) -> Reply:
        """A call in words, or the end."""
        match = USE.search(turn)
        if match is None:
            return Reply("", done=True, calls=0)
        try:
            arguments = read_json(match[2])
        except ValueError:
            return Reply("error: the arguments are no JSON object")
        return self.call(match[1], arguments)


class ModelWorker:
    """Carries nodes out by models. `roles` has the role of each backbone, `s` is the step that is charged; `label`
    tells its askings from others. A request that fails is nobody's fault, and its trajectory is lost."""

    def __init__(self, roles: Mapping[str, Role], s: Step, label: str) -> None:
        self.roles, self.s, self.label, self.count = roles, s, label, 0

    def __call__(self, jobs: Sequence[Work]) -> list[Done | str]:
        """One batch of turns."""
        self.count += 1
        found: list[Done | str] = ["it has no backbone"] * len(jobs)
        for backbone in BACKBONES:
            mine = [i for i, job in enumerate(jobs) if job.node.backbone == backbone]
            if not mine:
                continue
            role = self.roles[backbone]
            task = Turn(role.task.name, role.task.categories, {jobs[i].question.name: jobs[i].question for i in mine})
            asked = dataclasses.replace(role, task=task)  # type: ignore[arg-type]
            requests = [Request(problem_of(jobs[i]), 1) for i in mine]
            made = answers(requests, self.s, f"{self.label}-{self.count}-{backbone}", role=asked)
            for i, t in zip(mine, made, strict=True):
                found[i] = t.error or Done(t.completion.strip(), list(t.info.get("used", [])))
        return found


def problem_of(job: Work) -> Problem:
    """What a node is asked."""
    prompt = (Message("system", job.node.prompt), Message("user", job.text or "(nothing was handed over)"))
    data = {"tools": job.node.tools, "question": job.question.name}
    return Problem(key_of("workflow-node", [job.node.prompt, job.text]), prompt, data, job.node.name, "workflow")


def rendered(team: Team, trace: Trace) -> str:
    """A wrong answer and its trajectory as feedback, which `traces_in` reads."""
    q = trace.question
    rows = [
        {
            "node": run.name,
            "input": run.text[:EXCERPT],
            "prompt": run.prompt,
            "calls": [[tool, args, found[:EXCERPT]] for tool, args, found in run.done.calls],
            "output": run.done.text[:EXCERPT],
        }
        for run in trace.runs
    ]
    head = f"{q.name}: {q.text} Wanted {q.answer}, got {trace.answer or 'nothing'}."
    return head + "\n" + TRACE + json.dumps(rows)


def traces_in(feedback: str, names: Sequence[str] | None = None) -> list[tuple[str, list[dict[str, Any]]]]:
    """Of each question that was answered wrong what is said of it, and its trajectory node by node, the latest."""
    found: dict[str, tuple[str, list[dict[str, Any]]]] = {}
    head = ""
    for line in feedback.splitlines():
        if not line.startswith(TRACE) or not head:
            head = line
            continue
        with contextlib.suppress(ValueError):  # a wrong answer of several lines may look like a trace
            found[head.partition(":")[0]] = head, read_json(line.removeprefix(TRACE))
    return [pair for name, pair in found.items() if names is None or name in names]
