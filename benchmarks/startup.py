"""Seconds until `evolvent --help` has answered, in processes of their own."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from measure import command, environment, spread, write

CALLS = (("--help",), ("list",), ("run", "--help"))


def main() -> None:
    """Measure and write `results/startup.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=11)
    args = parser.parse_args()
    program, where, found = Path(sys.executable).parent / "evolvent", environment(1), {}
    for call in CALLS:
        taken = []
        for _ in range(args.times + 1):
            begun = time.perf_counter()
            subprocess.run([program, *call], check=True, capture_output=True)
            taken.append(time.perf_counter() - begun)
        name = " ".join(["evolvent", *call])
        found[name] = spread(taken[1:])  # the first one reads the files from disk
        print(f"{name}: {found[name]['median']:.2f} s")
    write("startup", {"command": command(), "environment": where, "calls": found})


if __name__ == "__main__":
    main()
