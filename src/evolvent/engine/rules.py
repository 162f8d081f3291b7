"""What is the same in every tree, whoever samples the tokens: how branches begin, fork and end, and who wrote what."""

from __future__ import annotations

from typing import Any

from evolvent.core.random import identifier
from evolvent.core.records import Segment, Trajectory
from evolvent.engine.base import Branch

NO_STATES = (
    "this engine gives no hidden states; take a model that runs in this process (a folder or a hub id, without "
    "--engine vllm), or leave out the part that reads them"
)


class Stem:
    """A branch without its tokens: where it comes from, and what in it the policy did not write.

    `root` is its root's place among the stubs; None says that it is a root itself.
    """

    def __init__(self, index: int, stub: Trajectory, root: int | None = None) -> None:
        self.index, self.root = index, index if root is None else root
        self.uid, self.problem, self.actor = stub.uid, stub.problem, stub.actor
        self.parent, self.fork_at = stub.parent, stub.fork_at
        first = stub.segments[0] if stub.segments else None
        self.start: int = first.stop if first is not None and first.kind == "prompt" else len(stub.tokens)
        self.added = [s for s in stub.segments if s.kind not in ("prompt", "policy")]
        self.info: dict[str, Any] = {}  # what controllers note; it becomes the trajectory's

    @property
    def length(self) -> int:
        """Tokens so far, the prefix included."""
        raise NotImplementedError

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Who wrote what, in order."""
        found = [Segment("prompt", 0, self.start)] if self.start else []
        at = self.start
        for mark in [*self.added, Segment("", self.length, self.length)]:
            if mark.start > at:
                found.append(Segment("policy", at, mark.start))
            if mark.kind:
                found.append(mark)
            at = mark.stop
        return tuple(found)


def fork_stub(parent: Branch, at: int | None, uid: int | None, token: int | None, index: int) -> Trajectory:
    """What a fork begins with: the first `at` tokens of its parent (None: all of them), as views.

    `uid` names its noise stream; None makes one from the parent's, the forced token and the fork's place and index.
    """
    segments, length = parent.segments, len(parent.tokens)
    start = next((s.stop for s in segments if s.kind == "prompt"), 0)
    size = length if at is None else at
    if not start <= size <= length:
        raise ValueError(f"cannot fork at {size}: the branch goes from {start} to {length}")
    others = (s for s in segments if s.kind not in ("prompt", "policy") and s.stop <= size)
    return Trajectory(
        identifier(parent.uid, size, token, index) if uid is None else uid,
        parent.problem,
        parent.tokens[:size],
        parent.mask[:size],
        parent.logprob[:size],
        actor=parent.actor,
        segments=(Segment("prompt", 0, start), *others),
        parent=parent.uid,
        fork_at=size,
    )


def ending(token: int | None, ends: frozenset[int], full: bool) -> str:
    """Why a branch is over after its last token (None: it has no new one), or an empty string: it goes on."""
    return "end" if token in ends else "length" if full else ""
