"""Regret minimisers that a search has found at 100 iterations, after 1,000 on games held out from it: beside CFR+,
with which the search begins, and DCFR.

    python benchmarks/regret_search.py vad-cfr
    python benchmarks/regret_search.py vad-cfr hill-climbing --seeds 8

The verdict is the protocol's (docs/protocol.md), in digits: -log10 of exploitability, with --delta as the least effect.
What is compared with is the same for every seed, so an interval is that of the search alone. Where eight seeds leave it
open, as many are added once.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from measure import command, environment, results, write

from evolvent.bench.statistics import combine, decide, sign_flip_p
from evolvent.lineage.descent import best_of, text_of
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.worlds.regret import GAMES, SEED, world

SEEDS = 8
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DISCOUNTED = """    regret = regret + r
    return regret * np.where(regret >= 0, t**1.5 / (t**1.5 + 1.0), 0.5)
"""
KNOWN = {
    "CFR+": SEED,
    "DCFR": SEED.replace(
        "    regret = regret + r\n    regret = np.maximum(regret, 0.0)\n    return regret\n", DISCOUNTED
    )
    .replace("    weights = 1.0 * regret\n", "    weights = np.maximum(regret, 0.0)\n")
    .replace("    weight = 1.0 * t\n", "    weight = 1.0 * t**2\n"),
}


def digits(programs: list[str], iterations: int) -> list[dict[str, float]]:
    """-log10 exploitability of programs after so many iterations, by game held out; those solved count as the world
    says. `ValueError` for one that is not valid there."""
    task = ProgramTask(world(str(iterations)))
    with task.sandbox:
        found = task.evaluate(programs, [GAMES["test"]] * len(programs))
    for one in found:
        if one.value is None:
            raise ValueError(one.feedback)
    return [{game: one.metrics[f"instance/{game}"] for game in GAMES["test"]} for one in found]


def searched(recipe: str, budget: str, seed: int, folder: Path) -> str:
    """The program that a search hands out."""
    spec = RunSpec(recipe, "program:regret:100", "none", budget, seed=seed)
    return text_of(best_of(begin(spec, folder, f"{recipe}-{seed}", logs=()).view))


def compared(ours: list[dict[str, float]], other: dict[str, float], delta: float) -> dict[str, Any]:
    """By game and on the mean of all: the difference in digits, its interval, the verdict."""
    rows = {}
    for game in (*other, "mean"):
        one = [sum(x.values()) / len(x) if game == "mean" else x[game] for x in (*ours, other)]
        differences = [x - one[-1] for x in one[:-1]]
        verdict, interval = decide(differences, delta, "superiority")
        rows[game] = {
            "difference": [interval.mean, interval.low, interval.high],
            "verdict": verdict,
            "p_sign_flip": sign_flip_p(differences),
        }
    return rows


def main() -> None:
    """Search, measure, and write `results/regret_search.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+")
    parser.add_argument("--budget", default="160 evaluations")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--delta", type=float, default=0.1, help="least effect in digits, log10 of exploitability")
    args = parser.parse_args()
    os.environ.update(dict.fromkeys(THREADS, "1"))
    where = environment(1)
    known = dict(zip(KNOWN, digits(list(KNOWN.values()), args.iterations), strict=True))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for recipe in args.recipes:
            programs: list[str] = []
            ours: list[dict[str, float]] = []
            for seeds in (range(args.seeds), range(args.seeds, 2 * args.seeds)):
                for seed in seeds:
                    programs.append(searched(recipe, args.budget, seed, Path(name)))
                    ours += digits(programs[-1:], args.iterations)
                    print(f"{recipe}, seed {seed}: {ours[-1]}", flush=True)
                against = {k: compared(ours, other, args.delta) for k, other in known.items()}
                if combine([rows["mean"]["verdict"] for rows in against.values()]) != "inconclusive":
                    break
            same = sum(program == SEED for program in programs)
            found[recipe] = {"digits": ours, "against": against, "seed_program": same, "programs": programs}
    write(
        "regret_search",
        {
            "command": command(),
            "environment": where,
            "budget": args.budget,
            "iterations": args.iterations,
            "delta": args.delta,
            "known": known,
            "recipes": {**results("regret_search").get("recipes", {}), **found},
        },
    )


if __name__ == "__main__":
    main()
