"""What a search takes beside model and evaluator: ours, OpenEvolve, ShinkaEvolve and GEPA in turn.

Each search is a process of its own, with a model that answers at once and an evaluator that loads a program of five
lines and returns a number. Time is taken where all of them pass by: from each answer of the model to the next request,
after the first few.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

import psutil
from measure import environment, spread, write
from processor import seconds_of
from script import scripted
from searches import Job, add_options, evaluated, prepare, pythons, shown, started, versions

from evolvent.guard.sandbox import Sandbox

WARM_UP = 5  # iterations that do not count
PATIENCE = 300  # seconds after which a search is ended
ISOLATION = {
    "openevolve": "one worker process for all candidates, in the namespaces of the search",
    "shinka": "a process for each candidate, in the namespaces of the search",
    "gepa": "none: the process of the search",
}


def taken(name: str, python: str, iterations: int) -> dict[str, float]:
    """One search: milliseconds an iteration, of the model's and of the processor; seconds to the first request."""
    used: list[float] = []

    def look(i: int) -> None:
        if i in (WARM_UP, iterations - 1):
            process = psutil.Process(search.pid)
            used.append(seconds_of([process, *process.children(recursive=True)]))

    with tempfile.TemporaryDirectory(prefix="peers-") as at, scripted(look=look) as model:
        job = Job(python, Path(at), model.server_port, iterations, 10)
        prepare(name, job)
        begun = time.perf_counter()
        search = started(name, job, {})
        try:
            code: object = search.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            code = "none in time"
        finally:
            if search.poll() is None:
                os.killpg(search.pid, signal.SIGKILL)
        *counted, said = evaluated(name, job)
        if code or counted != [iterations] * 2 or len(model.asked) != iterations:
            sys.exit(f"{name}: exit {code}, {counted} evaluated, {len(model.asked)} answers\n{said[-2000:]}")
    own = [model.answered[i] - model.asked[i] for i in range(WARM_UP + 1, iterations - 1)]
    gaps = [model.asked[i + 1] - model.answered[i] for i in range(WARM_UP, iterations - 1)]
    return {
        "milliseconds": 1000 * mean(gaps),
        "longest": 1000 * max(gaps),
        "model": 1000 * mean(own),
        "processor": 1000 * (used[1] - used[0]) / len(gaps),
        "start": model.asked[0] - begun,
    }


def main() -> None:
    """Measure, print and write `results/search_peers.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--dry", action="store_true", help="print only")
    args = parser.parse_args()
    programs = pythons(args)
    where = environment(1)
    with Sandbox() as sandbox:
        isolation = ISOLATION | {"ours": sandbox.describe()}
    print(f"ours in {isolation['ours']}", flush=True)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    for number in range(args.rounds):
        for name, python in programs.items():
            run = taken(name, python, args.iterations)
            runs[name].append(run)
            line = ", ".join(f"{what} {value:.2f}" for what, value in run.items())
            print(f"round {number + 1}, {name}: {line}", flush=True)
    rows: dict[str, Any] = {
        name: {"isolation": isolation[name]} | {what: spread([run[what] for run in found]) for what in found[0]}
        for name, found in runs.items()
    }
    how = {"command": shown(args), "environment": where, "versions": versions(programs)}
    workload = {"rounds": args.rounds, "iterations": args.iterations, "warm_up": WARM_UP}
    if not args.dry:
        write("search_peers", how | {"workload": workload, "rows": rows})


if __name__ == "__main__":
    main()
