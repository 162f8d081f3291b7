"""The few typed records that every part shares.

Data flows one way: a `Problem` becomes `Request`s, a roll-out turns these into `Group`s of `Trajectory`s, judges write
rewards on them, credit turns groups into `Batch`es, learners and stores answer with `Change`s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from evolvent.core.errors import UserError


class Message(NamedTuple):
    """One turn of a conversation. `role` is system, user, assistant or tool."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to solve.

    `key` is the hash of the problem's own data and never rewritten: splits, pooling and leak checks rest on it.
    `data` is what the verifier needs, `category` the difficulty level or type, `task` the name of the task that
    verifies it, and `origin` the artefact that made it (None: the task itself).
    """

    key: str
    prompt: tuple[Message, ...]
    data: Mapping[str, Any]
    category: str = ""
    task: str = ""
    difficulty: float | None = None
    origin: str | None = None


class Segment(NamedTuple):
    """Tokens [start, stop) of a trajectory, written by the prompt, the policy, a tool or a hint."""

    kind: str
    start: int
    stop: int


class Reward(NamedTuple):
    """A named share of a trajectory's score: what it adds, who gave it, and optionally its spread over tokens."""

    value: float
    source: str
    tokens: np.ndarray | None = None


ENDED = {
    "end",
    "env",
}  # stop reasons that are the policy's or the environment's own; all others cut the episode


@dataclass(slots=True)
class Trajectory:
    """What happened in one episode, as one flat token list with streams of the same length.

    tokens   int32   [T]  prompt, policy and tool tokens in order
    mask     bool    [T]  True where the policy produced the token
    logprob  float32 [T]  log-probability under the sampling policy, at the sampling temperature; 0 where not masked
    entropy  float32 [T]  entropy of the sampling distribution, where the engine was asked for it

    `completion` is the decoded text that the policy wrote in its last turn, `stop` why the episode ended (`end`,
    `env`, `length`, `turns`, `pruned`, `paused`, `error`). A failure is kept in `error`, never as a reward.
    """

    uid: int
    problem: Problem
    tokens: np.ndarray
    mask: np.ndarray
    logprob: np.ndarray
    version: int = 0
    actor: str = "policy"
    segments: tuple[Segment, ...] = ()
    completion: str = ""
    stop: str = ""
    temperature: float = 1.0
    parent: int | None = None
    fork_at: int | None = None
    rewards: dict[str, Reward] = field(default_factory=dict)
    error: str | None = None
    uses: tuple[str, ...] = ()
    entropy: np.ndarray | None = None
    alternatives: tuple[np.ndarray, np.ndarray] | None = None  # token ids and log-probs, each [T, k]
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def terminated(self) -> bool:
        """The episode ended by itself (as opposed to `truncated`)."""
        return self.stop in ENDED

    @property
    def truncated(self) -> bool:
        """The episode was cut by a limit or a controller."""
        return not self.terminated

    @property
    def sampled(self) -> int:
        """Number of tokens that the policy produced."""
        return int(self.mask.sum())

    @property
    def turns(self) -> int:
        """Number of the policy's turns."""
        return sum(s.kind == "policy" for s in self.segments)

    def reward(self, name: str, value: float, source: str = "verifier", tokens: np.ndarray | None = None) -> None:
        """Add a named reward; each name once, finite numbers only (`ValueError` otherwise)."""
        if name in self.rewards:
            raise ValueError(f"reward {name!r} was written before, by {self.rewards[name].source}")
        if not np.isfinite(value):
            raise ValueError(f"reward {name!r} from {source} is {value}")
        self.rewards[name] = Reward(float(value), source, tokens)

    @property
    def score(self) -> float:
        """Sum of all named rewards."""
        return sum(r.value for r in self.rewards.values())

    @property
    def outcome(self) -> float:
        """The verifier's strict verdict alone, without shaping (0 if there is none)."""
        reward = self.rewards.get("outcome")
        return reward.value if reward else 0.0


@dataclass(frozen=True, slots=True)
class Request:
    """Ask for `n` trajectories of a problem.

    `memory` goes before the prompt as messages, `hint` is text that counts as already written, `resume` are paused
    trajectories to continue first (they count towards `n`), `uses` names the artefacts that took part.
    """

    problem: Problem
    n: int
    memory: tuple[Message, ...] = ()
    hint: str = ""
    resume: tuple[Trajectory, ...] = ()
    uses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UserError(f"a request needs at least one trajectory, got n={self.n}; raise propose.n")


@dataclass(slots=True)
class Group:
    """The trajectories of one request, all of the same problem."""

    problem: Problem
    trajectories: list[Trajectory]
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def valid(self) -> list[Trajectory]:
        """Those that ran without an error; nothing else may enter an update."""
        return [t for t in self.trajectories if t.error is None]


@dataclass(slots=True)
class Batch:
    """What a learner is told: rows, and a weight for each row or for each of its tokens.

    `weight` is the advantage in policy gradient, +1/-1 for chosen/rejected, 1 in supervised learning, the fitness in
    evolution strategies. float32 [rows], or one array [T_i] a row. `columns` are per-row extras that objectives may
    ask for, `coefficient` multiplies the loss, `name` tells batches apart (`fresh`, `replay`, `pairs`, ...).
    """

    rows: list[Trajectory]
    weight: np.ndarray | list[np.ndarray]
    name: str = "fresh"
    coefficient: float = 1.0
    columns: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for label, values in (("weight", self.weight), *self.columns.items()):
            if len(values) != len(self.rows):
                raise ValueError(f"batch {self.name!r}: {len(values)} values of {label} for {len(self.rows)} rows")

    def take(self, keep: np.ndarray) -> Batch:
        """The rows where `keep` (bool, [rows]) is True, columns with them."""
        index = np.flatnonzero(keep)
        weight = self.weight[index] if isinstance(self.weight, np.ndarray) else [self.weight[i] for i in index]
        columns = {k: v[index] for k, v in self.columns.items()}
        return Batch([self.rows[i] for i in index], weight, self.name, self.coefficient, columns)


@dataclass(frozen=True, slots=True)
class Change:
    """What a store or learner changed: the path of the part, and its version before and after."""

    path: str
    before: int
    after: int
    note: str = ""
