"""Guided evolution with a model: it rewrites single segments, by prompts that are drawn, and learns from elites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from evolvent.core.errors import UserError
from evolvent.core.ranges import Count
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.step import Step
from evolvent.engine.base import Actor, Engine, Sampling, Tree
from evolvent.rollout.sample import Sample
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, answers, prompted
from evolvent.search.candidate import Candidate
from evolvent.search.guided import Guide, Plan
from evolvent.search.loop import given
from evolvent.search.objectives import named
from evolvent.search.segments import differing, segments, with_segment
from evolvent.search.variation.blocks import MARK
from evolvent.search.variation.edits import EditError, rewrite

AIMS = ("the program does better", "the program does better or is smaller")


@dataclass
class GuidedWrite(Guide):
    """Roll out: a model crosses and mutates single segments, and is asked to learn from elites (arXiv 2403.11446).

    A mutation is asked for by one of the `tasks`, in one of the `roles` ("plain": none). A taught one is shown a
    segment of an elite beside the seed's and asked why it is better, then to use this insight on the segment at hand:
    two calls, or one that asks both, as in the paper, with `separate` false. Where an answer cannot be used after
    `attempts` of them the child stays as it was before that; one that was not changed at all is not valid.

    temperatures  of each answer: drawn uniformly between both, in the place of the inner one's, and written down with
                  the candidate, as part of its genome
    top_p         the mass that tokens are drawn from; 1 switches it off
    prompts       folder with prompts of your own, by the names of those in `search/prompts`: guided/tasks/mine.md

    What was done is in the notes of the candidate: operator, segment, temperature, prompt, elite or mate, insight. The
    released code draws from (0.02, 0.35) for mutations and (0.05, 0.1) for crossing. Metrics: `asked` (answers),
    `unusable` (share of them), `taught` (share of the children that an elite has taught).
    """

    tasks: tuple[str, ...] = ("parameters", "uncommon-parameters", "complex", "smaller", "uncommon", "significant")
    roles: tuple[str, ...] = ("plain", "expert", "inventor", "stumbler")
    separate: bool = True
    temperatures: tuple[float, float] = (0.05, 0.4)
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.1
    attempts: Count = 1
    prompts: str = ""
    inner: Any = Sample
    asked: int = field(default=0, init=False)
    unusable: int = field(default=0, init=False)

    def check(self, system: object) -> None:
        """Settings in range, prompts that can be read."""
        low, high = self.temperatures
        if not 0 <= low <= high < 100:
            raise UserError(
                f"rollout.write.temperatures must be two numbers from 0, the lower one first; got {low}, {high}"
            )
        if not self.tasks or not self.roles:
            raise UserError('rollout.write.tasks and .roles must name at least one prompt each; a role may be "plain"')
        files = ["mutate", "cross", "thought", "ask_why", *(f"tasks/{task}" for task in self.tasks)]
        files += [f"roles/{role}" for role in self.roles if role != "plain"]
        Prompts(self.prompts).check([f"guided/{name}" for name in files])

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group of one for each request for which something was to do; without a parent it is the seed program."""
        groups = [Group(r.problem, made) for i, r in enumerate(requests) if (made := given(r, i, s))]
        children = [Child(plan, plan.parent.text) for plan in self.plans(requests, s)]
        self.asked = self.unusable = 0
        seed = archive_of(s.role).history[0] if children else None
        self._round("cross", [c for c in children if c.plan.mate], self._cross, s)
        if seed is not None:
            taught = [c for c in children if c.plan.elite]
            if self.separate:
                self._reasons(taught, seed, s)
            self._round("thought", taught, lambda c, rng: self._thought(c, seed, rng), s)
            self._round("mutate", [c for c in children if c.plan.mutate and not c.plan.elite], self._mutation, s)
            s.log("asked", self.asked)
            s.log("unusable", self.unusable / max(1, self.asked))
            s.log("taught", sum("thought" in c.done for c in children) / len(children))
        return [*groups, *(Group(c.plan.request.problem, [t]) for c in children if (t := c.finished()) is not None)]

    def _round(
        self,
        label: str,
        children: Sequence[Child],
        prompt: Callable[[Child, np.random.Generator], Job | None],
        s: Step,
    ) -> None:
        """One change of each child: ask for a segment, put it into the program, write down what was done."""
        jobs = [job for c in children if (job := prompt(c, s.rng(label, c.plan.place))) is not None]
        for job in jobs:
            job.gene["temperature"] = self._temperature(s.rng("temperature", label, job.child.plan.place))
        left = jobs
        for attempt in range(self.attempts):
            self._ask(left, f"{label}-{attempt}", s)
            for job in left:
                self.unusable += bool(job.read())
            left = [job for job in left if job.error and job.child.answer.error is None]

    def _temperature(self, rng: np.random.Generator) -> float:
        return round(float(rng.uniform(*self.temperatures)), 2)

    def _ask(self, jobs: Sequence[Job], label: str, s: Step) -> None:
        """An answer for each job. Requests of one temperature go out together."""
        for temperature in sorted({job.gene["temperature"] for job in jobs}):
            asks = [job for job in jobs if job.gene["temperature"] == temperature]
            role = s.role if self.top_p == 1 else replace(s.role, engine=Nucleus(s.role.engine, self.top_p))
            inner = replace(self.inner, temperature=temperature)
            found = answers([self._request(job) for job in asks], s, f"{label}-{s.round}-{temperature}", inner, role)
            self.asked += len(found)
            for job, t in zip(asks, found, strict=True):
                job.child.answer = t

    def _request(self, job: Job) -> Request:
        text = Prompts(self.prompts).render(f"guided/{job.template}", **job.shown, error=job.error)
        plan = job.child.plan
        return replace(prompted(plan.request.problem, text), uses=plan.uses)

    def _place(self, child: Child, rng: np.random.Generator) -> tuple[int, dict[str, Any]]:
        """A segment of a child, and what prompts show of it."""
        found = segments(child.text)
        place = int(rng.integers(len(found)))
        return place, {"place": place, "count": len(found), "segment": found[place]}

    def _cross(self, child: Child, rng: np.random.Generator) -> Job | None:
        mate = child.plan.mate
        places = differing(child.text, mate.text) if mate is not None else []
        if mate is None or not places:
            return None
        place = int(rng.choice(places))
        shown = {"segment": segments(child.text)[place], "other": segments(mate.text)[place]}
        shown |= {"parent_scores": told(child.plan.parent), "mate_scores": told(mate)}
        shown["aim"] = AIMS[int(rng.integers(len(AIMS)))]
        return Job(child, "cross", place, shown, {"operator": "cross", "segment": place, "with": mate.uid})

    def _mutation(self, child: Child, rng: np.random.Generator) -> Job:
        place, shown = self._place(child, rng)
        role, task = (names[int(rng.integers(len(names)))] for names in (self.roles, self.tasks))
        shown |= {"role": "" if role == "plain" else role, "task": task}
        return Job(child, "mutate", place, shown, {"operator": f"{role}-{task}", "segment": place})

    def _lesson(self, child: Child, seed: Candidate) -> dict[str, Any]:
        """What prompts show of the elite."""
        elite, place = child.plan.elite, child.plan.lesson
        assert elite is not None
        shown = {"before": segments(seed.text)[place], "after": segments(elite.text)[place]}
        return {**shown, "seed_scores": told(seed), "elite_scores": told(elite)}

    def _reasons(self, children: Sequence[Child], seed: Candidate, s: Step) -> None:
        """Ask of each elite why it is better; the answers are the children's insights."""
        jobs = []
        for c in children:
            temperature = self._temperature(s.rng("temperature", "why", c.plan.place))
            jobs.append(Job(c, "ask_why", c.plan.lesson, self._lesson(c, seed), {"temperature": temperature}))
        self._ask(jobs, "why", s)
        for job in jobs:
            job.child.insight = job.child.answer.completion.strip() if job.child.answer.error is None else ""

    def _thought(self, child: Child, seed: Candidate, rng: np.random.Generator) -> Job:
        place, shown = self._place(child, rng)
        elite = child.plan.elite
        assert elite is not None
        gene = {"operator": "thought", "segment": place, "with": elite.uid, "lesson": child.plan.lesson}
        gene |= {"insight": child.insight} if child.insight else {}
        return Job(child, "thought", place, {**shown, **self._lesson(child, seed), "insight": child.insight}, gene)


