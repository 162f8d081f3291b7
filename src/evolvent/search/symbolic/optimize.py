"""Losses, gradients and the three optimizers without a model: a scripted critic reads the trajectories, rules edit.

arXiv 2406.18532. The critic goes from the last node to the first and hands on what is required of the nodes before
(`tasks/worlds/workflow/diagnose.py`); a gradient is what it says of a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evolvent.core.errors import UserError, unknown
from evolvent.core.random import identifiers
from evolvent.core.records import Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import begin_groups, written
from evolvent.search.symbolic.train import ALL, LEARN_FROM, OPTIMIZERS, scripted_call
from evolvent.search.teams.edits import Edit, applied, drawn, possible
from evolvent.search.teams.judge import teams_of
from evolvent.search.teams.variation import narrowed, weighed
from evolvent.tasks.worlds.workflow.diagnose import Fault, faults_in
from evolvent.tasks.worlds.workflow.team import Team, TeamError, read

SCOPES = ("all", "last")
EDGES = ("hand to", "no longer to")
CALLS = ("tool", "calls", "cut", "unheeded")  # what an edit of a node as a whole can mend, and a sentence cannot


@dataclass
class Optimize:
    """Roll out: without a model the parent, a solution, is changed by gradients from its wrong answers of a batch.

        prompt    of each node with a gradient one sentence is added, dropped or moved
        node      of each node with a gradient that something stood in the way of: it is rewritten (another backbone,
                  one more tool), split, doubled, followed by a new one, or deleted
        pipeline  edges are drawn or deleted, where something was withheld or too much was handed over

    Where a node has several gradients the edit is made against one of them, frequent ones being likely. An edit that
    makes no sound team is made anew up to `attempts` times, then dropped. Tools have no optimizer of their own, as in
    the published code. `nodes=last` edits the prompt of the last node alone, by what is wrong with its output: prompt
    optimisation without back-propagation.

    Metrics: `gradients` (nodes that had one), `edited`, `dropped`.
    """

    nodes: str = "all"
    attempts: int = 3
    sharpness: float = 12.0

    def setup(self, role: Role) -> None:
        """A task of teams, and settings in range."""
        teams_of(role)
        if self.nodes not in SCOPES:
            raise unknown("scope", self.nodes, SCOPES, "rollout.mutate.nodes is all or last")
        if self.attempts < 1 or self.sharpness < 0:
            raise UserError("rollout.mutate: attempts is at least 1, sharpness at least 0")

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; what it resumes, or the seed, as it is."""
        archive = archive_of(s.role)
        groups, unwritten = begin_groups(requests, s)
        for place, request, group in unwritten:
            [parent] = archive.named(request)
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                team, told = self.step(parent, request, s, s.rng("optimize", place, i))
                child = written(uid, request, team.text(), "+".join(request.problem.data.get(OPTIMIZERS, ("prompt",))))
                child.info["notes"] = {"edits": told}
                group.trajectories.append(child)
        return groups

    def step(self, parent: Candidate, request: Request, s: Step, rng: np.random.Generator) -> tuple[Team, list[str]]:
        """The solution after one step, and its edits in words."""
        data, team, told, dropped = request.problem.data, read(parent.text), list[str](), 0
        gradients = self.gradients(parent, data.get(LEARN_FROM), team, s.role)
        levels = ("prompt",) if self.nodes == "last" else data.get(OPTIMIZERS, ("prompt",))
        for level in levels:
            if told and not data.get(ALL):
                break
            scripted_call(s.role, len(gradients) if level != "pipeline" else 1)
            for node, faults in gradients.items():
                fault = faults[int(rng.integers(len(faults)))]
                edits = offered(team, fault, level) if node in team.names else []
                for attempt in range(self.attempts if edits else 0):
                    edit = drawn(edits, weighed(edits, fault, self.sharpness), rng)
                    try:
                        team = applied(team, edit, rng)
                    except TeamError:
                        dropped += attempt == self.attempts - 1
                        continue
                    told.append(edit.text)
                    break
        s.log("gradients", len(gradients))
        s.log("edited", len(told))
        s.log("dropped", dropped)
        return team, told

    def gradients(
        self, parent: Candidate, names: Sequence[str] | None, team: Team, role: Role
    ) -> Mapping[str, list[Fault]]:
        """The faults of each node over a batch, the last nodes first. Every wrong answer is a loss, every node that it
        goes back to a gradient."""
        found: dict[str, list[Fault]] = {}
        read_in = faults_in(parent.evaluation.feedback)
        batch = {name: faults for name, faults in read_in.items() if names is None or name in names}
        scripted_call(role, len(batch) * (1 + (len(team.nodes) if self.nodes == "all" else 1)))
        for faults in batch.values():
            if self.nodes == "last":
                mine = [f for f in faults if f.node == team.last] or [output_alone(team.last, faults)]
            else:
                mine = list(faults)
            for fault in mine:
                found.setdefault(fault.node, []).append(fault)
        order = Counter({node: len(faults) for node, faults in found.items()})
        return {node: found[node] for node, _ in order.most_common()}


def output_alone(last: str, faults: Sequence[Fault]) -> Fault:
    """What can be said of the last node when nothing is known but that its answer is wrong."""
    return Fault(last, "answer", "wrong", (), "The answer is wrong.")


def offered(team: Team, fault: Fault, level: str) -> list[Edit]:
    """The edits of an optimizer against a fault; none where it has nothing to do with it."""
    node = fault.node
    if level == "prompt":
        return narrowed(team, fault, "prompt")
    if level == "pipeline":
        edges = [e for e in possible(team, node, "topology") if e.op in EDGES]
        return edges if fault.how == "withheld" or "cut" in fault.reasons else []
    if fault.how != "withheld" and any(r in CALLS for r in fault.reasons):
        own = narrowed(team, fault, "tools") if "tool" in fault.reasons else []
        if not own:
            own = narrowed(team, fault, "backbone")
            own += [e for e in possible(team, node, "topology") if e.op not in EDGES]
        return own
    return []


__all__ = ["Optimize"]
