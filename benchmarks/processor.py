"""What processes have used of the processor. Apart from `measure`, which peers' environments import without psutil."""

from __future__ import annotations

from collections.abc import Iterable

import psutil


def seconds_of(processes: Iterable[psutil.Process]) -> float:
    """Processor seconds of processes, and of the children that they have waited for; those that are gone have none."""
    total = 0.0
    for process in processes:
        try:
            t = process.cpu_times()
        except psutil.Error:
            continue
        total += t.user + t.system + t.children_user + t.children_system
    return total
