"""What a pool of Ray workers adds to an evaluation on one machine: the same calls in the sandbox and in the pool, in
turns. Two workers each, NumPy loaded, a function that returns its argument, 8 calls a batch.

Processor milliseconds are those of all processes, Ray's own included, which also work when nothing is evaluated.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import psutil
from measure import command, environment, spread, write
from processor import seconds_of

from evolvent.guard.sandbox import Call, Limits, Sandbox
from evolvent.scale.sandboxes import Sandboxes

CALL = Call({"program.py": "def f(x):\n    return x\n"}, "program", "f", (1,))
LIMITS = Limits(seconds=60.0)
BATCH = 8
WARM_UP = 2  # batches that do not count


def batch(box: Sandbox | Sandboxes) -> tuple[float, float]:
    """Milliseconds a call, on the clock and of the processor."""
    me = psutil.Process()
    everybody = [me, *me.children(recursive=True)]
    used, begun = seconds_of(everybody), time.perf_counter()
    outcomes = box.run([CALL] * BATCH, LIMITS)
    seconds = time.perf_counter() - begun
    if any(outcome.status != "ok" for outcome in outcomes):
        raise SystemExit(f"a call failed: {outcomes}")
    return 1000 * seconds / BATCH, 1000 * (seconds_of(everybody) - used) / BATCH


def main() -> None:
    """Measure and write `results/pool.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--dry", action="store_true", help="print only")
    args = parser.parse_args()
    where = environment(1)
    rows: dict[str, list[tuple[float, float]]] = {"sandbox": [], "pool": []}
    with Sandbox(2) as here, Sandboxes(2) as there:
        begun = time.perf_counter()
        there.describe()
        start = time.perf_counter() - begun
        for _ in range(args.times + WARM_UP):
            rows["sandbox"].append(batch(here))
            rows["pool"].append(batch(there))
    found: dict[str, Any] = {"start": round(start, 2)}
    for name, values in rows.items():
        clock, used = zip(*values[WARM_UP:], strict=True)
        found[name] = {"milliseconds": spread(clock), "processor": spread(used)}
        print(f"{name}: {found[name]['milliseconds']['median']:.1f} ms a call, "
              f"{found[name]['processor']['median']:.1f} of the processor")  # fmt: skip
    print(f"the pool's start: {start:.1f} s; load {where['load']}")
    if not args.dry:
        write("pool", {"command": command(), "environment": where, **found})


if __name__ == "__main__":
    main()
