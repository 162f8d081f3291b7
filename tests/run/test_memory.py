"""Memory that was freed goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evolvent.run.memory import Memory, trimmer

PROGRAM = """
import sys
from evolvent.run.memory import Memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

pieces = [bytes(100_000) for _ in range(2_000)]
keep = pieces[::50] + [bytes(100_000)]
del pieces
before = resident()
memory = Memory(int(sys.argv[1]))
memory.trim()
print(before - resident())
"""


@pytest.mark.skipif(trimmer() is None, reason="another allocator")
@pytest.mark.parametrize(("size", "least", "most"), [(1, 100e6, 300e6), (0, -1e6, 1e6)])
def test_what_was_freed_between_what_is_held(size: int, least: float, most: float) -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM, str(size)], capture_output=True, text=True, check=True)
    assert least <= float(found.stdout) <= most


def test_it_is_not_done_all_the_time() -> None:
    calls: list[int] = []
    memory = Memory(1)
    memory.release = calls.append  # type: ignore[assignment]
    for _ in range(1000):
        memory.trim()
    assert 1 <= len(calls) < 1000
