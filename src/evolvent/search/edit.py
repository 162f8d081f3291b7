"""Variation by a small policy in this process: it samples edits of the parent in a restricted language.

What it samples are ordinary trajectories, with tokens and log-probs, so that it can be trained on what comes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from evolvent.core.errors import UserError
from evolvent.core.random import stream
from evolvent.core.ranges import Count, Positive, Whole
from evolvent.core.records import Group, Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.text import FixedPolicy
from evolvent.learn.forward import padded, token_logprobs
from evolvent.rollout.sample import Sample
from evolvent.search.archive import archive_of
from evolvent.search.loop import given, programs_of
from evolvent.search.variation.edits import EditError
from evolvent.search.variation.language import apply, drawn, listing, menu, places
from evolvent.search.vary import Vary
from evolvent.tasks.base import key_of, one_user

PROGRAMS = 128  # that the examples of the warm-up are edits of
LARGEST = 24  # statements of such a program


@dataclass
class Short(Sample):
    """`Sample`, with room for four edits."""

    max_tokens: Count | None = 13


@dataclass
class Edit:
    """Roll out: the policy writes edits in the language of `search.variation.language`, `n` of each parent.

    The prompt is the parent's value and what its statements are; the world itself has no other words here, since a
    model of characters reads none. Models that ship with the package have never seen the language: before the first
    step they imitate `warmup` batches of `batch` random edits of random programs, which are not evaluated. A policy
    that did so writes edits that can mostly be applied, and none of them rather than another.

    rate  learning rate of the warm-up, by AdamW, falling to 0
    """

    warmup: Whole = 120
    batch: Count = 16
    rate: Positive = 3e-3
    inner: Any = Short

    def setup(self, role: Role) -> None:
        """The warm-up, where a policy writes in the language. A resumed run loads its weights afterwards."""
        if writes_edits(role):
            task = programs_of(role)
            self.menu = menu(task.components, task.seed_program)
            if self.warmup:
                imitate(role, self._examples(role), self.warmup, self.batch, self.rate)

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; those without a parent are the seed program, resumed ones go on where they were
        paused and else stay as they are."""
        archive, asks = archive_of(s.role), list[Request]()
        for place, request in enumerate(requests):
            if made := given(request, place, s):
                asks.append(Request(made[0].problem, len(made), resume=tuple(made)))
            else:
                parent = archive.named(request)[0]
                asks.append(Request(self.problem(parent.text, parent.value, s.role), request.n, uses=request.uses))
        groups: list[Group] = self.inner(asks, s)
        for t in (t for group in groups for t in group.trajectories if "program" not in t.info):
            read(t, archive.history[int(t.uses[0])].text, self.menu)
        return groups

    def problem(self, program: str, value: float, role: Role) -> Problem:
        """To edit a program, as a problem: what a policy is shown of it."""
        task = programs_of(role)
        head = f"{value:.3f}"
        answer = self.inner.max_tokens or Short.max_tokens or 0
        room = role.policy.context - answer - len(head) - 2  # <bos> and the newline
        text = head + listing(program, self.menu, room) + "\n"
        return Problem(key_of("edit", [task.name, text]), one_user(text), {}, task.name, task.name)

    def _examples(self, role: Role) -> list[Trajectory]:
        """Random edits of programs that random edits have made of the seed program; their values are made up."""
        rng = stream(role.seed, "edit", "warmup")
        pool, found = [programs_of(role).seed_program], []
        for uid in range(2 * PROGRAMS):
            program = pool[int(rng.integers(len(pool)))]
            if answer := drawn(program, self.menu, rng):
                found.append(example(uid, self.problem(program, float(rng.normal()), role), answer, role))
                made = apply(program, answer, self.menu)
                if len(pool) < PROGRAMS and sound(made):
                    pool.append(made)
        if not found:
            raise UserError("the seed program has no statement that could be edited; put some inside its EVOLVE block")
        return found


def writes_edits(role: Role) -> bool:
    """Whether the role's policy is one of characters in this process, which is too small for Python."""
    return not isinstance(role.policy, FixedPolicy) and role.policy.format.wording == "compact"


def read(t: Trajectory, parent: str, choices: Sequence[str]) -> None:
    """Note in a sampled trajectory the program that its edits make of the parent, or why there is none."""
    t.info |= {"operator": "edit", "program": "", "notes": {"edit": t.completion}}
    try:
        t.info["program"] = apply(parent, t.completion, choices)
    except EditError as reason:
        t.info["unusable"] = str(reason)


def sound(program: str) -> bool:
    """Whether it is Python, and short enough to be shown."""
    try:
        return 0 < len(places(program)) <= LARGEST
    except SyntaxError:
        return False


def example(uid: int, problem: Problem, answer: str, role: Role) -> Trajectory:
    """An answer that a rule wrote, as a trajectory to imitate: prompt, answer and end."""
    format: Any = role.policy.format
    prompt = format.prompt(problem.prompt)
    written = [*format.encode(answer), format.eos]
    mask = np.arange(len(prompt) + len(written)) >= len(prompt)
    return Trajectory(uid, problem, np.array(prompt + written, np.int32), mask, np.zeros(len(mask), np.float32))


def imitate(role: Role, rows: Sequence[Trajectory], steps: int, batch: int, rate: float) -> None:
    """Maximum likelihood on the rows, `batch` of them a step, by AdamW at a rate that falls to 0: one new version.

    Draws depend on the role's seed only; the tokens are charged as trained.
    """
    policy, rng = role.policy, stream(role.seed, "edit", "imitate")
    policy.activate(role.adapter)
    parameters = list(policy.trainable(role.adapter).values())
    optimizer = torch.optim.AdamW(parameters, rate, weight_decay=0.0)
    for step in range(steps):
        chosen = [rows[i] for i in rng.integers(len(rows), size=batch).tolist()]
        tokens, mask, _, heat = padded(chosen, policy.format.pad, policy.device)
        loss = -token_logprobs(policy, tokens, mask, heat)[0].sum() / mask.sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / steps)
        optimizer.step()
        role.ledger.charge(trained=sum(len(t.tokens) for t in chosen))
    policy.bump()


@dataclass
class VaryOrEdit(Vary):
    """Roll out: a model of characters `edit`s the parent, any other model `write`s, and without one rules `mutate`."""

    edit: Any = Edit

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; those without a parent are the seed program."""
        return self.edit(requests, s) if writes_edits(s.role) else super().__call__(requests, s)
