"""Whether a program that is like another one is new after all: a question to a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evolvent.core.records import Problem
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.novelty import likeness, neighbours

NEW = re.compile(r"\W*new\b", re.IGNORECASE)

SecondLook = Callable[[Sequence[str], Problem, Step, str], list[bool]]


def nobody(programs: Sequence[str], problem: Problem, s: Step, label: str) -> list[bool]:
    """Nobody is asked: what is too similar is not new."""
    return [False] * len(programs)


@dataclass
class NoveltyJudge:
    """Of each program that was too similar, a model says whether it does something else than the program of the island
    that is most like it (ShinkaEvolve, arXiv 2509.19349, section 3).

    Where no answer comes the program passes, as in the published code: only a verdict rejects.

    prompts  folder with a `novelty.md` of your own
    """

    prompts: str = ""

    def __call__(self, programs: Sequence[str], problem: Problem, s: Step, label: str) -> list[bool]:
        """Whether each program is new after all; `label` tells this asking from others of the step."""
        others, wording = neighbours(archive_of(s.role)), Prompts(self.prompts)
        texts = []
        for program in programs:
            nearest = max(others, key=lambda c: likeness(program, c.text))
            texts.append(wording.render("novelty", program=program, nearest=nearest))
        answers = ask(texts, problem, s, label)
        return [t.error is not None or NEW.match(t.completion) is not None for t in answers]

    def check(self, system: object) -> None:
        """A prompt that can be read."""
        Prompts(self.prompts).check(["novelty"])
