"""One step of one role, and what its parts are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from evolvent.core.random import stream
from evolvent.core.records import Batch, Change, Group, Request, Trajectory

if TYPE_CHECKING:
    from evolvent.core.role import Role
    from evolvent.engine.base import Actor


@dataclass
class Step:
    """Alive for one step; what must outlast it belongs to a part with `state_dict`.

    groups are all of the step, `fresh` those of the present round, `pending` the members of groups that are not
    complete. `controls` are controllers of branches (see `rollout.sample.Control`) that act beside the roll-out's own:
    what is put around a roll-out adds itself there.
    """

    t: int
    role: Role
    actors: list[Actor] = field(default_factory=list)
    round: int = 0
    groups: list[Group] = field(default_factory=list)
    fresh: list[Group] = field(default_factory=list)
    pending: list[Trajectory] = field(default_factory=list)
    controls: list[Any] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    parent: Step | None = None
    label: str = ""

    def rng(self, *path: object) -> np.random.Generator:
        """A generator that depends on the seed, the role, the step, the round and `path` only."""
        return stream(self.role.seed, *self.path, self.round, *path)

    @property
    def path(self) -> tuple[object, ...]:
        """What tells this step's randomness from any other's."""
        above = self.parent.path if self.parent else ()
        return (*above, self.role.name, self.label, self.t)

    def child(self, role: Role, actors: list[Actor], label: str) -> Step:
        """A step inside this one, for another role's `act` or for a probe; its draws are its own."""
        return Step(self.t, role, actors, parent=self, label=label)

    def log(self, name: str, value: float) -> None:
        """Record a number of this step under a name."""
        self.metrics[name] = float(value)


@runtime_checkable
class Propose(Protocol):
    """What to work on. A generator: each yield is one round, rolled out and judged before it resumes (`s.fresh`)."""

    def __call__(self, s: Step) -> Iterator[list[Request]]: ...


@runtime_checkable
class RollOut(Protocol):
    """Act. Complete groups come back; all members of the others go to `s.pending`."""

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]: ...


@runtime_checkable
class Judge(Protocol):
    """Turn what happened into named rewards, or into `trajectory.error`."""

    def __call__(self, groups: Sequence[Group], s: Step) -> None: ...


@runtime_checkable
class Credit(Protocol):
    """Turn judged groups into what is learned from."""

    def __call__(self, s: Step) -> list[Batch]: ...


@runtime_checkable
class Keep(Protocol):
    """Retain what is worth it; may append replayed batches to `s.batches`."""

    def __call__(self, s: Step) -> list[Change]: ...


@runtime_checkable
class Learn(Protocol):
    """Change what evolves: `ask` names the actors of the step, `tell` learns from the batches."""

    def ask(self, s: Step) -> list[Actor]: ...
    def tell(self, batches: Sequence[Batch], s: Step) -> list[Change]: ...


@runtime_checkable
class Gate(Protocol):
    """Accept the step's changes, or take them back; True also when there is nothing to judge."""

    def __call__(self, s: Step) -> bool: ...


@runtime_checkable
class Turns(Protocol):
    """Which roles step, and in which order, in step t."""

    def __call__(self, roles: Sequence[str], t: int) -> list[str]: ...


Part = Any  # anything that a plan builds; optional: setup(role), check(system), observe(s), state_dict, load_state_dict
