"""A buffer of the policy's own successes, replayed when it is full."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Change, Trajectory
from evolvent.core.step import Step


@dataclass
class Replay:
    """Keeps trajectories with A > 0 and a tool call; a full buffer becomes one more batch, and is emptied (SPEAR,
    arXiv 2509.22601).

        A_replay = R - median of the mean scores of past groups;  only rows with A_replay > 0 are replayed
        total loss = loss of fresh rows + gamma(t) loss of replayed rows,  gamma = (1 - cos(pi t / warmup)) / 2, then 1

    capacity  trajectories; the oldest leave first
    max_age   steps after which a trajectory is dropped
    history   mean scores of groups that the median is taken of, the latest ones

    A step's own trajectories are stored after it replays. (When to replay is taken from the released code, which waits
    for 1.5 times the capacity and counts only rows with A_replay > 0.)
    """

    capacity: int = 2048
    max_age: int = 10
    history: int = 10240
    warmup: int = 200
    stored: list[tuple[Trajectory, int]] = field(default_factory=list, init=False)
    means: list[float] = field(default_factory=list, init=False)

    def check(self, system: object) -> None:
        """Sizes in range."""
        for name in ("capacity", "max_age", "history"):
            if getattr(self, name) < 1:
                raise UserError(f"keep.{name} must be at least 1, got {getattr(self, name)}")
        if self.warmup < 0:
            raise UserError(
                f"keep.warmup must be at least 0 steps, got {self.warmup}; 0 replays in full from the start"
            )

    def __call__(self, s: Step) -> list[Change]:
        """Replay if it is time, then store. Metrics `replay/stored`, `replay/rows` and `replay/gamma`."""
        self.stored = [(t, step) for t, step in self.stored if s.t - step <= self.max_age]
        gamma = ramp(s.t, self.warmup)
        replayed = self.replay(gamma)
        self.store(s)
        s.log("replay/gamma", gamma)
        s.batches += replayed
        s.log("replay/rows", sum(len(b.rows) for b in replayed))
        s.log("replay/stored", len(self.stored))
        return []

    def replay(self, coefficient: float) -> list[Batch]:
        """The buffer as a batch, if it is full; it is empty afterwards."""
        if len(self.stored) < self.capacity or not self.means:
            return []
        rows = [trajectory for trajectory, _ in self.stored]
        self.stored = []
        advantage = np.array([x.score for x in rows]) - np.median(self.means)
        keep = advantage > 0
        if not keep.any() or not coefficient:
            return []
        return [Batch(rows, advantage.astype(np.float32), "replay", coefficient).take(keep)]

    def store(self, s: Step) -> None:
        """Remember the step's groups, and its good trajectories."""
        self.means += [float(np.mean([t.score for t in g.valid])) for g in s.groups if g.valid]
        self.means = self.means[-self.history :]
        for batch in s.batches:
            if batch.name == "fresh":
                good = [t for t, w in zip(batch.rows, batch.weight, strict=True) if np.mean(w) > 0]
                self.stored += [(t, s.t) for t in good if t.info.get("calls", 0) > 0]
        self.stored = self.stored[-self.capacity :]

    def state_dict(self) -> dict[str, Any]:
        """Buffer and history."""
        return {
            "rows": [t for t, _ in self.stored],
            "steps": [step for _, step in self.stored],
            "means": np.array(self.means, np.float64),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.stored = list(zip(state["rows"], state["steps"], strict=True))
        self.means = [float(m) for m in state["means"]]


def ramp(t: int, steps: int) -> float:
    """(1 - cos(pi t / steps)) / 2 up to t = steps, then 1."""
    return 1.0 if t >= steps else (1 - math.cos(math.pi * t / steps)) / 2
