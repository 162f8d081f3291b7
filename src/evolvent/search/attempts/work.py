"""Attempts at a bug: by a model in an episode of several turns, or by the scripted agent; and what judges them.

An attempt's strategy is its request's memory: a message that goes before the bug.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.random import identifiers
from evolvent.core.records import Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.rollout.sample import Sample
from evolvent.search.attempts.strategy import Toolbox
from evolvent.search.attempts.summary import Made
from evolvent.search.loop import written
from evolvent.tasks.worlds.repair.patches import Patches, script, tools


def bugs_of(role: Role) -> Patches:
    """The role's task, which has to be one of bugs: `UserError` otherwise."""
    if isinstance(role.task, Patches):
        return role.task
    raise UserError(
        f"this recipe makes attempts at one bug after the other, and {role.task.name} has none; "
        "give --task program:patches:40"
    )


@dataclass
class Scripted:
    """Roll out: the scripted agent, where there is no model. Of an attempt without a strategy it draws one.

    runs   of one visible test, for an attempt
    each   operators of an attempt, of 19
    habit  how alike attempts without a strategy are: p ~ rank^-habit of operators; 0 is not at all
    """

    runs: int = 40
    each: int = 4
    habit: float = 1.0

    def setup(self, role: Role) -> None:
        """A task of bugs, at least one run and one operator."""
        bugs_of(role)
        if self.runs < 1 or self.each < 1 or self.habit < 0:
            raise UserError(
                "rollout.mutate.runs and .each must be at least 1 and .habit at least 0, "
                f"got {self.runs}, {self.each} and {self.habit}"
            )

    @property
    def box(self) -> Toolbox:
        """What strategies are drawn from."""
        return Toolbox(tuple(tools()), self.each, self.habit)

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request."""
        task, groups, jobs = bugs_of(s.role), [], []
        for place, request in enumerate(requests):
            groups.append(Group(request.problem, []))
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                rng = s.rng("attempt", place, i)
                text = request.memory[0].content if request.memory else self.box.base(rng).text()
                jobs.append((groups[-1], request, uid, json.loads(text), str(int(rng.integers(2**31)))))
        rows = [(request.problem.data["bug"], strategy, seed) for _, request, _, strategy, seed in jobs]
        before = time.process_time()
        outcomes = task.sandbox.run([script([row], self.runs) for row in rows], task.world.limits)
        cpu = sum(outcome.cpu for outcome in outcomes)
        task.cpu_seconds += cpu
        s.role.ledger.charge(verifier_seconds=cpu + time.process_time() - before)
        for (group, request, uid, strategy, _), outcome in zip(jobs, outcomes, strict=True):
            t = written(uid, request, "", "scripted")
            row = outcome.value[0] if isinstance(outcome.value, list) and outcome.value else {}
            if outcome.status == "lost" or not isinstance(row.get("patch"), str):
                t.error = f"attempt: {outcome.error or row.get('error') or outcome.status}"
            else:
                tried = tuple((str(d), str(o), int(line), int(passed)) for d, o, line, passed in row["tried"])
                left = 1.0 - row["runs"] / self.runs
                t.info["made"] = Made(row["patch"], left, strategy, tried, int(row["offered"]))
            group.trajectories.append(t)
        return groups


@dataclass
class Episodes:
    """Roll out: a model works at the bug for up to `turns` turns, and is told after each which visible tests fail.

    The patch is what passed most of them, the first of equals.
    """

    turns: int = 4
    inner: Any = Sample

    def setup(self, role: Role) -> None:
        """A task of bugs, which gets to know how many turns there are."""
        if self.turns < 1:
            raise UserError(f"rollout.write.turns must be at least 1, got {self.turns}")
        bugs_of(role).max_turns = self.turns

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request."""
        groups: list[Group] = self.inner(requests, s)
        for group in groups:
            source = bugs_of(s.role).source(group.problem)
            for t in group.valid:
                handed = t.info.get("handed") or [(source, 0)]
                patch, _ = max(handed, key=lambda pair: pair[1])
                trace = "\n\n".join(f"Handed in, {passed} visible tests pass:\n{text}" for text, passed in handed)
                t.info["made"] = Made(patch, 1.0 - t.turns / self.turns, trace=trace or t.completion)
        return groups


@dataclass
class Shown:
    """Judge: visible tests decide, and nothing else; the reward `value` is the share that the patch passes.

    Each attempt is one evaluation of the budget. `info["visible"]` says which tests pass. An attempt whose tests could
    not be run is an error.
    """

    evaluates: ClassVar = True  # programs, not answers

    def setup(self, role: Role) -> None:
        """A task of bugs, and a sandbox that works."""
        _ = bugs_of(role).sandbox

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Run the visible tests of what the round has made."""
        task, rows = bugs_of(s.role), [t for g in groups for t in g.valid]
        before = task.cpu_seconds + time.process_time()
        try:
            found = task.visible([(t.problem.data["bug"], t.info["made"].patch) for t in rows])
        except VerifierError as reason:
            found = []
            for t in rows:
                t.error = f"visible tests: {reason}"
        spent = task.cpu_seconds + time.process_time() - before
        s.role.ledger.charge(verifier_calls=len(rows), verifier_seconds=spent)
        for t, visible in zip(rows, found, strict=False):
            t.info["visible"] = visible
            t.reward("value", sum(visible) / len(visible), task.name)
