"""Demonstrations instead of samples: the task's own solutions, written out as trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import identifier
from evolvent.core.records import Group, Request, Segment, Trajectory
from evolvent.core.step import Step
from evolvent.models.tokenizer import Format
from evolvent.rollout.sample import opening, turn_ends
from evolvent.tasks.base import Demo


@dataclass
class Demonstrations:
    """One trajectory of each request, with the tokens of the task's gold solution; nothing is sampled.

    Tool replies are not the policy's and are masked out. `info["weights"]`, float32 [T], has the weights of the pieces.
    """

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request, in order."""
        groups = []
        for place, request in enumerate(requests):
            demo = s.role.task.gold(request.problem)
            if demo is None:
                raise UserError(
                    f"the task {s.role.task.name} gives no solution for problem {request.problem.key}, and this recipe "
                    "learns from solutions; give the task a gold(), or use a recipe that samples"
                )
            uid = identifier(s.role.seed, *s.path, s.round, place)
            groups.append(Group(request.problem, [self._write(uid, request, demo, s)]))
        return groups

    def _write(self, uid: int, request: Request, demo: Demo, s: Step) -> Trajectory:
        format = s.role.policy.format
        ends = turn_ends(s.role.task, format)
        prefix, _ = opening(format, request, s.role.task)
        tokens: list[int] = prefix.tolist()
        mask, weights = [False] * len(tokens), [0.0] * len(tokens)
        segments = [Segment("prompt", 0, len(tokens))]
        turns = [(policy, list(pieces)) for policy, pieces in groupby(demo, key=lambda piece: piece.policy)]
        for place, (policy, pieces) in enumerate(turns):
            start = len(tokens)
            for piece in pieces:
                written = format.encode(piece.text) if policy else format.reply(piece.text)
                tokens += written
                weights += [piece.weight if policy else 0.0] * len(written)
            if policy and (place == len(turns) - 1 or tokens[-1] not in ends):
                tokens.append(end_of_turn(format))
                weights.append(1.0)
            mask += [policy] * (len(tokens) - start)
            segments.append(Segment("policy" if policy else "tool", start, len(tokens)))
        return Trajectory(
            uid,
            request.problem,
            np.array(tokens, np.int32),
            np.array(mask),
            np.zeros(len(tokens), np.float32),
            version=s.role.policy.version,
            actor="demonstration",
            segments=tuple(segments),
            completion="".join(piece.text for piece in turns[-1][1]),
            stop="end",
            uses=request.uses,
            info={"weights": np.array(weights, np.float32)},
        )


def end_of_turn(format: Format) -> int:
    """The token that ends a turn of the policy."""
    return getattr(format, "eos", min(format.ends))
