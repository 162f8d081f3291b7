"""A blackboard: what all agents of a search have tried, how it ended, and what not to try again.

It is read off the history: who made a candidate, in which scope and by which hypothesis is in the candidate's notes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evolvent.core.records import Trajectory
from evolvent.search.candidate import Candidate
from evolvent.search.changes import Change, change, shown

SIZE = re.compile(r"at most [\d,.]+ (?:are allowed|finite numbers|parameters)")  # as worlds of recipes say it
HYPOTHESIS = re.compile(r"^\s*HYPOTHESIS:\s*(.+)$", re.MULTILINE)
LABELS = {
    **dict.fromkeys(("raised", "exited", "crashed", "unreadable"), "crash"),
    **dict.fromkeys(("timeout", "memory", "processes", "output"), "over budget"),
    **dict.fromkeys(("gate", "scope", "unusable", "refused"), ""),
}


def signed(t: Trajectory) -> dict[str, Any]:
    """A trajectory's notes for its candidate: the hypothesis that its answer begins with, and not what it was told."""
    notes = {k: v for k, v in t.info.get("notes", {}).items() if k != "told"}
    found = HYPOTHESIS.search(t.completion)
    return {**notes, "hypothesis": found[1].strip()} if found else notes


def label_of(candidate: Candidate) -> str:
    """How a trial failed: crash, over budget, size, gate, scope, unusable, refused, invalid; empty if it did not."""
    if candidate.valid:
        return ""
    status = candidate.evaluation.status
    if SIZE.search(candidate.evaluation.feedback):
        return "size"
    return (LABELS[status] or status) if status in LABELS else "invalid"


class Pattern(NamedTuple):
    """What is to be recognised of an edit: in which scope, and the lines that it put there, or else took away."""

    scope: str
    lines: Change


def pattern_of(scope: str, before: str, after: str) -> Pattern:
    """The pattern of an edit."""
    made = change(before, after)
    came = frozenset(line for line in made if line.startswith("+"))
    return Pattern(scope, came or made)


@dataclass(frozen=True)
class Trial:
    """One edit that was tried: the candidate, the one it was made from, by whom, and what came of it.

    gain  of value over the parent; None where one of them has none
    """

    candidate: Candidate
    parent: Candidate
    agent: str
    label: str

    @property
    def pattern(self) -> Pattern:
        """Of its edit."""
        return pattern_of(self.candidate.notes.get("scope", ""), self.parent.text, self.candidate.text)

    @property
    def gain(self) -> float | None:
        """Over the parent."""
        return self.candidate.value - self.parent.value if self.candidate.valid and self.parent.valid else None

    @property
    def improved(self) -> bool:
        """Whether it is better than its parent."""
        return self.gain is not None and self.gain > 0

    @property
    def edit(self) -> str:
        """Its changed lines, for a prompt."""
        if not self.candidate.text:
            return "no program"
        return shown(change(self.parent.text, self.candidate.text))


def trials_of(history: Sequence[Candidate]) -> list[Trial]:
    """All trials, in order; the seed program is none."""
    return [Trial(c, history[c.parents[0]], c.notes.get("agent", ""), label_of(c)) for c in history if c.parents]


def failed_patterns(trials: Sequence[Trial]) -> dict[Pattern, str]:
    """Patterns of edits that failed, with the label of the latest failure. What was worse, and valid, did not fail."""
    return {trial.pattern: trial.label for trial in trials if trial.label and trial.candidate.text}


def yields(trials: Sequence[Trial], agents: Sequence[str]) -> list[float]:
    """For each agent (1 + improved) / (2 + trials), the mean of a beta distribution; 1/2 for one that has not tried."""
    own = {name: [t.improved for t in trials if t.agent == name] for name in agents}
    return [(1 + sum(own[name])) / (2 + len(own[name])) for name in agents]
