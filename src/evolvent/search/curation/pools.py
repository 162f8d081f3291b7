"""What is known of a category: the issues that were found in it, and the strategies that were tried on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evolvent.search.candidate import Candidate
from evolvent.search.segments import segments, with_segment
from evolvent.tasks.evaluation import INSTANCE
from evolvent.tasks.worlds.curation.issues import form
from evolvent.tasks.worlds.curation.judge import read_comments
from evolvent.tasks.worlds.curation.texts import CATEGORIES

CATEGORY = "category"  # in the data of a request's problem, and in a candidate's notes
ALIKE = 0.5  # share of common words from which two examples of a kind are one issue
SHOWN = 3  # examples of an issue that are kept
LOST = "lost "  # begins the kind of an issue that a strategy made, by destroying content


@dataclass
class Issue:
    """Something wrong with the documents: its kind, up to three examples, how often it was found."""

    kind: str
    examples: list[str]
    count: int = 1

    def like(self, kind: str, example: str) -> bool:
        """Whether that is the same issue once more."""
        return kind == self.kind and any(alike(example, e) >= ALIKE for e in self.examples)


def alike(a: str, b: str) -> float:
    """Share of common words, numbers aside; 1 for texts of the same form."""
    if form(a) == form(b):
        return 1.0
    x, y = (set(re.findall(r"[^\W\d_]+", text)) for text in (a, b))
    return len(x & y) / len(x | y) if x | y else 0.0


@dataclass
class Experience:
    """The issues of a category, without repeats, in the order in which they were found."""

    issues: list[Issue] = field(default_factory=list)

    def add(self, kind: str, example: str) -> bool:
        """Take up an issue; whether it is new."""
        known = next((i for i in self.issues if i.like(kind, example)), None)
        if known is None:
            self.issues.append(Issue(kind, [example]))
            return True
        known.count += 1
        if example not in known.examples and len(known.examples) < SHOWN:
            known.examples.append(example)
        return False

    def data(self) -> list[list[Any]]:
        """As plain data."""
        return [[i.kind, list(i.examples), i.count] for i in self.issues]

    @classmethod
    def of(cls, data: Sequence[Sequence[Any]]) -> Experience:
        """From plain data."""
        return cls([Issue(kind, list(examples), count) for kind, examples, count in data])


class Strategy(NamedTuple):
    """A strategy for one category: the candidate that has it, the generation (0: the seed), the score, 1 to 10."""

    candidate: Candidate
    generation: int
    score: float


def strategies(history: Sequence[Candidate], category: str) -> list[Strategy]:
    """All valid strategies of a category, in their order."""
    key, found = f"{INSTANCE}train-{category}", []
    for c in history:
        if c.valid and (not c.parents or c.notes.get(CATEGORY) == category):
            found.append(Strategy(c, c.notes.get("generation", 0), c.evaluation.metrics[key]))
    return found


def best(found: Sequence[Strategy]) -> Strategy:
    """The highest score; of equals the first."""
    return max(found, key=lambda s: (s.score, -s.candidate.uid))


def generation(history: Sequence[Candidate], category: str) -> int:
    """The latest generation of a category; 0 if there is none but the seed."""
    return max((c.notes["generation"] for c in history if c.notes.get(CATEGORY) == category), default=0)


def assembled(chosen: Mapping[str, Strategy]) -> str:
    """A program with the strategy that was chosen for each category."""
    text = chosen[CATEGORIES[0]].candidate.text
    for place, category in enumerate(CATEGORIES):
        text = with_segment(text, place, segments(chosen[category].candidate.text)[place])
    return text


def diagnosed(candidate: Candidate, category: str) -> dict[str, float]:
    """What the judge found left (by kind) or lost (`lost ...`) after a strategy, and how much of it."""
    told = candidate.evaluation.feedback.split("\n")
    starts = [i for i, line in enumerate(told) if line.startswith(f"{category}: ")]
    if not starts:
        return {}
    rest = told[starts[-1] + 1 :]
    end = next((i for i, line in enumerate(rest) if re.match(rf"({'|'.join(CATEGORIES)}): ", line)), len(rest))
    rows = read_comments("\n".join(rest[:end]))
    return {(LOST + what if side == "lost" else what): share for side, what, share, _ in rows}
