"""Self-modification by a model: it diagnoses a failure of an agent, writes an issue, and implements it as a diff.

The steps of DGM (arXiv 2505.22954): the logs of what was chosen for diagnosis -> an issue for the agent's own code ->
the change. The agent takes part by its text `GUIDE`, which it may change as well.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evolvent.core.ranges import Count
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.rollout.sample import Sample
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.loop import begin_groups, programs_of
from evolvent.search.selfmodify import Diagnosis, Editor, itself, refuse_fixed, weaknesses
from evolvent.search.write import Job

SAMPLED = {"patch": str, "source": str, "name": str, "examples": list}  # what a log must have to be shown


@dataclass
class Diagnose:
    """Roll out: a model says what is wrong with the parent, then changes it accordingly.

    `diagnose` and `editor` as in `SelfModify`; the editor's part is the guide that the model is given. A change that
    cannot be used is asked for again, up to `attempts` times in all. Metrics: `asked` and `unusable` (answers of the
    second kind), `entry/NAME`, how many children have come of each kind of diagnosis.

    prompts  folder with prompts of your own, `diagnosis.md` and `implement.md`
    """

    diagnose: Diagnosis = weaknesses
    editor: Editor = itself
    attempts: Count = 3
    prompts: str = ""
    inner: Any = Sample

    def setup(self, role: Role) -> None:
        """A world whose programs can change themselves, prompts that can be read."""
        refuse_fixed(role)
        Prompts(self.prompts).check(["diagnosis", "implement"])

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; those without a parent are the seed program, resumed ones stay as they are."""
        archive, issues = archive_of(s.role), []
        groups, unwritten = begin_groups(requests, s)
        for place, request, group in unwritten:
            for i in range(request.n):
                parents = archive.named(request)
                entry, names = self.diagnose(parents[0].evaluation, s.rng("diagnose", place, i))
                guide = guide_of(self.editor(parents[0], archive))
                issues.append(Issue(Job(group, request, parents, "diff", "", ""), entry, names, guide))
        self._log(issues, s)
        texts = [self._render("diagnosis", issue, entry=issue.entry, logs=issue.logs) for issue in issues]
        for issue, t in zip(issues, self._ask(issues, texts, "diagnose", s), strict=True):
            issue.text, issue.job.answer = t.completion.strip(), t
        asked = unusable = 0
        rest = [issue for issue in issues if issue.job.answer and issue.job.answer.error is None]
        for attempt in range(self.attempts):
            texts = [self._render("implement", i, issue=i.text, error=i.job.error) for i in rest]
            for issue, t in zip(rest, self._ask(rest, texts, f"implement-{attempt}", s), strict=True):
                asked += 1
                issue.job.take(t)
                unusable += bool(issue.job.error)
            rest = [issue for issue in rest if issue.job.error]
        for issue in issues:
            made = issue.job.finished()
            made.info |= {"operator": f"model: {issue.entry}", "entry": issue.entry}
            issue.job.group.trajectories.append(made)
        s.log("asked", asked)
        s.log("unusable", unusable / max(1, asked))
        for entry in {issue.entry for issue in issues}:
            s.log(f"entry/{entry}", sum(issue.entry == entry for issue in issues))
        return groups

    def _log(self, issues: Sequence[Issue], s: Step) -> None:
        """What the parents make of the instances that are diagnosed."""
        task = programs_of(s.role)
        if not issues or task.world.logs is None:
            return
        calls = [task.world.logs(issue.job.parents[0].text, issue.names) for issue in issues]
        for issue, outcome in zip(issues, task.sandbox.run(calls, task.world.limits), strict=True):
            rows = outcome.value if isinstance(outcome.value, list) else []
            issue.logs = [
                r for r in rows if isinstance(r, dict) and all(isinstance(r.get(k), v) for k, v in SAMPLED.items())
            ]

    def _render(self, name: str, of: Issue, /, **more: Any) -> str:
        parent = of.job.parents[0]
        return Prompts(self.prompts).render(name, parent=parent, value=parent.value, guide=of.guide, **more)

    def _ask(self, issues: Sequence[Issue], texts: Sequence[str], label: str, s: Step) -> list[Trajectory]:
        """One answer for each prompt, in their order."""
        if not issues:
            return []
        return ask(texts, issues[0].job.request.problem, s, f"{label}-{s.round}", self.inner)


@dataclass
class Issue:
    """One child to be made: what is diagnosed, on which instances, what the model made of it."""

    job: Job
    entry: str
    names: Sequence[str]
    guide: str
    logs: Sequence[Mapping[str, Any]] = ()
    text: str = ""


def guide_of(text: str) -> str:
    """The text `GUIDE` of an agent; empty if it has none."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "GUIDE" for t in node.targets):
            return str(node.value.value) if isinstance(node.value, ast.Constant) else ""
    return ""
