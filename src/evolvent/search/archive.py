"""The archive: the history of all candidates, and the members that may be parents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.loop import TooManyErrors
from evolvent.core.records import Change, Request
from evolvent.core.role import Role
from evolvent.core.secrets import redact
from evolvent.core.step import Step
from evolvent.search.admission import Admission, keep_all
from evolvent.search.candidate import PROGRAM, Candidate, candidate_of
from evolvent.search.final import Final, highest
from evolvent.search.parents import Pool
from evolvent.search.running import Best, Forms
from evolvent.tasks.evaluation import Evaluation

UNTRIED = ("unusable", "lazy", "scope")  # how candidates end that are not evaluated, and cost no evaluation
PATIENCE = 200  # of these in a row, after which the search stops
PAID = 20, 60  # the same where an endpoint was asked for them, and how many requests that took: these cost money


def why(evaluation: Evaluation) -> str:
    """What an evaluation says, on one line: how it begins, and how it ends, where a traceback names its error."""
    text = redact(" ".join(evaluation.feedback.split()))
    return f"{text[:100]} ... {text[-200:]}" if len(text) > 300 else text or "no reason given"


class Stuck(TooManyErrors):
    """A search that makes nothing any more that could be evaluated; what it has found until then stands."""


@dataclass
class Archive:
    """Keeps every candidate that was evaluated; `admit` says which of them may be parents.

    Metrics: `best` (value), `valid` (share of the step's candidates), `members`, and `improved` (how many beat all
    before them). The history is append-only: `journal` hands out what a step has added, `recall` takes it back. Who is
    evaluated further stays where it is, as a new revision. `final` says who is the best in the end.
    """

    admit: Admission = keep_all
    final: Final = highest
    history: list[Candidate] = field(default_factory=list, init=False)
    members: list[Candidate] = field(default_factory=list, init=False)
    children: Counter[int] = field(default_factory=Counter, init=False)
    event: ClassVar = "candidate"  # the kind of the journal's events
    told: int = field(default=0, init=False)  # of the history: what the journal has handed out
    winner: int | None = field(default=None, init=False)  # whoever won when the best were evaluated anew, at the end
    revised: list[Candidate] = field(default_factory=list, init=False)  # what it has not, of those before
    recalled: dict[tuple[int, int], Candidate] = field(default_factory=dict, init=False)  # uid, revision -> candidate
    untried: int = field(default=0, init=False)  # candidates in a row that were not evaluated, in this process
    _asked: float = field(default=0, init=False)  # requests to endpoints before the first of these
    _best: Best = field(default_factory=Best, init=False)
    forms: Forms = field(default_factory=Forms, init=False)

    @property
    def best(self) -> Candidate | None:
        """The best candidate by the rule `final`; None if there is none yet."""
        return self._best.of(self.history) if self.final is highest else self.final(self.history)

    def named(self, request: Request) -> list[Candidate]:
        """Those that a request uses, the parent first."""
        return [self.history[int(uid)] for uid in request.uses]

    def pool(self) -> Pool:
        """What parent rules choose from. `UserError` if there is nobody."""
        if not self.members:
            if any(c.valid for c in self.history):
                rule = getattr(self.admit, "func", self.admit)
                raise UserError(
                    f"keep.admit={getattr(rule, '__name__', type(rule).__name__)} has admitted none of the "
                    f"{len(self.history)} candidates, the seed program included, so there is nothing to vary; set "
                    "another rule, or what it admits by"
                )
            first = self.history[0].evaluation
            raise UserError(
                f"the seed program is not valid ({first.status}: {why(first)}), so "
                "there is nothing to vary; mend it, or its evaluator"
            )
        counts = np.array([self.children[c.uid] for c in self.members], float)
        return Pool(self.members, counts, self.history[0], self.history[-1], self.history)

    def __call__(self, s: Step) -> list[Change]:
        """Add what the step has evaluated, in its order; who was there already is evaluated further."""
        best, before, improved = self.best, len(self.history), 0
        for t in (t for g in s.groups for t in g.valid):
            if "candidate" in t.info:
                self.revise(t.info["candidate"], t.info["evaluation"])
                continue
            made = Candidate(
                len(self.history),
                {PROGRAM: t.info["program"]},
                t.info["evaluation"],
                tuple(map(int, t.uses)),
                t.info["operator"],
                s.t,
                notes=t.info.get("notes", {}),
            )
            self.history.append(made)
            for parent in made.parents[:1]:
                self.children[parent] += 1
            self.members = self.admit(made, self.members)
            if made.valid and made.evaluation.complete and (best is None or made.value > best.value):
                best, improved = made, improved + 1
        self._look(self.history[before:], s.role.ledger.of("model_calls"))
        new, best = self.history[before:], self.best
        if best is not None:
            s.log("best", best.value)
            if self.final is not highest:
                s.log("chosen", best.uid)
        s.log("members", len(self.members))
        s.log("improved", improved)
        if new:
            s.log("valid", float(np.mean([c.valid for c in new])))
        return []

    def _look(self, new: list[Candidate], asked: float) -> None:
        """`Stuck` where nothing has been evaluated for long: a budget of evaluations would last for ever."""
        for c in new:
            self.untried = self.untried + 1 if c.evaluation.status in UNTRIED else 0
        if not self.untried:
            self._asked = asked
        requests = asked - self._asked
        if self.untried >= PATIENCE or (self.untried >= PAID[0] and requests >= PAID[1]):
            last = self.history[-1].evaluation
            paid = f" in {requests:g} requests" if requests else ""
            raise Stuck(
                f"none of the last {self.untried} candidates{paid} could be evaluated (the latest is {last.status}: "
                f"{why(last)}); take another model, prompts of your own, or, where rules vary programs, "
                "another seed or more components"
            )

    def revise(self, uid: int, evaluation: Evaluation) -> None:
        """A further evaluation of a candidate; the rule of admission looks at it anew."""
        made = self.history[uid] = self.history[uid].revised(evaluation)
        self._best = Best()  # it has seen the one before
        if uid < self.told:
            self.revised.append(made)
        others = [c for c in self.members if c.uid != uid]
        self.members = sorted(self.admit(made, others), key=lambda c: c.uid)

    def journal(self) -> list[dict[str, Any]]:
        """For the record: what has been added since the last call, and what is new of those before."""
        new, revised = self.history[self.told :], self.revised
        self.told, self.revised = len(self.history), []
        return [*(c.as_dict() for c in new), *(c.news() for c in revised)]

    def recall(self, events: Iterable[Mapping[str, Any]]) -> None:
        """The history, from the record. What a killed process wrote twice counts once; it was the same.

        A record may go on beyond the state that is loaded next: every revision is kept until then.
        """
        whole: dict[int, Mapping[str, Any]] = {}
        for data in events:
            whole[data["uid"]] = {**whole.get(data["uid"], {}), **data}
            found = candidate_of(whole[data["uid"]])
            self.recalled[found.uid, found.revision] = found
        self.history = [candidate_of(whole[uid]) for uid in sorted(whole)]

    def files(self) -> dict[str, str]:
        """What a run leaves in its folder: the best program; of programs that were evaluated anew, the winner."""
        best = self.best if self.winner is None else self.history[self.winner]
        return {} if best is None else {"best.py": best.text}

    def state_dict(self) -> dict[str, Any]:
        """Who may be a parent, and how long the history is; the history itself is in the record."""
        return {
            "members": np.array([c.uid for c in self.members], np.int64),
            "length": len(self.history),
            "revisions": {c.uid: c.revision for c in self.history if c.revision},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state; `recall` comes first."""
        revisions = state.get("revisions", {})
        self.history = [self.recalled.get((c.uid, revisions.get(c.uid, 0)), c) for c in self.history[: state["length"]]]
        self.recalled = {}
        self.members = [self.history[uid] for uid in state["members"]]
        self.children = Counter(c.parents[0] for c in self.history if c.parents)
        self.told, self.revised, self._best = len(self.history), [], Best()


def archive_of(role: Role) -> Archive:
    """The archive of a role. `UserError` if it has none."""
    for part in role.parts.values():
        if isinstance(part, Archive):
            return part
    raise UserError("this recipe searches, and has no archive; put one at keep, as in evolvent.search.archive:Archive")
