"""Searches against plain multistart, at equal seconds of the processor in evaluations; dated known values beside.

    python benchmarks/search_worlds.py hill-climbing --seconds 60 --seeds 8
    python benchmarks/search_worlds.py hill-climbing random-search --worlds circle-packing:26 --dry

Seed by seed, multistart and then each recipe, on one thread. A recipe's values are those of its winner, evaluated anew.
The verdict is the protocol's (docs/protocol.md) with --delta as the least effect: where eight seeds leave it open, as
many are added once (--more adds them to what was measured before).
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import torch
from measure import command, environment, results, write
from multistart import PROBLEMS, multistart

from evolvent.bench.search_cell import SearchCell, run_search
from evolvent.bench.search_metrics import search_metric
from evolvent.bench.statistics import decide, sign_flip_p, t_interval
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task

WORLDS = ("circle-packing:26", "circle-packing:32", "autocorrelation-1:600", "autocorrelation-2:50", "heilbronn:11")
BASE = "multistart"
SEEDS = 8  # as many again where these leave it open
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def measured(place: str, recipes: list[str], seconds: float, seeds: range) -> dict[str, Any]:
    """Final values by arm, seed by seed, and how much each arm tried."""
    task = load_task(f"program:{place}")
    assert isinstance(task, ProgramTask)
    name, _, size = place.partition(":")
    values: dict[str, list[float]] = {arm: [] for arm in (BASE, *recipes)}
    tried: dict[str, list[float]] = {arm: [] for arm in values}
    for seed in seeds:
        found = multistart(task.world, name, int(size), seconds, seed)
        values[BASE].append(found["best"])
        tried[BASE].append(found["starts"])
        for recipe in recipes:
            cell = SearchCell(recipe, recipe, task.name, "none", seed, f"{seconds} verifier_seconds")
            result = run_search(cell)
            values[recipe].append(search_metric("final.rescored", result))
            tried[recipe].append(result["curve"][-1]["evaluations"])
        print(f"{place}, seed {seed}: " + ", ".join(f"{arm} {v[-1]:.8g}" for arm, v in values.items()), flush=True)
    components = [*task.components, PROBLEMS[name].what]
    return {"values": values, "tried": tried, "known": task.world.known, "components": components}


def both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """What two ranges of seeds gave, one after the other."""
    joined = {
        what: {arm: [*first[what][arm], *second[what][arm]] for arm in first[what]} for what in ("values", "tried")
    }
    return {**first, **joined}


def is_open(rows: list[dict[str, Any]]) -> bool:
    """Whether a comparison has no verdict."""
    return any(row.get("verdict") == "inconclusive" for row in rows)


def judged(values: dict[str, list[float]], delta: float) -> list[dict[str, Any]]:
    """One row an arm: mean with its interval, the best of all, and the paired difference to multistart."""
    rows = []
    for arm, mine in values.items():
        row: dict[str, Any] = {"arm": arm, "mean": t_interval(mine).mean, "best": max(mine)}
        if arm != BASE and len(mine) > 1:
            difference = [a - b for a, b in zip(mine, values[BASE], strict=True)]
            verdict, interval = decide(difference, delta, "superiority")
            row |= {"difference": [interval.mean, interval.low, interval.high], "verdict": verdict}
            row |= {"p_sign_flip": sign_flip_p(difference)} if len(mine) <= 16 else {}
        rows.append(row)
    return rows


def show(place: str, found: dict[str, Any]) -> None:
    """The table of one world, and what is known of it."""
    print(f"\n{place}; components: {'; '.join(found['components'])}")
    for row in found["rows"]:
        tried = sum(found["tried"][row["arm"]]) / len(found["tried"][row["arm"]])
        line = f"  {row['arm']:<22} mean {row['mean']:.8g}  best {row['best']:.10g}  {tried:,.0f} starts or evaluations"
        if "difference" in row:
            mean, low, high = row["difference"]
            line += f"  to multistart {mean:+.3g} [{low:+.3g}, {high:+.3g}] {row['verdict']}"
        print(line)
    for value, who, when in found["known"]:
        print(f"  {'known':<22} {value:.10g}  {who}, {when}")


def main() -> None:
    """Measure, and write each world into `results/search_worlds.json` when it is done; the others there stay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="*", default=["hill-climbing"])
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS), help="names and sizes")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the processor, for every arm and seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--more", action="store_true", help="go on with the worlds that eight seeds have left open")
    parser.add_argument("--delta", type=float, default=1e-4, help="the least effect that counts")
    parser.add_argument("--dry", action="store_true", help="print only")
    args = parser.parse_args()
    if any(os.environ.get(name) != "1" for name in THREADS):  # they are read when NumPy is loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict.fromkeys(THREADS, "1"))
    torch.set_num_threads(1)
    about = {"command": command(), "environment": environment(1), "seconds": args.seconds, "delta": args.delta}
    for place in args.worlds:
        found = results("search_worlds").get(place) if args.more else None
        if found is None:
            found = {**about, **measured(place, args.recipes, args.seconds, range(args.seeds))}
            found["rows"] = judged(found["values"], args.delta)
        if is_open(found["rows"]) and len(found["values"][BASE]) == SEEDS:
            recipes = [arm for arm in found["values"] if arm != BASE]
            found = both(found, measured(place, recipes, found["seconds"], range(SEEDS, 2 * SEEDS)))
            found |= {"rows": judged(found["values"], found["delta"]), "more": about}
        show(place, found)
        if not args.dry:
            write("search_worlds", {**results("search_worlds"), place: found})


if __name__ == "__main__":
    main()
