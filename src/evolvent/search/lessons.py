"""Plan, execute, summarise: a plan for each candidate before it is written, and a lesson from it afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evolvent.core.ranges import Whole
from evolvent.core.records import Message, Request
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import Archive, archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.candidate import Candidate

PLAN = "Carry out this plan:\n\n"


@dataclass
class Plans:
    """Around a proposer: the model plans each change, reading the parent, its ancestors and the lessons from them; once
    the candidate was judged it compares what came of the plan, and the lesson stays with that candidate (LoongFlow's
    planner and summariser, arXiv 2512.24077).

    ancestors  how many generations back the planner reads
    lessons    whether lessons are drawn and read; without, plans are made from programs and values alone
    prompts    folder with `plan.md` and `lesson.md` of your own

    With `--model none` there is nobody to plan. A plan that did not come is none. Metrics: `lessons`, how many there
    are.
    """

    inner: Any
    ancestors: Whole = 3
    lessons: bool = True
    prompts: str = ""
    told: int = field(default=1, init=False)  # of the history: what lessons were drawn from; the seed program has none
    known: dict[int, str] = field(default_factory=dict, init=False)  # lessons by uid

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """The rounds of the proposer, each request with a plan."""
        if isinstance(s.role.policy, AbsentPolicy):
            yield from self.inner(s)
            return
        archive = archive_of(s.role)
        if self.lessons:
            self._learn(archive, s)
        s.log("lessons", len(self.known))
        for number, requests in enumerate(self.inner(s)):
            varied = [r for r in requests if r.uses]
            plans = iter(self._plan(varied, archive, s, number))
            yield [next(plans) if r.uses else r for r in requests]

    def _learn(self, archive: Archive, s: Step) -> None:
        new = [c for c in archive.history[self.told :] if c.parents]
        self.told = max(self.told, len(archive.history))
        texts = [
            Prompts(self.prompts).render("lesson", candidate=c, parent=archive.history[c.parents[0]], plan=plan_of(c))
            for c in new
        ]
        answers = ask(texts, s.role.task.draw("train", s.rng("problem")), s, "lesson")
        self.known |= {c.uid: t.completion.strip() for c, t in zip(new, answers, strict=True) if t.error is None}

    def _plan(self, requests: Sequence[Request], archive: Archive, s: Step, number: int) -> list[Request]:
        if not requests:
            return []
        texts = []
        for request in requests:
            parent, *others = archive.named(request)
            line = [(c, self.known.get(c.uid, "")) for c in ancestry(parent, archive.history)[: self.ancestors + 1]]
            texts.append(Prompts(self.prompts).render("plan", parent=parent, others=others, line=line))
        answers = ask(texts, requests[0].problem, s, f"plan-{number}")
        return [
            r if t.error or not t.completion.strip() else replace(r, memory=(*r.memory, told(t.completion)))
            for r, t in zip(requests, answers, strict=True)
        ]

    def check(self, system: object) -> None:
        """Prompts that can be read."""
        Prompts(self.prompts).check(("plan", "lesson"))

    def state_dict(self) -> dict[str, Any]:
        """The lessons."""
        return {"told": self.told, "known": [[uid, text] for uid, text in self.known.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.told, self.known = state["told"], {int(uid): text for uid, text in state["known"]}


def told(plan: str) -> Message:
    """A plan, as whoever writes is told."""
    return Message("system", PLAN + plan.strip())


def plan_of(candidate: Candidate) -> str:
    """The plan that a candidate was written by; empty if there was none."""
    return next((text.removeprefix(PLAN) for text in candidate.notes.get("told", ()) if text.startswith(PLAN)), "")


def ancestry(candidate: Candidate, history: Sequence[Candidate]) -> list[Candidate]:
    """The candidate, its parent, and so on to the seed program."""
    line = [candidate]
    while line[-1].parents:
        line.append(history[line[-1].parents[0]])
    return line
