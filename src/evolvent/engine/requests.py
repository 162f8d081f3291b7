"""The tree for engines that answer whole requests: an advance is one request for each live branch.

An engine says how requests are answered (`RequestTree.ask`); everything else, what a branch is and when it ends, is
here. Behind it: endpoints, vLLM, and the simulated model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Segment, Trajectory
from evolvent.engine.base import Branch, Sampling
from evolvent.engine.rules import NO_STATES, Stem, ending, fork_stub

Alternatives = tuple[np.ndarray, np.ndarray]


@dataclass(slots=True)
class Answer:
    """What came back for one branch.

    tokens   int32 [n] that the policy wrote; logprob float32 [n], nan where unknown
    used     tokens to count against the branch's limit, in the unit of that limit
    stop     `end`, `length` (a limit of the model was reached), `error`, or empty: there is more to come
    info     joins the trajectory's `info`; numbers under a name that is there already are added up
    """

    tokens: np.ndarray
    logprob: np.ndarray
    used: int
    stop: str = ""
    error: str | None = None
    info: dict[str, Any] = field(default_factory=dict)
    alternatives: Alternatives | None = None


class RequestBranch(Stem):
    """A branch of a `RequestTree`, with arrays of its own."""

    entropy = None
    hidden = None

    def __init__(self, index: int, stub: Trajectory, limit: int, root: int | None = None) -> None:
        super().__init__(index, stub, root)
        self.tokens, self.mask, self.logprob = stub.tokens, stub.mask, stub.logprob
        self.alternatives: Alternatives | None = None
        self.limit, self.used = limit, int(stub.info.get("completion_tokens", stub.mask.sum()))
        self.stop, self.over = "", False
        self.error: str | None = None
        # what an earlier part of the episode used goes on counting
        counts = ("prompt_tokens", "completion_tokens")
        self.info = {k: stub.info[k] for k in counts if k in stub.info}

    @property
    def length(self) -> int:
        """Tokens so far, the prefix included."""
        return len(self.tokens)

    def grow(self, tokens: np.ndarray, logprob: np.ndarray, policy: bool, top: Alternatives | None = None) -> None:
        """Add tokens at the end."""
        count = len(tokens)
        self.tokens = np.concatenate([self.tokens, tokens]).astype(np.int32, copy=False)
        self.mask = np.concatenate([self.mask, np.full(count, policy)])
        self.logprob = np.concatenate([self.logprob, logprob]).astype(np.float32, copy=False)
        if self.alternatives is not None:
            width = self.alternatives[0].shape[1]
            if top is None:
                top = np.zeros((count, width), np.int32), np.zeros((count, width), np.float32)
            ids, values = self.alternatives
            self.alternatives = np.concatenate([ids, top[0]]), np.concatenate([values, top[1]])


class RequestTree:
    """See `engine.base.Tree` for what each method means."""

    def __init__(self, stubs: Sequence[Trajectory], sampling: Sampling, limits: Sequence[int]) -> None:
        if sampling.hidden:
            raise UserError(NO_STATES)
        self.sampling = sampling
        self.branches = [RequestBranch(i, s, int(n)) for i, (s, n) in enumerate(zip(stubs, limits, strict=True))]
        for branch, stub in zip(self.branches, stubs, strict=True):
            if sampling.alternatives:
                shape = (branch.length, sampling.alternatives)
                branch.alternatives = stub.alternatives or (np.zeros(shape, np.int32), np.zeros(shape, np.float32))
            if branch.used >= branch.limit:
                self._end(branch, "length")

    def ask(self, branches: Sequence[RequestBranch], limits: Sequence[int]) -> Sequence[Answer]:
        """Answers for live branches, each of at most so many tokens. An engine's own part."""
        raise NotImplementedError

    @property
    def live(self) -> list[RequestBranch]:
        """Branches that the next `advance` asks for."""
        return [b for b in self.branches if not b.over]

    def advance(self, k: int | None = None) -> None:
        """One request for each live branch, of at most `k` tokens (None: until the turn ends)."""
        live = self.live
        if not live:
            return
        limits = [b.limit - b.used if k is None else min(k, b.limit - b.used) for b in live]
        for branch, answer in zip(live, self.ask(live, limits), strict=True):
            branch.grow(answer.tokens, answer.logprob, True, answer.alternatives)
            branch.used += answer.used
            for name, value in answer.info.items():
                number = isinstance(value, int | float) and not isinstance(value, bool)
                branch.info[name] = branch.info.get(name, 0) + value if number else value
            branch.error = answer.error
            if answer.stop or branch.used >= branch.limit:
                self._end(branch, answer.stop or "length")

    @staticmethod
    def _end(branch: RequestBranch, why: str) -> None:
        branch.stop, branch.over = why, True

    def stop(self, branch: Branch, why: str) -> None:
        """End a branch, or name the reason why one that has left `live` is over."""
        self._end(self.branches[branch.index], why)

    def append(self, branch: Branch, tokens: Sequence[int], kind: str = "tool") -> None:
        """Add tokens that the policy did not write; the branch is live again unless its limit is reached."""
        own = self.branches[branch.index]
        if own.used >= own.limit:
            self._end(own, "length")
            return
        at = own.length
        if len(tokens):
            own.grow(np.array(tokens, np.int32), np.zeros(len(tokens), np.float32), False)
            own.added.append(Segment(kind, at, own.length))
        own.stop, own.over = "", False

    def fork(
        self, branch: Branch, uid: int | None = None, at: int | None = None, token: int | None = None
    ) -> RequestBranch:
        """A new live branch that shares the first `at` tokens with another and may be forced to go on with `token`."""
        parent, index = self.branches[branch.index], len(self.branches)
        stub = fork_stub(parent, at, uid, token, index)
        size = len(stub.tokens)
        forced = self.forced(parent, size, token) if token is not None else None
        new = RequestBranch(index, stub, parent.limit, parent.root)
        if parent.alternatives is not None:
            new.alternatives = parent.alternatives[0][:size], parent.alternatives[1][:size]
        written = int(parent.mask.sum())
        new.used = math.ceil(parent.used * int(new.mask.sum()) / written) if written else 0
        if token is not None:
            new.grow(np.array([token], np.int32), np.array([forced], np.float32), True)
            new.used += 1
        self.branches.append(new)
        if why := ending(token, self.sampling.ends, new.used >= new.limit):
            self._end(new, why)
        return new

    def forced(self, parent: RequestBranch, at: int, token: int) -> float:
        """Log-prob of a token that a fork is forced to go on with; nan where the engine cannot know it."""
        return float("nan")
