"""Variation of teams by a model: it is shown the team, its trajectories and what memory holds, and writes the next."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, answers, prompted
from evolvent.search.candidate import Candidate
from evolvent.search.loop import begin_groups
from evolvent.search.teams.edits import difference
from evolvent.search.teams.evolve import CROSS, TASK
from evolvent.search.teams.experience import experience_of
from evolvent.search.teams.judge import QUESTIONS, teams_of
from evolvent.search.teams.worker import traces_in
from evolvent.tasks.worlds.workflow.team import Team, TeamError, read

BLOCK = re.compile(r"```(?:json)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = 3  # trajectories that a prompt shows


@dataclass
class WriteTeams:
    """Roll out: a model changes one component of the parent, or crosses two.

    An answer that is no sound team, or of a mutation that changes more or less than one component, is asked for again
    with what is wrong, `attempts` times in all; the last one counts as a candidate that is not valid. Without `traced`
    it sees neither trajectories nor memory. Metric: `unusable`, share of the answers.
    """

    attempts: int = 3
    traced: bool = True
    prompts: str = ""

    def setup(self, role: Role) -> None:
        """A task of teams, prompts that can be read."""
        teams_of(role)
        if self.attempts < 1:
            raise UserError("rollout.write.attempts must be at least 1")
        Prompts(self.prompts).check(["teams/mutate", "teams/cross"])

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; what it resumes, or the seed, as it is."""
        archive, jobs = archive_of(s.role), list[_Job]()
        groups, unwritten = begin_groups(requests, s)
        for _, request, group in unwritten:
            jobs += [_Job(group, request, archive.named(request)) for _ in range(request.n)]
        asked = wrong = 0
        for attempt in range(self.attempts):
            todo = [job for job in jobs if job.answer is None or job.error]
            asks = [prompted(job.request.problem, self._prompt(job, s), job.request) for job in todo]
            found = answers(asks, s, f"write-{s.round}-{attempt}") if asks else []
            for job, t in zip(todo, found, strict=True):
                job.take(t)
                asked, wrong = asked + 1, wrong + bool(job.error)
        s.log("unusable", wrong / max(1, asked))
        for job in jobs:
            job.group.trajectories.append(job.finished())
        return groups

    def _prompt(self, job: _Job, s: Step) -> str:
        memory, names = experience_of(s.role), job.request.problem.data.get(QUESTIONS, ())
        kind = teams_of(s.role).kind(names[0]) if names else ""
        return Prompts(self.prompts).render(
            "teams/cross" if job.cross else "teams/mutate",
            parents=job.parents,
            traces=[shown(p, names) if self.traced else "" for p in job.parents],
            lessons=memory.told(kind) if memory and self.traced else [],
            error=job.error,
        )


def shown(candidate: Candidate, names: Sequence[str]) -> str:
    """Trajectories of wrong answers, as a prompt shows them."""
    rows = traces_in(candidate.evaluation.feedback, names or None)[:SHOWN]
    return "\n\n".join("\n".join([head, *(text_of(node) for node in nodes)]) for head, nodes in rows)


def text_of(node: dict[str, object]) -> str:
    """A node's part of a trajectory, as a prompt shows it."""
    return "\n".join(f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in node.items())


@dataclass
class _Job:
    group: Group
    request: Request
    parents: Sequence[Candidate]
    answer: Trajectory | None = None
    text: str = ""
    error: str = ""

    @property
    def cross(self) -> bool:
        return len(self.parents) > 1 and bool(self.request.problem.data.get(CROSS))

    def take(self, t: Trajectory) -> None:
        self.answer, self.error, self.text = t, "", ""
        if t.error is not None:
            return
        try:
            team = team_in(t.completion)
            changed = difference(read(self.parents[0].text), team)
            if not changed:
                raise TeamError("the answer changes nothing")
            if not self.cross and len(changed) > 1:
                raise TeamError(f"change one component; the answer changes {' and '.join(changed)}")
            self.text = team.text()
        except TeamError as reason:
            self.error = str(reason)

    def finished(self) -> Trajectory:
        assert self.answer is not None
        notes = {TASK: self.request.problem.data.get(TASK)}
        self.answer.info |= {"program": self.text, "operator": "cross" if self.cross else "mutate", "notes": notes}
        if not self.text:
            self.answer.info["unusable"] = self.error
        return self.answer


def team_in(answer: str) -> Team:
    """The team in the last block of JSON of an answer. `TeamError` if there is none."""
    blocks = BLOCK.findall(answer)
    if not blocks:
        raise TeamError("there is no block of JSON between ```json and ```")
    return read(blocks[-1])
