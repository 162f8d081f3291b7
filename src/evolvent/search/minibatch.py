"""Minibatches: a child is tried on a few instances first, and on all only if it does better there (GEPA)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers, stream
from evolvent.core.ranges import Count, Whole
from evolvent.core.records import Group, Message, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import Archive, archive_of
from evolvent.search.asking import Prompts
from evolvent.search.candidate import Candidate
from evolvent.search.loop import begin_groups, programs_of, written
from evolvent.search.merge import MERGED, Merged, contested, merge
from evolvent.search.normal import tree_hash
from evolvent.search.novelty import forms
from evolvent.search.parents import ParentRule, instance_pareto, pareto_front
from evolvent.search.segments import mutated, segments
from evolvent.tasks.evaluation import INSTANCE, Evaluation

MINIBATCH, SEGMENT = "minibatch", "segment"  # in the data of a request's problem


@dataclass
class Reflective:
    """Propose: one child a step, of a parent that did not do all there is to do on the next few instances; now and then
    two members of the Pareto front are merged instead (GEPA, arXiv 2507.19457).

    Instances come in a drawn order, anew each time they are through. Segments of a program have their turn, one a
    child. After a child that was accepted a merge is tried, until `merges` of them were accepted. A model reads the
    parent's value on each instance of the minibatch, in the place of traces.

    minibatch  instances that a child is tried on first
    perfect    value of an instance that leaves nothing to learn; where all are, the next ones are taken
    shared     instances that a merged program is tried on first
    prompts    folder with a `reflect.md` of your own

    Metrics: `skipped` (minibatches that were perfect), `merges` (accepted so far).
    """

    parent: ParentRule = instance_pareto
    minibatch: Count = 3
    perfect: float = 1.0
    merges: Whole = 5
    shared: Count = 5
    prompts: str = ""
    cursor: int = field(default=0, init=False)  # instances that were handed out
    tried: set[tuple[int, int, int]] = field(default_factory=set, init=False)

    def setup(self, role: Role) -> None:
        """A world of instances, a prompt that can be read."""
        if not programs_of(role).instances("train"):
            raise UserError(
                f"this recipe tries programs on a few instances first, and {role.task.name} has none; give --task "
                "program:repair, program:swe, program:regret or texts with a trainset, or take another recipe"
            )
        Prompts(self.prompts).check(["reflect"])

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of one request."""
        archive, problem = archive_of(s.role), s.role.task.draw("train", s.rng("problem"))
        if not archive.history:
            yield [Request(problem, 1)]
            return
        made = self._merge(archive, s)
        s.log("merges", merges(archive))
        if made is not None:
            names = contested(*made.parents, INSTANCE, self.shared, s.rng("contested"))
            data = {**problem.data, MERGED: made.text, MINIBATCH: names}
            yield [Request(replace(problem, data=data), 1, uses=tuple(str(c.uid) for c in made.parents))]
            return
        pool = archive.pool()
        parent = self.parent(pool, s.rng("parent", 0))
        names = self._next(parent, s)
        parts = segments(parent.text)
        place = archive.children[parent.uid] % len(parts)
        known = {name: parent.evaluation.metrics.get(INSTANCE + name) for name in names}
        text = Prompts(self.prompts).render("reflect", parent=parent, known=known, place=place, segments=parts)
        asked = replace(problem, data={**problem.data, MINIBATCH: names, SEGMENT: place})
        yield [Request(asked, 1, memory=(Message("system", text),), uses=(str(parent.uid),))]

    def _next(self, parent: Candidate, s: Step) -> list[str]:
        """The next instances, without those batches on which the parent is perfect, unless all are."""
        whole, skipped = programs_of(s.role).instances("train"), 0
        for _ in range(-(-len(whole) // self.minibatch)):
            names = self._batch(whole, s)
            self.cursor += len(names)
            if any(parent.evaluation.metrics.get(INSTANCE + name, -np.inf) < self.perfect for name in names):
                break
            skipped += 1
        s.log("skipped", skipped)
        return list(dict.fromkeys(names))

    def _batch(self, whole: Sequence[str], s: Step) -> list[str]:
        """The instances from the cursor on; the order of those that are left is that of their epoch, or of the next."""
        epoch, first = divmod(self.cursor, len(whole))
        orders = [stream(s.role.seed, "minibatch", e).permutation(len(whole)) for e in (epoch, epoch + 1)]
        places = np.concatenate(orders)[first : first + min(self.minibatch, len(whole))]
        return [whole[i] for i in places.tolist()]

    def _merge(self, archive: Archive, s: Step) -> Merged | None:
        """A merge, if the latest child was accepted and no merge itself, and there are some left."""
        latest = archive.history[-1]
        if not accepted(latest) or latest.operator == "merge" or merges(archive) >= self.merges:
            return None
        made = merge(pareto_front(archive.pool()), archive.history, self.tried, s.rng("merge"))
        if made is not None:
            self.tried.add(made.key)
        return made

    def state_dict(self) -> dict[str, Any]:
        """How far the instances are, and whom merges were made of."""
        return {"cursor": self.cursor, "tried": sorted(map(list, self.tried))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.cursor, self.tried = state["cursor"], {(a, b, c) for a, b, c in state["tried"]}


def accepted(candidate: Candidate) -> bool:
    """Whether a child was evaluated on everything; the seed program is no child."""
    return candidate.valid and candidate.evaluation.complete and bool(candidate.parents)


def merges(archive: Archive) -> int:
    """How many merged programs were accepted."""
    return sum(c.operator == "merge" and accepted(c) for c in archive.history)


@dataclass
class Accept:
    """Around a judge: a child is evaluated on its request's minibatch; on the other instances, too, if there it has

        sum(child) > sum(parent),  or of a merged one  sum(child) >= max over both parents

    Otherwise it stays incomplete, and `keep.admit=complete` makes it no member. Values of the parents are those that
    are known; GEPA evaluates the parent anew on each minibatch. Metric: `accepted`, share of the valid children.
    """

    inner: Any

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate what the round has made."""
        archive = archive_of(s.role)
        whole = programs_of(s.role).instances("train")
        children = [t for g in groups for t in g.valid if MINIBATCH in t.problem.data]
        for t in children:
            t.info["instances"] = tuple(t.problem.data[MINIBATCH])
            t.info["notes"] = {**t.info.get("notes", {}), MINIBATCH: list(t.info["instances"])}
        self.inner(groups, s)
        judged = [t for t in children if t.error is None and t.info["evaluation"].value is not None]
        better = [t for t in judged if does_better(t, archive)]
        if judged:
            s.log("accepted", len(better) / len(judged))
        for t in better:
            rest = tuple(name for name in whole if name not in t.info["instances"])
            if rest:
                t.info |= {"instances": rest, "earlier": t.info.pop("evaluation")}
                t.rewards.pop("value", None)
        if better:
            self.inner(groups, s)


def does_better(t: Trajectory, archive: Archive) -> bool:
    """Whether a child is accepted, by its values on the minibatch."""
    names = t.info["instances"]
    own = on(t.info["evaluation"], names)
    others = [on(archive.history[int(uid)].evaluation, names) for uid in t.uses]
    return own >= max(others) if MERGED in t.problem.data else own > others[0]


def on(evaluation: Evaluation, names: Sequence[str]) -> float:
    """The sum of its values on some instances; one that is missing counts as -inf."""
    return float(sum(evaluation.metrics.get(INSTANCE + name, -np.inf) for name in names))


@dataclass
class OneSegment:
    """Roll out: without a model one segment of the parent is varied, the one whose turn it is, by operators on its
    syntax tree. What was seen before is varied anew, up to `tries` times. Metric: `repeats`, share of programs that are
    not new."""

    tries: Count = 5

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; the seed program without a parent."""
        archive, task, repeats = archive_of(s.role), programs_of(s.role), 0
        groups, unwritten = begin_groups(requests, s)
        seen = forms(archive)
        for place, request, group in unwritten:
            [parent] = archive.named(request)
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                rng, text, operator = s.rng("vary", place, i), parent.text, "none"
                for _ in range(self.tries):
                    varied = mutated(parent.text, request.problem.data[SEGMENT], rng, task.components)
                    if varied is not None:
                        text, operator = varied
                        if tree_hash(text) not in seen:
                            break
                repeats += tree_hash(text) in seen
                group.trajectories.append(written(uid, request, text, operator))
        s.log("repeats", repeats / max(1, sum(r.n for r in requests)))
        return groups
