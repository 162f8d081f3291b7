"""Instructions for the model that writes, which are themselves evolved, in an archive of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evolvent.core.ranges import Count, Whole
from evolvent.core.records import Message, Request
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.choice import outcomes

FIRST = "Think about what limits the value of the program, and change that."


@dataclass
class Instructions:
    """Around a proposer: every request carries an instruction, and the instructions evolve (AlphaEvolve's meta prompts,
    arXiv 2506.13131, section 2.2: suggested by the model, and evolved in a database of their own).

        score = share of its candidates that were better than their parents and the seed program, (1 + better) / (2 + n)
        p(instruction) ~ score,  and so is the parent of a new one

    After every `every` candidates the model rewrites an instruction, seeing how it and others have done; at 0 there
    are no instructions. Beyond `size` of them the one with the lowest score goes. With `--model none` nobody reads
    instructions, and nothing happens. The paper does not say how they are scored; this is ours. Metrics:
    `instructions`, how many there are.

    prompts  folder with an `instruct.md` of your own
    """

    inner: Any
    every: Whole = 10
    size: Count = 10
    prompts: str = ""
    told: int = field(default=0, init=False)  # of the history: what the counts are of
    asked: int = field(default=0, init=False)  # of the history, when the last one was written
    texts: list[str] = field(default_factory=lambda: [FIRST], init=False)
    counts: dict[str, list[int]] = field(default_factory=lambda: {FIRST: [0, 0]}, init=False)  # better, all

    def score(self, text: str) -> float:
        """Mean of a beta distribution: 1/2 for one that was never used."""
        better, made = self.counts[text]
        return (1 + better) / (2 + made)

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """The rounds of the proposer, each request with an instruction."""
        if isinstance(s.role.policy, AbsentPolicy) or not self.every:
            yield from self.inner(s)
            return
        history = archive_of(s.role).history
        for c, reward in outcomes(history, self.told):
            for text in c.notes.get("told", ()):
                if text in self.counts:
                    self.counts[text][0] += reward > 0
                    self.counts[text][1] += 1
        self.told = len(history)
        if len(history) - self.asked >= self.every:
            self.asked = len(history)
            self._rewrite(s)
        s.log("instructions", len(self.texts))
        for number, requests in enumerate(self.inner(s)):
            yield [self._instructed(r, s, number, i) if r.uses else r for i, r in enumerate(requests)]

    def _draw(self, rng: np.random.Generator) -> str:
        scores = np.array([self.score(text) for text in self.texts])
        return self.texts[int(rng.choice(len(scores), p=scores / scores.sum()))]

    def _instructed(self, request: Request, s: Step, number: int, place: int) -> Request:
        text = self._draw(s.rng("instruction", number, place))
        return replace(request, memory=(*request.memory, Message("system", text)))

    def _rewrite(self, s: Step) -> None:
        problem = s.role.task.draw("train", s.rng("problem"))
        parent = self._draw(s.rng("rewritten"))
        rows = sorted(((self.score(text), text) for text in self.texts), reverse=True)
        (t,) = ask([Prompts(self.prompts).render("instruct", parent=parent, rows=rows)], problem, s, "instruct")
        text = t.completion.strip()
        if t.error is None and text and text not in self.counts:
            self.texts.append(text)
            self.counts[text] = [0, 0]
            if len(self.texts) > self.size:
                self.texts.remove(min(self.texts, key=self.score))

    def check(self, system: object) -> None:
        """A prompt that can be read."""
        Prompts(self.prompts).check(("instruct",))

    def state_dict(self) -> dict[str, Any]:
        """The instructions and how they have done."""
        counts = [[text, *self.counts[text]] for text in self.counts]
        return {"told": self.told, "asked": self.asked, "texts": list(self.texts), "counts": counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.told, self.asked, self.texts = state["told"], state["asked"], list(state["texts"])
        self.counts = {text: [int(better), int(made)] for text, better, made in state["counts"]}
