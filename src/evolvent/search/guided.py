"""Guided evolution: generations in which single segments of programs are crossed, mutated, and learn from an elite.

Generations    propose   a start population, then pairs of parents by NSGA-II (arXiv 2403.11446)
GuidedRules    roll out  without a model: operators on syntax trees; what an elite has changed is carried over
GuidedWrite    roll out  with a model, in `search.thought`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolvent.core.random import identifiers
from evolvent.core.ranges import Count, Share
from evolvent.core.records import Group, Request
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import Children, given, programs_of, written
from evolvent.search.normal import tree_hash
from evolvent.search.novelty import forms
from evolvent.search.nsga2 import tournaments
from evolvent.search.objectives import ACCURATE_AND_SMALL, objectives
from evolvent.search.segments import carried, crossed, differing, mutated, segments
from evolvent.search.spea2 import elites


@dataclass
class Generations:
    """Propose: `start` variations of the seed program, then `children` a generation, by contests of NSGA-II.

    Those that win are paired in turn; with probability `crossover` both of a pair are crossed, each with the other.
    The first step evaluates the seed program alone, which is a member like others; in the released code it is none.
    """

    children: Children = 8
    start: Count = 32
    crossover: Share = 0.35
    metrics: tuple[str, ...] = ACCURATE_AND_SMALL

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of requests."""
        archive = archive_of(s.role)
        problem = s.role.task.draw("train", s.rng("problem"))
        if not archive.history:
            yield [Request(problem, 1)]
            return
        pool = archive.pool()
        if not begun(archive.history):
            yield [Request(problem, 1, uses=("0",)) for _ in range(self.start)]
            return
        rng = s.rng("parents")
        won = [pool.members[i] for i in tournaments(objectives(pool.members, self.metrics), self.children, rng)]
        requests = []
        for i, one in enumerate(won):
            mate = won[i ^ 1] if i ^ 1 < len(won) else None  # 0 with 1, 2 with 3
            if i % 2 == 0:
                crossing = rng.random() < self.crossover
            crossing = crossing and mate is not None and one.uid != mate.uid
            uids = (one, mate) if crossing and mate is not None else (one,)
            requests.append(Request(problem, 1, uses=tuple(str(c.uid) for c in uids)))
        yield requests


def begun(history: Sequence[Candidate]) -> bool:
    """Whether there is anybody but the seed program."""
    return any(c.parents for c in history)


@dataclass
class Plan:
    """What is to be done to a parent: crossed with a mate, mutated, or taught by an elite's segment at `lesson`."""

    request: Request
    place: int  # of the request
    parent: Candidate
    mate: Candidate | None
    mutate: bool
    elite: Candidate | None = None
    lesson: int = 0

    @property
    def uses(self) -> tuple[str, ...]:
        """All that take part."""
        return tuple(str(c.uid) for c in (self.parent, self.mate, self.elite) if c is not None)


@dataclass
class Guide:
    """What both roll-outs decide alike.

    mutation  probability that a child is mutated, after crossing if it is crossed; in the start population it is 1
    thought   probability that an elite's change teaches the mutation; not in the start population
    elites    how many members SPEA2 draws those from, by `metrics`

    A child that is neither crossed nor mutated is its parent, and is not made. In the paper's Algorithm 2 a mutation is
    taught with probability 1 - `thought`; the released code has it as here.
    """

    mutation: Share = 0.8
    thought: Share = 0.25
    elites: Count = 10
    metrics: tuple[str, ...] = ACCURATE_AND_SMALL

    def plans(self, requests: Sequence[Request], s: Step) -> list[Plan]:
        """One for each request with something to do."""
        archive, found = archive_of(s.role), []
        first = not begun(archive.history)
        seed = archive.history[0] if archive.history else None
        best = [] if first or seed is None else elites(archive.members, self.elites, self.metrics)
        best = [c for c in best if seed is not None and differing(seed.text, c.text)]
        for place, request in enumerate(requests):
            if not request.uses:
                continue
            rng = s.rng("plan", place)
            parent, *others = archive.named(request)
            plan = Plan(request, place, parent, others[0] if others else None, first or rng.random() < self.mutation)
            if plan.mutate and best and seed is not None and rng.random() < self.thought:
                plan.elite = best[int(rng.integers(len(best)))]
                plan.lesson = int(rng.choice(differing(seed.text, plan.elite.text)))
            if plan.mutate or plan.mate is not None:
                found.append(plan)
        return found


@dataclass
class GuidedRules(Guide):
    """Roll out: segments varied without a model.

    Crossing puts a part of the mate's segment into the parent's; a mutation changes the syntax tree of one segment; a
    taught one makes in it the change that led from the seed's segment to the elite's, as far as its lines are there.
    A program that was seen before is made anew, up to `tries` times. Metrics: `repeats` (share that is not new),
    `taught` (share that an elite has taught).
    """

    tries: Count = 5

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group of one for each request for which something was to do; without a parent it is the seed program."""
        seen, repeats, taught = forms(archive_of(s.role)), 0, 0
        groups = [Group(r.problem, made) for i, r in enumerate(requests) if (made := given(r, i, s))]
        plans = self.plans(requests, s)
        for plan in plans:
            (uid,) = identifiers(1, s.role.seed, *s.path, s.round, plan.place)
            rng = s.rng("vary", plan.place)
            for _ in range(self.tries):
                text, notes = self._made(plan, s, rng)
                if (form := tree_hash(text)) not in seen:
                    break
            else:
                repeats += 1
            seen.add(form)
            done = [note["operator"] for note in notes]
            taught += "thought" in done
            t = written(uid, plan.request, text, "+".join(done) or "none")
            t.uses = plan.uses
            t.info["notes"] = {"genes": notes}
            groups.append(Group(plan.request.problem, [t]))
        s.log("repeats", repeats / max(1, len(plans)))
        s.log("taught", taught / max(1, len(plans)))
        return groups

    def _made(self, plan: Plan, s: Step, rng: np.random.Generator) -> tuple[str, list[dict[str, Any]]]:
        """The program, and what was done to which segment."""
        task, text, notes = programs_of(s.role), plan.parent.text, []
        if plan.mate is not None:
            for place in rng.permutation(differing(text, plan.mate.text)).tolist():
                if made := crossed(text, plan.mate.text, int(place), rng):
                    text = made
                    notes.append({"operator": "cross", "segment": int(place), "with": plan.mate.uid})
                    break
        if plan.elite is not None:
            first = archive_of(s.role).history[0].text
            old, new = segments(first), segments(plan.elite.text)
            for place in (plan.lesson, *rng.permutation(differing(first, plan.elite.text)).tolist()):
                if made := carried(text, int(place), old[int(place)], new[int(place)]):
                    notes.append({"operator": "thought", "segment": int(place), "with": plan.elite.uid})
                    return made, notes
        if plan.mutate:
            for place in rng.permutation(len(segments(text))).tolist():
                if changed := mutated(text, int(place), rng, task.components):
                    text = changed[0]
                    notes.append({"operator": changed[1], "segment": int(place)})
                    break
        return text, notes
