"""Losses, gradients and the three optimizers by a model: everything is asked for in words (arXiv 2406.18532)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evolvent.core.errors import UserError, unknown
from evolvent.core.random import identifiers
from evolvent.core.records import Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.core.written import read_written
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.candidate import Candidate
from evolvent.search.loop import begin_groups, written
from evolvent.search.symbolic.optimize import SCOPES
from evolvent.search.symbolic.train import ALL, LEARN_FROM, LEVELS, OPTIMIZERS
from evolvent.search.teams.judge import teams_of
from evolvent.search.teams.worker import traces_in
from evolvent.search.teams.write import BLOCK
from evolvent.tasks.worlds.workflow.team import Team, TeamError, check, node_of, read

NOTHING = "none"
Trajectory = tuple[str, list[dict[str, Any]]]  # what is said of a question, and the nodes' parts


@dataclass
class WriteGradients:
    """Roll out: a model says what is wrong with an answer (loss), then node by node from the last to the first what is
    to change there (gradient) and what it needs of the nodes before; then the optimizers ask it for edits.

    truth, scored  whether the loss is told the right answer, and that the score was 0. The paper asks the model for a
                   score where the data has none; here every task has one
    losses         wrong answers of a batch that are looked at
    attempts       until an edit makes a sound team; then it is dropped
    nodes          `last`: the loss alone edits the prompt of the last node, without back-propagation

    Metrics: `gradients`, `edited`, `dropped`.
    """

    truth: bool = True
    scored: bool = True
    losses: int = 4
    attempts: int = 3
    nodes: str = "all"
    prompts: str = ""

    def setup(self, role: Role) -> None:
        """A task of teams, settings in range, prompts that can be read."""
        teams_of(role)
        if self.nodes not in SCOPES:
            raise unknown("scope", self.nodes, SCOPES, "rollout.write.nodes is all or last")
        if self.losses < 1 or self.attempts < 1:
            raise UserError("rollout.write.losses and .attempts must be at least 1")
        Prompts(self.prompts).check([f"symbolic/{name}" for name in ("loss", "backward", *LEVELS)])

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; what it resumes, or the seed, as it is."""
        archive = archive_of(s.role)
        groups, unwritten = begin_groups(requests, s)
        for place, request, group in unwritten:
            [parent] = archive.named(request)
            uid = identifiers(1, s.role.seed, *s.path, s.round, place)[0]
            team, told = self.step(parent, request, s)
            child = written(uid, request, team.text(), "+".join(request.problem.data.get(OPTIMIZERS, ("prompt",))))
            child.info["notes"] = {"edits": told}
            group.trajectories.append(child)
        return groups

    def step(self, parent: Candidate, request: Request, s: Step) -> tuple[Team, list[str]]:
        """The solution after one step, and its edits in words."""
        data, team = request.problem.data, read(parent.text)
        batch = traces_in(parent.evaluation.feedback, data.get(LEARN_FROM))[: self.losses]
        gradients = self.backward(team, batch, self.loss(batch, s), s)
        told, dropped = list[str](), 0
        levels = ("prompt",) if self.nodes == "last" else data.get(OPTIMIZERS, ("prompt",))
        for level in levels if gradients else ():
            if told and not data.get(ALL):
                break
            for name in list(gradients) if level != "pipeline" else [team.last]:
                if name not in team.names:
                    continue
                mine = gradients[name] if level != "pipeline" else [g for rows in gradients.values() for g in rows]
                made, lost = self.edit(level, team, name, mine, s, f"{level}-{name}")
                dropped += lost
                if made != team:
                    told.append(f"{level} of {name}" if level != "pipeline" else level)
                    team = made
        s.log("gradients", len(gradients))
        s.log("edited", len(told))
        s.log("dropped", dropped)
        return team, told

    def loss(self, batch: Sequence[Trajectory], s: Step) -> list[str]:
        """What is required of the last node, for each wrong answer."""
        texts = []
        for head, nodes in batch:
            asked, _, verdict = head.partition(" Wanted ")
            truth = verdict.partition(", got ")[0] if self.truth else ""
            texts.append(self._render("loss", task=asked, output=nodes[-1]["output"], truth=truth, scored=self.scored))
        answers = ask(texts, s.role.task.draw("train", s.rng("problem")), s, "loss") if texts else []
        return ["" if t.error else tagged(t.completion, "requirement") for t in answers]

    def backward(self, team: Team, batch: Sequence[Trajectory], losses: Sequence[str], s: Step) -> dict[str, list[str]]:
        """Gradients of each node over a batch, the last nodes first."""
        if self.nodes == "last":
            return {team.last: [text for text in losses if text]} if any(losses) else {}
        found: dict[str, list[str]] = {}
        required = [{team.last: [text]} if text else {} for text in losses]
        for name in reversed(team.names):
            rows = [i for i, mine in enumerate(required) if mine.get(name)]
            parts = [next(p for p in batch[i][1] if p["node"] == name) for i in rows]
            texts = [
                self._render("backward", part=part, requirement="\n".join(required[i][name]))
                for i, part in zip(rows, parts, strict=True)
            ]
            answers = ask(texts, s.role.task.draw("train", s.rng("problem")), s, f"back-{name}") if texts else []
            for i, t in zip(rows, answers, strict=True):
                if t.error:
                    continue
                if gradient := tagged(t.completion, "gradient"):
                    found.setdefault(name, []).append(gradient)
                if requirement := tagged(t.completion, "requirement"):
                    for before in team.before(name):
                        required[i].setdefault(before, []).append(requirement)
        return found

    def edit(
        self, level: str, team: Team, name: str, gradients: Sequence[str], s: Step, label: str
    ) -> tuple[Team, bool]:
        """The team after an optimizer's edit, and whether all attempts were dropped."""
        error = ""
        for attempt in range(self.attempts):
            text = self._render(level, team=team, node=team[name], gradients=gradients, error=error)
            [t] = ask([text], s.role.task.draw("train", s.rng("problem")), s, f"{label}-{attempt}")
            if t.error:
                return team, True
            try:
                return EDITS[level](team, name, block(t.completion)), False
            except TeamError as reason:
                error = str(reason)
        return team, True

    def _render(self, name: str, **values: Any) -> str:
        return Prompts(self.prompts).render(f"symbolic/{name}", **values)


