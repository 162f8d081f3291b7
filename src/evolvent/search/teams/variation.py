"""Variation of teams without a model: edits chosen by what a trajectory shows, or blindly; crossing of two parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import begin_groups, written
from evolvent.search.teams.crossing import crossed
from evolvent.search.teams.edits import COMPONENTS, Edit, applied, cheaper, drawn, possible
from evolvent.search.teams.evolve import CROSS, TASK
from evolvent.search.teams.experience import Experience, experience_of
from evolvent.search.teams.judge import QUESTIONS, teams_of
from evolvent.tasks.worlds.workflow.diagnose import Fault, alike, faults_in
from evolvent.tasks.worlds.workflow.library import SCRIPTED
from evolvent.tasks.worlds.workflow.team import Team, TeamError, read

USUAL = {"prompt": 0.7, "topology": 0.2, "backbone": 0.05, "tools": 0.05}
BY_REASON = {  # what stood in a node's way -> shares of components
    "tool": {"tools": 0.8, "prompt": 0.2},
    "calls": {"topology": 0.5, "backbone": 0.5},
    "cut": {"prompt": 0.3, "topology": 0.4, "backbone": 0.3},
    "unheeded": {"prompt": 0.3, "topology": 0.35, "backbone": 0.35},
    "withheld": {"prompt": 0.6, "topology": 0.4},
}
CHEAPER = {"backbone": 0.4, "topology": 0.3, "prompt": 0.2, "tools": 0.1}  # where nothing is wrong
MOVE = 0.3  # how often a sentence that is there is moved, for once that it is added
LONG = ("cut", "unheeded")


@dataclass
class EditTeams:
    """Roll out: without a model one component of one node is changed, or two parents are crossed.

    With `traced` the node and the component come from a fault in the parent's trajectories at the task's questions, and
    of sentences those that share words with the fault are likely; where no answer is wrong, the edit makes the team
    cheaper. Memory may name the edit. Without it node, component and edit are drawn evenly, and crossing knows of no
    faults.

    explore    how often a child is made as without traces
    sharpness  of p ~ exp(sharpness * share of a sentence's words that the fault has, too)
    tries      until a team is new and sound

    Metrics: `recalled`, the share of edits that memory named; `dropped`, of tries that made no sound team;
    `component/NAME`, edits of each component.
    """

    traced: bool = True
    explore: float = 0.1
    sharpness: float = 6.0
    tries: int = 10

    def setup(self, role: Role) -> None:
        """A task of teams, and settings in range."""
        teams_of(role)
        if self.tries < 1 or not 0 <= self.explore <= 1 or self.sharpness < 0:
            raise UserError("rollout.mutate: tries is at least 1, explore from 0 to 1, sharpness at least 0")

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; what it resumes, or the seed, as it is."""
        archive = archive_of(s.role)
        groups, unwritten = begin_groups(requests, s)
        seen = {c.text for c in archive.history}
        made_of: list[Trajectory] = []
        tried = dropped = 0
        for place, request, group in unwritten:
            parents = archive.named(request)
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                rng, text, operator = s.rng("vary", place, i), parents[0].text, "none"
                notes: dict[str, Any] = {}
                for _ in range(self.tries):
                    tried += 1
                    try:
                        team, operator, notes = self._vary(parents, request, experience_of(s.role), rng)
                    except TeamError:
                        dropped += 1
                        continue
                    text = team.text()
                    if text not in seen:
                        break
                seen.add(text)
                child = written(uid, request, text, operator)
                child.info["notes"] = {TASK: request.problem.data.get(TASK), **notes}
                group.trajectories.append(child)
                made_of.append(child)
        if made_of:
            notes_of = [t.info["notes"] for t in made_of]
            s.log("dropped", dropped / tried)
            edits = [n for n in notes_of if n.get("edit")]
            s.log("recalled", float(np.mean([n["recalled"] for n in edits])) if edits else 0.0)
            for component in COMPONENTS:
                s.log(f"component/{component}", sum(n["edit"][0] == component for n in edits))
        return groups

    def _vary(
        self, parents: Sequence[Candidate], request: Request, memory: Experience | None, rng: np.random.Generator
    ) -> tuple[Team, str, dict[str, object]]:
        """A child, its operator, and what is to be known of it. `TeamError` for one that is not sound."""
        names = request.problem.data.get(QUESTIONS)
        blame = [at_fault(p, names) if self.traced else [] for p in parents]
        team = read(parents[0].text)
        if len(parents) > 1 and request.problem.data.get(CROSS, True):
            sets = [{f.node for f in faults} for faults in blame]
            return crossed(team, read(parents[1].text), rng, *sets), "cross", {}
        traced = self.traced and rng.random() >= self.explore
        fault = blame[0][int(rng.integers(len(blame[0])))] if traced and blame[0] else None
        edit, recalled = self.choose(team, fault, traced, memory, rng)
        if edit is None:
            raise TeamError("there is nothing to edit")
        label = fault.label if fault else ("none" if traced else "unknown")
        return applied(team, edit, rng), edit.text, {"edit": edit.as_list(), "fault": label, "recalled": recalled}

    def choose(
        self, team: Team, fault: Fault | None, traced: bool, memory: Experience | None, rng: np.random.Generator
    ) -> tuple[Edit | None, bool]:
        """An edit, and whether memory named it. With `traced` and no fault one that makes the team cheaper."""
        if fault is not None and fault.node in team.names:
            kind = memory.advice(fault.label, rng) if memory else None
            if kind is not None:
                same = [e for c in COMPONENTS for e in possible(team, fault.node, c) if e.kind == kind]
                if same:
                    return same[int(rng.integers(len(same)))], True
            return mend(team, fault, self.sharpness, rng), False
        node = team.names[int(rng.integers(len(team.names)))]
        shares = CHEAPER if traced else dict.fromkeys(COMPONENTS, 1.0)
        component = drawn(list(shares), list(shares.values()), rng)
        edits = [e for e in possible(team, node, component) if not traced or cheaper(team, e)]
        return (edits[int(rng.integers(len(edits)))] if edits else None), False


def at_fault(candidate: Candidate, names: Sequence[str] | None) -> list[Fault]:
    """For each question that was answered wrong the first node's fault, so that frequent ones stand there often."""
    found = faults_in(candidate.evaluation.feedback)
    return [faults[-1] for name, faults in found.items() if faults and (names is None or name in names)]


def shares_of(fault: Fault) -> dict[str, float]:
    """How likely each component is, by what stood in the node's way."""
    causes = [r for r in (*fault.reasons, fault.how) if r in BY_REASON]
    tables = [BY_REASON[c] for c in causes] or [USUAL]
    return {c: sum(t.get(c, 0.0) for t in tables) / len(tables) for c in COMPONENTS}


def mend(team: Team, fault: Fault, sharpness: float, rng: np.random.Generator) -> Edit | None:
    """An edit against a fault: of a component by its shares, and within it by shared words."""
    shares = shares_of(fault)
    component = drawn(list(shares), list(shares.values()), rng)
    edits = narrowed(team, fault, component)
    found: Edit | None = drawn(edits, weighed(edits, fault, sharpness), rng) if edits else None
    return found


def narrowed(team: Team, fault: Fault, component: str) -> list[Edit]:
    """The edits of a component that go in the right direction: a stronger backbone, one more tool, less to read where
    that was too much, other things handed over where something was withheld; any of them where there are none."""
    edits, found = possible(team, fault.node, component), list[Edit]()
    long = any(r in LONG for r in fault.reasons)
    if component == "backbone":
        own = SCRIPTED[team[fault.node].backbone].price
        found = [e for e in edits if SCRIPTED[e.what].price > own]
    elif component == "tools":
        found = [e for e in edits if e.op == "give"]
    elif component == "prompt" and fault.how != "withheld":
        found = [e for e in edits if (e.op == "drop") == long and e.op != "output"]
    elif component == "prompt":
        found = [e for e in edits if e.op == "output"]
    return found or edits


def weighed(edits: Sequence[Edit], fault: Fault, sharpness: float) -> list[float]:
    """How likely each edit is, by the words that its sentence shares with the fault."""
    weights = [float(np.exp(sharpness * alike(fault.text, e.what))) if e.op != "drop" else 1.0 for e in edits]
    return [w * MOVE if e.op == "move" else w for w, e in zip(weights, edits, strict=True)]
