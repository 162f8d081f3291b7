"""The book: an archive whose candidates are the patches handed in so far, one for each bug."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evolvent.core.records import Change
from evolvent.core.step import Step
from evolvent.search.archive import Archive
from evolvent.search.attempts.work import bugs_of
from evolvent.search.candidate import PROGRAM, Candidate
from evolvent.tasks.evaluation import INSTANCE, over_instances
from evolvent.tasks.worlds.repair.patches import SHOWN, book, read_book


@dataclass
class Book(Archive):
    """Keep: the patch that was handed in goes to its bug's place; who was there before stays if it passes as many
    visible tests. Candidate number 0 has the faulty programs.

    The notes of a candidate are `bug` and the summaries of all `attempts` at it in that step.
    """

    shares: dict[str, float] = field(default_factory=dict, init=False)  # of visible tests passed, by bug

    def __call__(self, s: Step) -> list[Change]:
        """One candidate for the bug of the step."""
        task = bugs_of(s.role)
        if not self.history:
            nothing = over_instances({SHOWN + name: 0.0 for name in task.names})
            self._add(Candidate(0, {PROGRAM: task.seed_program}, nothing, (), "seed", s.t))
        made = [t for g in s.groups for t in g.valid if "summary" in t.info]
        for t in (t for t in made if t.info["handed in"]):
            name, summary, latest = t.problem.data["bug"], t.info["summary"], self.history[-1]
            texts, values = read_book(latest.text), instances(latest)
            if summary.passed / summary.shown > self.shares.get(name, 0.0) or name not in self.shares:
                self.shares[name] = summary.passed / summary.shown
                texts[name], values[SHOWN + name] = summary.patch, float(summary.solved)
            notes = {"bug": name, "attempts": [t.info["summary"].as_dict() for t in made]}
            parents, uid = (latest.uid,), len(self.history)
            evaluation = over_instances(values)
            self._add(Candidate(uid, {PROGRAM: book(texts)}, evaluation, parents, summary.operator, s.t, notes=notes))
        if (best := self.best) is not None:
            s.log("best", best.value)
        return []

    def _add(self, made: Candidate) -> None:
        self.history.append(made)
        self.members = self.admit(made, self.members)
        for parent in made.parents:
            self.children[parent] += 1

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state; how far each bug has come is in the notes."""
        super().load_state_dict(state)
        self.shares = dict(state["shares"])

    def state_dict(self) -> dict[str, Any]:
        """As of any archive, with how many visible tests pass."""
        return {**super().state_dict(), "shares": dict(self.shares)}


def instances(candidate: Candidate) -> dict[str, float]:
    """Values by instance, in order."""
    metrics = candidate.evaluation.metrics
    return {name.removeprefix(INSTANCE): value for name, value in metrics.items() if name.startswith(INSTANCE)}
