"""The engine protocol: its unit is a branch of a tree.

    start    one prefill per distinct prefix, then any number of branches; a paused or hinted episode is a longer prefix
    advance  up to k tokens for every live branch, with log-probs and, on request, entropies and top alternatives
    fork / append / stop   what a controller does between two advances

A branch that ends its turn leaves `live`; `append` (a tool's reply) brings it back. That is all that tree rollouts,
look-ahead, pruning, early exit, partial rollouts and hint injection need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Problem, Segment, Trajectory

if TYPE_CHECKING:
    from evolvent.models.decoder import Low, LowRank


@dataclass(frozen=True)
class Noise:
    """Seeded low-rank Gaussian noise on every linear map: W + sign * sigma / sqrt(rank) * A B^T.

    Nothing is stored; both sides draw A and B again from `seed` (EGGROLL, arXiv 2511.16652).
    """

    seed: int
    sign: int
    sigma: float
    rank: int


@dataclass(frozen=True)
class Actor:
    """Who acts: the policy at a version, with an optional low-rank change. `id` names it in trajectories."""

    id: str
    version: int
    low: Noise | LowRank | None = None


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn. Log-probs are those of the full distribution at this temperature, before top-k and top-p.

    temperature 0 is greedy. `ends` are tokens that end a turn. `entropy`, `alternatives` (how many) and `hidden` (the
    state after the final norm that the next token is drawn from) ask for extras.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    ends: frozenset[int] = frozenset()
    entropy: bool = False
    alternatives: int = 0
    hidden: bool = False
    hold: bool = False  # branches that end a turn may go on: a tool replies

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < 100:
            raise UserError(f"the temperature must be at least 0, got {self.temperature}; 1 samples, 0 is greedy")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p must be in (0, 1], got {self.top_p}; 1 switches it off")


class Branch(Protocol):
    """One live or finished continuation. Arrays are read-only views, one entry a token; those that `Sampling` did not
    ask for are None. `hidden` is float32 [width], of a live branch: what its next token is drawn from."""

    index: int  # place in the tree's `branches`
    root: int  # its root's place among the stubs that the tree was started with; a root's own
    uid: int
    problem: Problem
    actor: str
    parent: int | None
    fork_at: int | None
    info: dict[str, Any]  # what controllers note; it becomes the trajectory's

    @property
    def stop(self) -> str: ...

    @property
    def tokens(self) -> np.ndarray: ...
    @property
    def mask(self) -> np.ndarray: ...
    @property
    def logprob(self) -> np.ndarray: ...
    @property
    def entropy(self) -> np.ndarray | None: ...
    @property
    def alternatives(self) -> tuple[np.ndarray, np.ndarray] | None: ...
    @property
    def hidden(self) -> np.ndarray | None: ...
    @property
    def segments(self) -> tuple[Segment, ...]: ...


class Tree(Protocol):
    """Branches under way."""

    @property
    def live(self) -> Sequence[Branch]:
        """Branches that the next `advance` samples for."""
        ...

    @property
    def branches(self) -> Sequence[Branch]:
        """All branches; children come after their parents."""
        ...

    def advance(self, k: int | None = None) -> None:
        """Sample up to `k` tokens (None: until the turn ends) for every live branch."""
        ...

    def fork(self, branch: Branch, uid: int | None = None, at: int | None = None, token: int | None = None) -> Branch:
        """A new live branch with the first `at` tokens of another (None: all of them) and optionally one more.

        `uid` names its noise stream; None makes one from the parent's and the fork's place.
        """
        ...

    def append(self, branch: Branch, tokens: Sequence[int], kind: str = "tool") -> None:
        """Add tokens that the policy did not write, and make the branch live again."""
        ...

    def stop(self, branch: Branch, why: str) -> None:
        """End a branch, or name the reason why one that has left `live` is over."""
        ...


class Engine(Protocol):
    """A way to run a model. `offers` says what it can do; recipes that need more are refused before anything runs.

    Names used in `offers`: tokens, logprobs, fork, append, entropy, alternatives, hidden, adapters, noise.
    """

    offers: frozenset[str]

    def start(
        self,
        stubs: Sequence[Trajectory],
        actors: Mapping[str, Actor],
        sampling: Sampling,
        limits: Sequence[int],
    ) -> Tree:
        """Branches that continue the stubs. `limits` caps the tokens that each may have sampled in all."""
        ...


__all__ = ["Actor", "Branch", "Engine", "Low", "LowRank", "Noise", "Sampling", "Tree"]
