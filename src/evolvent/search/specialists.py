"""Specialists: agents that each have a part of the program to change, and share what came of all trials."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evolvent.core.errors import UserError, unknown
from evolvent.core.random import identifiers
from evolvent.core.ranges import Count, Whole
from evolvent.core.records import Group, Message, Request, Trajectory
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import Archive, archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.blackboard import Pattern, Trial, failed_patterns, label_of, pattern_of, signed, trials_of, yields
from evolvent.search.candidate import Candidate
from evolvent.search.further import further
from evolvent.search.loop import given, programs_of, written
from evolvent.search.normal import tree_hash
from evolvent.search.novelty import forms
from evolvent.search.scopes import Scope, radius, scopes, varied, within_scope
from evolvent.search.write import Write
from evolvent.tasks.evaluation import invalid

TEAMS = ("specialists", "generic")
FOLLOW_UP = re.compile(r"^\s*FOLLOW-UP:\s*(.+)$", re.MULTILINE)


@dataclass
class Agent:
    """Who makes a trial. One without a scope may change everything that may change."""

    name: str
    scope: Scope | None = None


@dataclass
class Assignment:
    """A trial to be made: which request of the round, by whom, from which parent."""

    request: Request
    place: int
    parent: Candidate
    agent: Agent
    second: str = ""  # what the first trial's result asks for

    @property
    def scope(self) -> str:
        """The name of the agent's scope; empty without one."""
        return self.agent.scope.name if self.agent.scope else ""


