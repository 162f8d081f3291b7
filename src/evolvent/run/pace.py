"""How often a run saves its state."""

from __future__ import annotations

import time

SMALL = 2_000_000  # parameters; up to here a checkpoint is written every step
SHARE = 0.05  # of the time, at most, that checkpoints of larger models may take


class Pace:
    """How often to save: every step for small models, else so rarely that it takes at most `SHARE` of the time."""

    def __init__(self, size: int) -> None:
        self.every_step = size <= SMALL
        self.cost, self.last = 0.0, time.perf_counter()

    def due(self) -> bool:
        """Whether it is time."""
        return self.every_step or time.perf_counter() - self.last > self.cost / SHARE

    def __enter__(self) -> None:
        self.begun = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.last = time.perf_counter()
        self.cost = self.last - self.begun
