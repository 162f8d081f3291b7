"""A scratchpad: what the search has learned so far, put into words now and then, and shown to whoever writes next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evolvent.core.ranges import Count, Whole
from evolvent.core.records import Message, Request
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.candidate import Candidate

ITEM = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+(.+)$", re.MULTILINE)


@dataclass
class Scratchpad:
    """Around a proposer: after every `every` candidates (0: never) the model sums up those that are valid, one by one;
    brings its notes on all of the search up to date with these; and recommends what to try, at most `most` things.
    Every request then carries one recommendation, drawn anew (the meta-scratchpad of ShinkaEvolve, arXiv 2509.19349).

    With `--model none` there is nobody to ask, and nothing happens. An answer that did not come leaves the notes as
    they were. Metrics: `recommendations`.

    prompts  folder with `summary.md`, `notes.md` and `recommend.md` of your own
    """

    inner: Any
    every: Whole = 10
    most: Count = 5
    prompts: str = ""
    told: int = field(default=0, init=False)  # of the history: what the notes are about
    notes: str = field(default="", init=False)
    recommendations: list[str] = field(default_factory=list, init=False)

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """The rounds of the proposer, each request with a recommendation."""
        history = archive_of(s.role).history
        if self.every and len(history) - self.told >= self.every and not isinstance(s.role.policy, AbsentPolicy):
            self._sum_up(history[self.told :], s)
            self.told = len(history)
        s.log("recommendations", len(self.recommendations))
        for number, requests in enumerate(self.inner(s)):
            yield [self._advised(r, s, number, i) if r.uses else r for i, r in enumerate(requests)]

    def _advised(self, request: Request, s: Step, number: int, place: int) -> Request:
        if not self.recommendations:
            return request
        chosen = self.recommendations[int(s.rng("advice", number, place).integers(len(self.recommendations)))]
        text = f"Earlier programs of this search suggest:\n\n{chosen}"
        return replace(request, memory=(*request.memory, Message("system", text)))

    def _sum_up(self, new: list[Candidate], s: Step) -> None:
        problem = s.role.task.draw("train", s.rng("problem"))
        wording, best = Prompts(self.prompts), archive_of(s.role).best
        asked = [c for c in new if c.valid]
        texts = [wording.render("summary", candidate=c) for c in asked]
        answers = ask(texts, problem, s, "summary")
        summaries = [(c, t.completion.strip()) for c, t in zip(asked, answers, strict=True) if t.error is None]
        if not summaries:
            return
        (notes,) = ask([wording.render("notes", notes=self.notes, summaries=summaries, best=best)], problem, s, "notes")
        if notes.error is not None:
            return
        self.notes = notes.completion.strip()
        text = wording.render("recommend", notes=self.notes, most=self.most, best=best)
        (advice,) = ask([text], problem, s, "recommend")
        if advice.error is None:
            items = ITEM.findall(advice.completion) or [advice.completion.strip()]
            self.recommendations = [item.strip() for item in items if item.strip()][: self.most]

    def check(self, system: object) -> None:
        """Prompts that can be read."""
        Prompts(self.prompts).check(("summary", "notes", "recommend"))

    def state_dict(self) -> dict[str, Any]:
        """The notes and the recommendations."""
        return {"told": self.told, "notes": self.notes, "recommendations": list(self.recommendations)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.told, self.notes, self.recommendations = state["told"], state["notes"], list(state["recommendations"])