@dataclass
class Child:
    """A candidate in the making: its plan, its program so far, what was done to it, and the last answer."""

    plan: Plan
    text: str
    done: list[str] = field(default_factory=list)
    genes: list[dict[str, Any]] = field(default_factory=list)
    insight: str = ""
    error: str = ""
    answer: Trajectory = field(init=False)

    def finished(self) -> Trajectory | None:
        """The last answer with the program, or with what was wrong; None where nothing was asked."""
        if not hasattr(self, "answer"):
            return None
        t = self.answer
        t.uses = self.plan.uses
        t.info |= {"program": self.text, "operator": "+".join(self.done) or "none", "notes": {"genes": self.genes}}
        if not self.done:
            t.info["unusable"] = self.error
        elif t.error is not None:  # what came before the request that failed is a program all the same
            t.error = None
        return t


@dataclass
class Job:
    """A segment to be asked for."""

    child: Child
    template: str
    place: int
    shown: Mapping[str, Any]
    gene: dict[str, Any]
    error: str = ""  # what is wrong with the answer

    def read(self) -> str:
        """Put the answer's segment into the program; what is wrong with it, if anything. A request that failed is an
        error of the trajectory."""
        t, self.error = self.child.answer, ""
        if t.error is not None:
            return ""
        try:
            new = rewrite(t.completion)
            if MARK.search(new):
                raise EditError("the answer has EVOLVE-BLOCK marks; write what is between them")
            made = with_segment(self.child.text, self.place, new)
            if segments(made)[self.place] == segments(self.child.text)[self.place]:
                raise EditError("the answer changes nothing")
        except (EditError, UserError) as reason:
            self.error = self.child.error = str(reason)
            return self.error
        self.child.text = made
        self.child.done.append(self.gene["operator"])
        self.child.genes.append(self.gene)
        return ""


def told(candidate: Candidate) -> str:
    """A candidate's numbers, as prompts tell them; instances aside."""
    metrics = {"value": candidate.value, **candidate.evaluation.metrics, "size": named(candidate)["size"]}
    return ", ".join(f"{name} {x:.6g}" for name, x in metrics.items() if "/" not in name)


@dataclass
class Nucleus:
    """An engine that draws from the mass `top_p` of the likeliest tokens only."""

    engine: Engine
    top_p: float

    def start(
        self, stubs: Sequence[Trajectory], actors: Mapping[str, Actor], sampling: Sampling, limits: Sequence[int]
    ) -> Tree:
        """As the engine's."""
        return self.engine.start(stubs, actors, replace(sampling, top_p=self.top_p), limits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)
