"""Milliseconds per call in the sandbox: a function that returns its argument, NumPy loaded, one call at a time."""

from __future__ import annotations

import argparse
import time

from measure import command, environment, spread, write

from evolvent.core.errors import UserError
from evolvent.guard.cage import CAGES, installed
from evolvent.guard.sandbox import Call, Sandbox, trial

CALL = Call({"program.py": "def f(x):\n    return x\n"}, "program", "f", (1,))
WARM_UP = 5  # calls that do not count


def works(kind: str) -> bool:
    """Whether there is such a sandbox here."""
    if kind == "none":
        return True
    try:
        with trial(kind) as sandbox:
            return installed(kind) and sandbox.run([CALL])[0].status == "ok"
    except UserError:
        return False


def taken(kind: str, times: int) -> dict[str, object]:
    """Milliseconds of each call, and of the start of the server."""
    with Sandbox(kind=kind, unsafe=kind == "none") as sandbox:
        begun = time.perf_counter()
        protection = sandbox.describe()
        started = time.perf_counter() - begun
        found = []
        for _ in range(times + WARM_UP):
            begun = time.perf_counter()
            [outcome] = sandbox.run([CALL])
            found.append(1000 * (time.perf_counter() - begun))
            if outcome.status != "ok":
                raise SystemExit(f"{kind}: {outcome}")
    return {"protection": protection, "start": round(1000 * started, 1), "milliseconds": spread(found[WARM_UP:])}


def main() -> None:
    """Measure and write `results/sandbox.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--dry", action="store_true", help="print only")
    args = parser.parse_args()
    where, kinds = environment(1), {}
    for kind in CAGES:
        if works(kind):
            kinds[kind] = taken(kind, args.times)
            print(f"{kind}: {kinds[kind]['milliseconds']['median']:.1f} ms a call")  # type: ignore[index]
    if not args.dry:
        write("sandbox", {"command": command(), "environment": where, "kinds": kinds})


if __name__ == "__main__":
    main()
