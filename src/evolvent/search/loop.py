"""The stages of a search in the loop: parents are proposed, varied, evaluated; the archive keeps what comes of them.

What is between them travels in the records that all methods share: a request `uses` the parent and those that the
operator may look at, a trajectory's `info` holds the program, its operator and its evaluation.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers
from evolvent.core.ranges import Whole
from evolvent.core.records import Group, Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.context import ContextRule, alone
from evolvent.search.parents import ParentRule, uniform
from evolvent.search.stages import Promote, everybody
from evolvent.search.variation.blocks import blocks
from evolvent.tasks.evaluation import INSTANCE, invalid, pooled
from evolvent.tasks.program import ProgramTask

Children = Annotated[int, Field(ge=1, le=100_000)]  # of one step


@dataclass
class Parents:
    """Propose: `children` a step, each of a parent that `parent` chooses, with what `context` lays beside it.

    The first step evaluates the seed program alone. Metric `parent_rank`: the share of members that are better than the
    parent, mean over children; 0 is always the best, 0.5 anybody.
    """

    children: Children = 8
    parent: ParentRule = uniform
    context: ContextRule = alone

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of requests."""
        archive = archive_of(s.role)
        problem = s.role.task.draw("train", s.rng("problem"))
        if not archive.history:
            yield [Request(problem, 1)]
            return
        pool = archive.pool()
        requests, values, better = [], pool.values, 0.0
        for i in range(self.children):
            rng = s.rng("parent", i)
            parent = self.parent(pool, rng)
            beside = self.context(parent, pool, rng)
            better += float(np.mean(values > parent.value)) / self.children
            requests.append(Request(problem, 1, uses=tuple(str(c.uid) for c in (parent, *beside))))
        s.log("parent_rank", better)
        yield requests


def again(candidate: Candidate, problem: Problem, instances: Sequence[str], uid: int) -> Request:
    """A request to evaluate a candidate that is there already on further instances; its verdicts become one."""
    t = written(uid, Request(problem, 1), candidate.text, candidate.operator)
    t.info |= {"candidate": candidate.uid, "instances": tuple(instances), "earlier": candidate.evaluation}
    return Request(problem, 1, resume=(t,))


def programs_of(role: Role) -> ProgramTask:
    """The role's task, which has to be one of programs: `UserError` otherwise."""
    if isinstance(role.task, ProgramTask):
        return role.task
    raise UserError(
        f"this recipe evolves programs, and {role.task.name} has problems to be answered; give --task "
        "program:circle-packing:26, or an evaluator with --seed-program"
    )


def given(request: Request, place: int, s: Step) -> list[Trajectory]:
    """What a request gets without anybody's writing: what it resumes, as it is; the seed program, where it has no
    parent; else nothing."""
    if request.resume or request.uses:
        return list(request.resume)
    uids = identifiers(request.n, s.role.seed, *s.path, s.round, place)
    return [written(uid, request, programs_of(s.role).seed_program, "seed") for uid in uids]


def begin_groups(requests: Sequence[Request], s: Step) -> tuple[list[Group], list[tuple[int, Request, Group]]]:
    """A group for each request, with what it is `given`; and those that are empty, so that somebody has to write:
    the request's place, the request, its group."""
    groups = [Group(request.problem, given(request, place, s)) for place, request in enumerate(requests)]
    found = [(place, requests[place], group) for place, group in enumerate(groups)]
    return groups, [one for one in found if not one[2].trajectories]


def written(uid: int, request: Request, program: str, operator: str) -> Trajectory:
    """A trajectory of no tokens: a rule wrote the program."""
    none = np.zeros(0, np.float32)
    return Trajectory(
        uid, request.problem, none.astype(np.int32), none.astype(bool), none, completion=program, stop="end",
        uses=request.uses, info={"program": program, "operator": operator},
    )  # fmt: skip


Plan = Sequence[Sequence[str]]  # of each stage the names of the instances, or of the stage itself


