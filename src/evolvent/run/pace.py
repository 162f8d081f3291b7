"""How often a run saves its state."""

from __future__ import annotations

import time

SHARE = 0.01  # of the time, at most, that checkpoints of a model may take
LONGEST = 300.0  # seconds without a checkpoint, whatever its share


class Pace:
    """How often to save. Where there is no model in this process every step, since calls may have been paid for in it;
    else so rarely that it takes at most `SHARE` of the time, which is every second or two for the seed models."""

    def __init__(self, size: int) -> None:
        self.every_step = size == 0
        self.cost, self.last = 0.0, time.perf_counter()

    def due(self) -> bool:
        """Whether it is time."""
        return self.every_step or time.perf_counter() - self.last > min(self.cost / SHARE, LONGEST)

    def __enter__(self) -> None:
        self.begun = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.last = time.perf_counter()
        self.cost = self.last - self.begun