@dataclass
class Specialists:
    """Roll out: each trial is an edit by one agent, which has a scope of its own and reads a blackboard (arXiv
    2605.05724).

    team      specialists: one for each of the program's `scopes`; generic: `agents` without a scope, as many as there
              are scopes if that is 0. One of them is the single generalist
    lineage   whether trials are shared: prompts have the best value, the last `recent` trials with their edits, values
              or failures, and up to `listed` edits that failed in the agent's scope; agents are drawn by their yield,
              (1 + improved) / (2 + trials), and without lineage evenly
    reach     how many lines an edit may take away or put there; 0: any number
    followed  whether a trial may have a second one in the same run, for a concrete follow-up that its result asks for

    An edit outside of the scope, or of more lines than `reach`, is refused before it is evaluated, and is a trial that
    failed. Without a model operators on the syntax tree, kept to the scope, make the edits; with lineage an edit whose
    pattern failed before is not made again, up to `tries` draws. Programs seen before are not made either way.
    A follow-up then moves the one constant that was changed on, back, or half the way (`search.further`).

    Metrics: `failed` (share of the trials), `repeated` (share that fail by a pattern that had failed before), `avoided`
    (draws that were not made for that reason), `refused`, `followed` (second trials), `asked` and others of `write`.

    prompts  folder with `specialist.md` and `follow_up.md` of your own
    """

    write: Any = Write
    team: str = "specialists"
    agents: Whole = 0
    lineage: bool = True
    recent: Whole = 10
    listed: Whole = 20
    reach: Whole = 12
    followed: bool = True
    tries: Count = 20
    prompts: str = ""
    avoided: int = field(default=0, init=False)

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request, of one trial or two, evaluated; without a parent it is the seed program."""
        archive = archive_of(s.role)
        history = trials_of(archive.history)
        known, seen, self.avoided = failed_patterns(history), set(forms(archive)), 0
        jobs = [self._assigned(r, i, archive, history, s) for i, r in enumerate(requests) if r.uses]
        made = {i: Group(r.problem, given(r, i, s)) for i, r in enumerate(requests) if not r.uses}
        first = self._round(jobs, history, known, seen, s, "trial")
        made |= {job.place: group for job, group in zip(jobs, first, strict=True)}
        groups = [made[i] for i in range(len(requests))]
        if jobs:
            s.role.slots["judge"](first, s)
            follow = self._follow_ups(jobs, first, s) if self.followed else []
            second = self._round(follow, history, known, seen, s, "follow-up")
            if follow:
                s.role.slots["judge"](second, s.child(s.role, s.actors, f"second-{s.round}"))
            for job, group in zip(follow, second, strict=True):
                made[job.place].trajectories += group.trajectories
            self._log([*jobs, *follow], [*first, *second], known, s)
            s.log("followed", len(follow))
        return groups

    def _assigned(
        self, request: Request, place: int, archive: Archive, history: Sequence[Trial], s: Step
    ) -> Assignment:
        parent = archive.named(request)[0]
        parts = scopes(parent.text)
        team, count = [Agent(part.name, part) for part in parts], self.agents or len(parts)
        if self.team == "generic":
            team = [Agent(f"agent {i}") for i in range(1, count + 1)]
        chances = np.array(yields(history, [a.name for a in team])) if self.lineage else np.ones(len(team))
        chosen = s.rng("agent", place).choice(len(team), p=chances / chances.sum())
        return Assignment(request, place, parent, team[int(chosen)])

    def _round(
        self,
        jobs: Sequence[Assignment],
        history: Sequence[Trial],
        known: dict[Pattern, str],
        seen: set[str],
        s: Step,
        label: str,
    ) -> list[Group]:
        """The trials of some jobs, not yet evaluated, but for those that are refused."""
        if not jobs:
            return []
        if isinstance(s.role.policy, AbsentPolicy):
            groups = [Group(job.request.problem, [self._rule(job, known, seen, s, label)]) for job in jobs]
        else:
            asks = [self._ask(job, history, known) for job in jobs]
            inner = s if label == "trial" else s.child(s.role, s.actors, f"{label}-{s.round}")
            inner.controls = s.controls
            groups = self.write(asks, inner)
        for job, group in zip(jobs, groups, strict=True):
            for t in group.valid:
                self._sign(t, job, label)
        return groups

    def _sign(self, t: Trajectory, job: Assignment, label: str) -> None:
        """Write down whose trial it is, and refuse it if it may not be made."""
        t.info["notes"] = {**signed(t), "agent": job.agent.name, "scope": job.scope, "trial": label}
        text = t.info["program"]
        if not text or "unusable" in t.info:
            return
        if job.agent.scope and not within_scope(job.parent.text, text, job.agent.scope):
            t.info["evaluation"] = invalid(f"the edit goes beyond {job.scope}, the scope of its agent", "scope")
        elif self.reach and (lines := radius(job.parent.text, text)) > self.reach:
            t.info["evaluation"] = invalid(
                f"the edit changes {lines} lines, at most {self.reach} are in reach", "scope"
            )

    def _rule(self, job: Assignment, known: dict[Pattern, str], seen: set[str], s: Step, label: str) -> Trajectory:
        """An edit by a rule: what the first trial asks for, or one that is drawn."""
        rng, components = s.rng(label, job.place), programs_of(s.role).components
        text, operator = job.second or job.parent.text, "follow-up" if job.second else "none"
        for _ in range(0 if job.second else self.tries):
            found = varied(job.parent.text, job.agent.scope, rng, components)
            if found is None or tree_hash(found[0]) in seen or self._too_far(job, found[0]):
                continue
            text, operator = found
            if not self.lineage or pattern_of(job.scope, job.parent.text, text) not in known:
                break
            self.avoided += 1
        seen.add(tree_hash(text))
        (uid,) = identifiers(1, s.role.seed, *s.path, s.round, label, job.place)
        return written(uid, job.request, text, operator)

    def _too_far(self, job: Assignment, text: str) -> bool:
        return bool(self.reach) and radius(job.parent.text, text) > self.reach

    def _ask(self, job: Assignment, history: Sequence[Trial], known: dict[Pattern, str]) -> Request:
        """What whoever writes is told: who it is, what it may change, and what is on the blackboard."""
        parts = [part.name for part in scopes(job.parent.text)]
        failed = [(p, why) for p, why in known.items() if not job.scope or p.scope == job.scope]
        text = Prompts(self.prompts).render(
            "specialist",
            scope=job.scope,
            others=[name for name in parts if name != job.scope] if job.scope else [],
            agent=job.agent.name,
            reach=self.reach,
            lineage=self.lineage,
            best=job.parent,
            trials=history[-self.recent :] if self.recent else [],
            failed=[("\n".join(sorted(p.lines)), why) for p, why in failed[-self.listed :]] if self.listed else [],
            second=job.second,
        )
        return replace(job.request, memory=(*job.request.memory, Message("system", text)))

    def _follow_ups(self, jobs: Sequence[Assignment], groups: Sequence[Group], s: Step) -> list[Assignment]:
        """Of the first trials those whose result asks for something concrete, with what that is."""
        done = [
            (job, g.valid[0]) for job, g in zip(jobs, groups, strict=True) if g.valid and g.valid[0].info["program"]
        ]
        done = [(job, t) for job, t in done if t.info["evaluation"].status not in ("scope", "unusable")]
        if isinstance(s.role.policy, AbsentPolicy):
            seen = forms(archive_of(s.role)) | {tree_hash(t.info["program"]) for _, t in done}
            found = []
            for job, t in done:
                text = further(job.parent.text, t.info["program"], job.parent.value, t.info["evaluation"].value)
                if text and tree_hash(text) not in seen:
                    found.append(replace(job, second=text))
            return found
        shown = [trial_of(job, t) for job, t in done]
        texts = [Prompts(self.prompts).render("follow_up", trial=trial) for trial in shown]
        problem = s.role.task.draw("train", s.rng("problem"))
        answers = ask(texts, problem, s, f"follow-{s.round}")
        wanted = [FOLLOW_UP.search(t.completion) if t.error is None else None for t in answers]
        said = [m[1].strip() if m else "" for m in wanted]
        return [
            replace(job, second=f"{text}\n\nThe first trial:\n\n{trial.edit}\n\nIts result: {result(trial)}")
            for (job, _), trial, text in zip(done, shown, said, strict=True)
            if text and text.strip(" .").lower() != "none"
        ]

    def _log(self, jobs: Sequence[Assignment], groups: Sequence[Group], known: dict[Pattern, str], s: Step) -> None:
        pairs = [(job, t) for job, g in zip(jobs, groups, strict=True) for t in g.valid]
        trials = [trial_of(job, t) for job, t in pairs]
        count = max(1, len(trials))
        failed = [t for t in trials if t.label]
        s.log("failed", len(failed) / count)
        s.log("repeated", sum(t.pattern in known for t in failed if t.candidate.text) / count)
        s.log("refused", sum(t.label == "scope" for t in failed))
        s.log("avoided", self.avoided)

    def check(self, system: object) -> None:
        """A known team, prompts that can be read."""
        if self.team not in TEAMS:
            raise unknown("team", self.team, TEAMS, f"rollout.team is {' or '.join(TEAMS)}")
        if self.agents and self.team != "generic":
            raise UserError("rollout.agents is a number of generic agents; set rollout.team=generic, or leave it at 0")
        Prompts(self.prompts).check(("specialist", "follow_up"))


def trial_of(job: Assignment, t: Trajectory) -> Trial:
    """A trial that is not in the archive yet."""
    made = Candidate(-1, {"program": t.info["program"]}, t.info["evaluation"], (job.parent.uid,), notes=t.info["notes"])
    return Trial(made, job.parent, job.agent.name, label_of(made))


def result(trial: Trial) -> str:
    """The outcome of a trial in a few words."""
    if trial.label:
        return f"{trial.label}: {trial.candidate.evaluation.feedback.strip()}"
    return f"value {trial.candidate.value:g}, {trial.gain:+g} over its parent"
