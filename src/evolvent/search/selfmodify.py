"""Variation by the candidate itself: an agent program diagnoses one of its failures, and rewrites its own text.

What is diagnosed is chosen as in DGM (arXiv 2505.22954, appendix C, and its published code); the agent's own `improve`
then runs in the sandbox, so that whoever changes how it changes itself hands that on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers
from evolvent.core.ranges import Share
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.guard.sandbox import Outcome
from evolvent.search.archive import Archive, archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import begin_groups, programs_of, written
from evolvent.search.normal import tree_hash
from evolvent.tasks.evaluation import INSTANCE, Evaluation

Entry = tuple[str, list[str]]  # what is diagnosed, and the instances whose logs are looked at
Diagnosis = Callable[[Evaluation, np.random.Generator], Entry]
LOGS = 3  # of instances, where it is no single one that is diagnosed


def one_failure(evaluation: Evaluation, rng: np.random.Generator) -> Entry:
    """One instance that is not solved, whatever the reason; one that is, where all are."""
    solved, failed, empty, _ = outcomes(evaluation)
    return "unresolved", some(failed + empty or solved, rng, 1)


def weaknesses(
    evaluation: Evaluation,
    rng: np.random.Generator,
    *,
    empty: Share = 0.25,
    stochastic: Share = 0.25,
    exhausted: Share = 0.25,
) -> Entry:
    """`empty` if at least a tenth of the patches changes nothing, else `stochastic`, else `exhausted` if some instance
    used up all that it may use, each with its probability; else one failed instance (DGM).

    `exhausted` is DGM's context length. Where nothing is left to diagnose, any instance is; the published code fails.
    """
    solved, failed, blank, spent = outcomes(evaluation)
    every = solved + failed + blank
    if blank and len(blank) >= 0.1 * len(every) and rng.random() < empty:
        return "empty", some(blank, rng, LOGS)
    if rng.random() < stochastic:
        return "stochastic", some(failed + blank or every, rng, LOGS)
    if spent and rng.random() < exhausted:
        return "exhausted", some(spent, rng, LOGS)
    return "unresolved", some(failed or blank or solved, rng, 1)


def outcomes(evaluation: Evaluation) -> tuple[list[str], list[str], list[str], list[str]]:
    """Instances that were solved, failed with a patch, failed without one; and unsolved ones without anything left."""
    values = {n.removeprefix(INSTANCE): v for n, v in evaluation.metrics.items() if n.startswith(INSTANCE)}
    solved = [name for name, value in values.items() if value > 0]
    unsolved = [name for name in values if name not in solved]
    blank = [name for name in unsolved if f"empty/{name}" in evaluation.metrics]
    spent = [name for name in unsolved if f"exhausted/{name}" in evaluation.metrics]
    return solved, [name for name in unsolved if name not in blank], blank, spent


def some(names: Sequence[str], rng: np.random.Generator, count: int) -> list[str]:
    """Up to so many names, drawn without repeats."""
    return [names[int(i)] for i in rng.permutation(len(names))[:count]]


Editor = Callable[[Candidate, Archive], str]


def itself(parent: Candidate, archive: Archive) -> str:
    """The agent changes itself: what it has become does the changing (DGM)."""
    return parent.text


def fixed(parent: Candidate, archive: Archive) -> str:
    """The first agent changes all others: DGM without self-improvement, a meta-agent that never changes."""
    return archive.history[0].text


@dataclass
class SelfModify:
    """Roll out: the text of `editor`, the parent's own as a rule, changes the parent, after a diagnosis of failures.

    A change that fails, or changes nothing but the layout, is a candidate that is not valid. Metrics: `unchanged`, the
    share of these, and `entry/NAME`, how many children have come of each kind of diagnosis.
    """

    diagnose: Diagnosis = weaknesses
    editor: Editor = itself

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; those without a parent are the seed program, resumed ones stay as they are."""
        archive, task = archive_of(s.role), programs_of(s.role)
        change = task.world.improve
        assert change is not None
        groups, unwritten = begin_groups(requests, s)
        jobs, calls = [], []
        for place, request, group in unwritten:
            parent = archive.named(request)[0]
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                rng = s.rng("modify", place, i)
                entry, names = self.diagnose(parent.evaluation, rng)
                calls.append(change(parent.text, self.editor(parent, archive), entry, names, int(rng.integers(2**31))))
                jobs.append((group, request, parent, uid, entry))
        found = task.sandbox.run(calls, task.world.limits) if calls else []
        wrong = 0
        for (group, request, parent, uid, entry), outcome in zip(jobs, found, strict=True):
            made = child(uid, request, parent, entry, outcome)
            wrong += "unusable" in made.info
            group.trajectories.append(made)
        if jobs:
            s.log("unchanged", wrong / len(jobs))
            for entry in {job[-1] for job in jobs}:
                s.log(f"entry/{entry}", sum(job[-1] == entry for job in jobs))
        return groups

    def setup(self, role: Role) -> None:
        """A world whose programs can change themselves: `UserError` otherwise."""
        refuse_fixed(role)


def refuse_fixed(role: Role) -> None:
    """`UserError` if the programs of a role's world cannot change themselves."""
    if programs_of(role).world.improve is None:
        raise UserError(
            f"this recipe needs programs that change themselves, and those of {role.task.name} do not; "
            "give --task program:repair or program:swe"
        )


def child(uid: int, request: Request, parent: Candidate, entry: str, outcome: Outcome) -> Trajectory:
    """What came back of a change, with why it is of no use, if it is not."""
    value = outcome.value if isinstance(outcome.value, dict) else {}
    source, note, reason = value.get("source"), str(value.get("note", "")), ""
    if outcome.status == "lost":
        made = written(uid, request, parent.text, "self")
        made.error = f"self-modification: {outcome.error}"
        return made
    if outcome.status != "ok" or not isinstance(source, str):
        reason = f"the agent could not change itself: {value.get('error') or outcome.error or outcome.status}"
    else:
        try:
            if tree_hash(source) == tree_hash(parent.text):
                reason = "the agent changed nothing"
        except (SyntaxError, ValueError, RecursionError) as wrong:
            reason = f"the agent's new text is no program: {wrong}"
    program = source if isinstance(source, str) and not reason else parent.text
    made = written(uid, request, program, "self: " + " ".join(note.split()) if note and not reason else "self")
    made.info["entry"] = entry
    if reason:
        made.info["unusable"] = reason
    return made