def tagged(text: str, tag: str) -> str:
    """What stands between <tag> and </tag>, the last time; empty where it says that there is nothing."""
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    said = found[-1].strip() if found else ""
    return "" if said.lower().rstrip(".") == NOTHING else said


def block(answer: str) -> Any:
    """The last block of JSON. `TeamError` if there is none."""
    blocks = BLOCK.findall(answer)
    try:
        return read_written(blocks[-1])
    except (IndexError, ValueError):
        raise TeamError("there is no block of JSON between ```json and ```") from None


def prompt_edit(team: Team, name: str, data: Any) -> Team:
    """A node with the prompt that an answer gives; without one for `{}`."""
    if data == {}:
        return team
    node = team[name]
    made = node_of(name, {"backbone": node.backbone, "tools": list(node.tools), "prompt": data})
    return check(team.changed(made))


def node_edit(team: Team, name: str, data: Any) -> Team:
    """Operations on nodes: add one after another, delete or rewrite one. An empty list changes nothing."""
    if not isinstance(data, list):
        raise TeamError("the answer is not a list of operations")
    for op in data:
        if not isinstance(op, Mapping) or not isinstance(op.get("name"), str):
            raise TeamError("an operation lacks its name")
        team = _operation(team, str(op.get("op")), op["name"], op)
    return check(team)


def _operation(team: Team, op: str, name: str, data: Mapping[str, Any]) -> Team:
    if op in ("rewrite", "delete") and name not in team.names:
        raise TeamError(f"there is no node {name}")
    match op:
        case "rewrite":
            return team.changed(node_of(name, data.get("node")))
        case "add":
            after = data.get("after")
            if after not in team.names:
                raise TeamError("`after` of an added node is not there")
            return team.followed(str(after), node_of(name, data.get("node")))
        case "delete":
            return team.without(name)
    raise TeamError(f"no operation {op}; there are add, delete and rewrite")


def pipeline_edit(team: Team, name: str, data: Any) -> Team:
    """Other edges, first nodes and last node; what is left out stays."""
    if not isinstance(data, Mapping):
        raise TeamError("the answer is not an object with edges, first and last")
    whole = json.loads(team.text()) | {k: v for k, v in data.items() if k in ("edges", "first", "last")}
    return read(json.dumps(whole))


EDITS: Mapping[str, Callable[[Team, str, Any], Team]] = {
    "prompt": prompt_edit,
    "node": node_edit,
    "pipeline": pipeline_edit,
}
