"""Variation by a model: it is shown the parent and what lies beside it, and writes a diff or a whole program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.errors import UserError, unknown
from evolvent.core.ranges import Count, Nonnegative
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.step import Step
from evolvent.rollout.sample import Sample
from evolvent.search.archive import Archive, archive_of
from evolvent.search.asking import Prompts, answers, prompted
from evolvent.search.candidate import Candidate
from evolvent.search.ensemble import Ensemble
from evolvent.search.loop import begin_groups
from evolvent.search.minibatch import SEGMENT
from evolvent.search.novelty import Novelty, anything
from evolvent.search.novelty_judge import SecondLook, nobody
from evolvent.search.variation.blocks import MARK
from evolvent.search.variation.edits import EditError, apply, parse_diff, rewrite, within
from evolvent.search.variation.texts import names_of, with_texts

KINDS = ("diff", "rewrite", "cross")
UNCHANGED = "the answer changes nothing"
FAMILIAR = "the program is nearly the same as an earlier one; make one that differs in what it does"


@dataclass
class Write:
    """Roll out: a model changes the parent. `kinds` are the shares of diffs, full rewrites and crossovers with what the
    context lays beside it (ShinkaEvolve's, arXiv 2509.19349); without anything beside it a crossover is a rewrite.

    An answer that cannot be used is asked for again, with what was wrong, up to `attempts` times in all. The last one
    counts as a candidate that is not valid: it was paid for. So is a program that `novel` rejects, unless the `judge`
    of a second look says otherwise, and the last one is evaluated all the same. Metrics: `asked` (answers), `unusable`,
    `rejected` and `passed` (shares of them; the last are those that passed on a second look).

    What a request's `memory` says follows the prompt, and is in the candidate's notes as `told`.

    openings how many of the alternatives in `openings.txt` a prompt's first lines are drawn from
    ensemble the models that are asked
    prompts  folder with prompts of your own, by the names of those in `search/prompts`, which fill in what is missing
    """

    kinds: Mapping[str, Nonnegative] = field(default_factory=lambda: {"diff": 0.6, "rewrite": 0.3, "cross": 0.1})
    attempts: Count = 3
    novel: Novelty = anything
    judge: SecondLook = nobody
    openings: Count = 1
    ensemble: Any = Ensemble
    prompts: str = ""
    inner: Any = Sample

    def check(self, system: Any) -> None:
        """Known kinds, shares that can be drawn from, prompts that can be read."""
        here = next(path for path, part in system.parts.items() if part is self)
        for kind in self.kinds:
            if kind not in KINDS:
                raise unknown("kind", kind, KINDS, f"{here}.kinds has {', '.join(KINDS)}")
        if not sum(self.kinds.values()) > 0:
            raise UserError(f"{here}.kinds are all 0; give at least one of them a share")
        Prompts(self.prompts).check(list(self.kinds))
        there = len(Prompts(self.prompts).lines("openings"))
        if self.openings > there:
            raise UserError(f"{here}.openings goes from 1 to {there}, the lines of openings.txt; got {self.openings}")

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; those without a parent are the seed program, resumed ones go on where they were
        paused and else stay as they are. Groups with a paused answer go to `s.pending`."""
        archive = archive_of(s.role)
        self.ensemble.learn(archive)
        openings = Prompts(self.prompts).lines("openings")[: self.openings]
        groups, unwritten = begin_groups(requests, s)
        jobs: list[Job] = []
        for place, request, group in unwritten:
            parents = archive.named(request)
            for i in range(request.n):
                kind, model = self._kind(parents, s.rng("kind", place, i)), self.ensemble.pick(s.rng("model", place, i))
                opening = openings[int(s.rng("opening", place, i).integers(len(openings)))]
                jobs.append(Job(group, request, parents, kind, model, opening, place))
        jobs += [job for place, group in enumerate(groups) for job in resumed(group, place, archive)]
        asked = unusable = rejected = passed = 0
        for attempt in range(self.attempts):
            unread = [job for job in jobs if job.answer is None or job.error]
            for name in dict.fromkeys(job.model for job in unread):
                asks = [job for job in unread if job.model == name]
                for job, t in zip(asks, self._ask(asks, name, attempt, s), strict=True):
                    asked += not paused(t)
                    job.take(t)
                    unusable += bool(job.error)
            familiar = [job for job in unread if job.program and not self._is_new(job.program, archive)]
            for job, new in zip(familiar, self._looked_at(familiar, attempt, s), strict=True):
                job.error = "" if new else FAMILIAR
                passed, rejected = passed + new, rejected + (not new)
        s.log("asked", asked)
        s.log("unusable", unusable / max(1, asked))
        if self.novel is not anything:
            s.log("rejected", rejected / max(1, asked))
        if self.judge is not nobody:
            s.log("passed", passed / max(1, asked))
        for job in jobs:
            made = job.finished()
            job.group.trajectories.append(made)
            if paused(made):
                continue
            told = {"told": [m.content for m in job.request.memory]} if job.request.memory else {}
            if notes := {**self.ensemble.notes(job.model, made), **told}:
                made.info["notes"] = notes
        s.pending += [t for g in groups if unfinished(g) for t in g.trajectories]
        return [g for g in groups if not unfinished(g)]

    def _kind(self, parents: Sequence[Candidate], rng: np.random.Generator) -> str:
        names = [k for k in KINDS if self.kinds.get(k, 0) > 0]
        shares = np.array([self.kinds[k] for k in names], float)
        kind = names[int(rng.choice(len(names), p=shares / shares.sum()))]
        return "rewrite" if kind == "cross" and len(parents) < 2 else kind

    def _is_new(self, program: str, archive: Archive) -> bool:
        """Whether a program is novel; what is none goes on to the evaluation, which says what is wrong with it."""
        try:
            return self.novel(program, archive)
        except SyntaxError:
            return True

    def _looked_at(self, familiar: Sequence[Job], attempt: int, s: Step) -> list[bool]:
        """Of programs that are like others, whether they are new after all."""
        if not familiar:
            return []
        label = f"novelty-{s.round}-{attempt}"
        return self.judge([job.program for job in familiar], familiar[0].request.problem, s, label)

    def _ask(self, jobs: Sequence[Job], model: str, attempt: int, s: Step) -> list[Trajectory]:
        """One answer of a model for each job, in their order."""
        role = self.ensemble.roles[model]
        asks, wording = [], Prompts(self.prompts)
        for job in jobs:
            if job.request.resume:
                asks.append(job.request)
                continue
            parent, *others = job.parents
            marked = MARK.search(parent.text) is not None
            text = wording.render(
                job.kind,
                parent=parent,
                others=others,
                marked=marked,
                error=job.error,
                opening=job.opening,
                texts=job.texts,
            )
            asks.append(prompted(job.request.problem, text, job.request))
        label = f"write-{s.round}-{attempt}" + f"-{model}" * (role is not s.role)
        return answers(asks, s, label, self.inner, role, [job.place for job in jobs])


@dataclass
class Job:
    """One candidate to be made: in which group, whose change, of which kind, and how far it has come."""

    group: Group
    request: Request
    parents: Sequence[Candidate]
    kind: str
    model: str
    opening: str
    place: int = 0  # of the group among those of the step
    program: str = ""
    error: str = ""  # what is wrong with the answer
    answer: Trajectory | None = None

    def take(self, t: Trajectory) -> None:
        """Read an answer. A request that failed is an error of the trajectory, and not asked for again here; one that
        was paused goes on in another step."""
        self.answer, self.error, self.program = t, "", ""
        if t.error is not None or paused(t):
            return
        before = self.parents[0].text
        try:
            if self.kind == "diff":
                made = apply(before, parse_diff(t.completion))
            else:
                made = self._rewritten(before, t.completion)
            if made == before:
                raise EditError(UNCHANGED)
            self.program = made
        except (EditError, UserError) as reason:
            self.error = str(reason)

    @property
    def texts(self) -> list[str]:
        """Where the parent is named texts: those that are to be written, which may be the one whose turn it is."""
        names, place = names_of(self.parents[0].text), self.request.problem.data.get(SEGMENT)
        return names if place is None else names[place : place + 1]

    def _rewritten(self, before: str, answer: str) -> str:
        try:
            made = rewrite(answer)
            return within(before.strip("\n") + "\n", made) if MARK.search(before) else made
        except EditError:
            if not self.texts:
                raise
            return with_texts(before, answer, self.texts)

    def finished(self) -> Trajectory:
        """The last answer, with its program, or with what was wrong; or with what the job is, to be `resumed`."""
        assert self.answer is not None
        if paused(self.answer):
            self.answer.info["job"] = (self.kind, self.model, self.opening)
            return self.answer
        self.answer.info |= {"program": self.program, "operator": self.kind}
        if not self.program:
            self.answer.info["unusable"] = self.error
        return self.answer


def resumed(group: Group, place: int, archive: Archive) -> list[Job]:
    """Jobs for what is paused of a group, and no longer in it."""
    jobs = []
    for t in filter(paused, group.trajectories):
        kind, model, opening = t.info.pop("job")
        ask = Request(t.problem, 1, resume=(t,), uses=t.uses)
        jobs.append(Job(group, ask, archive.named(ask), kind, model, opening, place))
    group.trajectories = [t for t in group.trajectories if not paused(t)]
    return jobs


def paused(t: Trajectory) -> bool:
    """Whether a controller has put off the rest of an answer."""
    return t.stop == "paused"


def unfinished(group: Group) -> bool:
    """Whether a member of it was paused."""
    return any(map(paused, group.trajectories))
