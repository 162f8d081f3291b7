"""Memory that a step has freed, given back to the system.

What sampling and training take in turn would add up otherwise: the allocator of the C library keeps it, in pieces that
do not fit the other's needs.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

from evolvent.run.pace import Pace


class Memory:
    """Gives back what was freed, so rarely that this takes as little time as checkpoints do. Without a model in this
    process (`size` 0), or with another allocator than glibc's, there is nothing to do."""

    def __init__(self, size: int) -> None:
        self.pace, self.release = Pace(size), trimmer() if size else None

    def trim(self) -> None:
        """After a step."""
        if self.release is not None and self.pace.due():
            with self.pace:
                self.release(0)


def trimmer() -> Callable[[int], int] | None:
    """glibc's `malloc_trim`, where the C library has it."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