@dataclass
class Evaluate:
    """Judge: the task evaluates every program; a valid one's value is its reward `value`.

    A program that fails is a finding, and is kept as one; only where the evaluation itself was lost is that an error.
    Where the world has stages, `promote` may end the evaluation after each of them. A trajectory's `instances` say
    which instances of the world it is evaluated on; without, those of the split `train`. Of these a new candidate gets
    the first `at_once` only, if that is set, and others when somebody asks for them; with 0 it only has to work. The
    seed program is evaluated on all instances.

    `workers` programs run at once (0: as many as the task says, which is one); what comes of a search does not depend
    on it, unless programs are judged by their time.

    Metrics: `stages`, the mean number that candidates have been through, where there is more than one. An evaluation of
    the budget is that of one program on one instance, or on a world that is one whole; seconds of verifying are those
    of the processor, in the sandbox and here, so that a busy machine makes no search shorter.
    """

    promote: Promote = everybody
    at_once: Whole | None = None
    workers: Whole = 0
    evaluates: ClassVar = True  # programs, not answers

    def setup(self, role: Role) -> None:
        """A task of programs, marks in the seed program that nest, and a sandbox that works: `UserError` otherwise."""
        task = programs_of(role)
        blocks(task.seed_program)
        task.workers = self.workers or task.workers
        _ = task.sandbox

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate what the round has made."""
        task, rows = programs_of(s.role), []
        whole = task.instances("train")
        for t in (t for g in groups for t in g.valid):
            if "evaluation" in t.info:
                continue  # whoever wrote it has tried it
            if "unusable" in t.info:
                t.info["evaluation"] = invalid(t.info["unusable"], "unusable")
            else:
                rows.append(t)
        stages = task.world.stages if self.promote is not everybody else ()
        stage, rest = 0, [(t, self._plan(t, whole, stages)) for t in rows]
        while rest:
            self._stage(stage, rest, s)
            stage += 1
            rest = [(t, plan) for t, plan in rest if stage < len(plan) and self._goes_on(t, stage, s)]
        if len(stages) > 1 and rows:
            s.log("stages", float(np.mean([t.info["stages"] for t in rows])))
        for t in rows:  # these alone: a reward is given once
            if t.error is None and (value := t.info["evaluation"].value) is not None:
                t.reward("value", value, s.role.task.name)

    def _plan(self, t: Trajectory, whole: tuple[str, ...], stages: Plan) -> Plan:
        first = whole[: self.at_once]
        if "instances" in t.info:
            return (t.info["instances"],)
        if whole and not t.uses:
            return (whole,)
        return stages or (first,)

    def _stage(self, stage: int, rest: Sequence[tuple[Trajectory, Plan]], s: Step) -> None:
        task = programs_of(s.role)
        whole, before = set(task.instances("train")), task.cpu_seconds + time.process_time()
        found = task.evaluate([t.info["program"] for t, _ in rest], [plan[stage] for _, plan in rest])
        calls = sum(len(plan[stage]) for _, plan in rest) if whole else len(rest) * (stage == 0)
        s.role.ledger.charge(verifier_calls=calls, verifier_seconds=task.cpu_seconds + time.process_time() - before)
        for (t, plan), evaluation in zip(rest, found, strict=True):
            t.info["stages"] = stage + 1
            if evaluation.status == "lost":
                t.error = f"evaluator: {evaluation.feedback}"
                continue
            made = pooled(t.info.get("evaluation", t.info.get("earlier")), evaluation)
            covered = {name.removeprefix(INSTANCE) for name in made.metrics}
            complete = whole <= covered if whole else stage == len(plan) - 1
            t.info["evaluation"] = replace(made, complete=complete)

    def _goes_on(self, t: Trajectory, stage: int, s: Step) -> bool:
        return t.error is None and self.promote(t.info["evaluation"], stage, archive_of(s.role))
