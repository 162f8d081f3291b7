"""Seconds per training step against TRL's GRPOTrainer, at equal sampled tokens.

    python benchmarks/step.py          completions of 8 to 40 tokens that end by themselves, some groups without signal
    python benchmarks/step.py --full   all completions at full length, all groups with signal

Both sides run in processes of their own, in turn. First the peer is given the choice: it runs at the settings that
are fastest for it of those in PEER.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from material import random_model, write_problems
from measure import HERE, child, command, environment, peer, spread, steady, write
from workload import FLAT, LONGEST, PROMPTS, SAMPLES, SHAPE, SHORTEST, TASK

PEER = (
    {"micro": 256},
    {"micro": 128},
    {"micro": 64},
    {"micro": 32},
    {"micro": 128, "attention": "eager", "products": "medium"},
    {"micro": 64, "attention": "eager", "products": "medium"},
)


def options(settings: dict[str, Any]) -> list[str]:
    """As arguments of the peer's script."""
    return [part for name, value in settings.items() for part in (f"--{name}", str(value))]


def main() -> None:
    """Measure and write `results/step-*.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trial-steps", type=int, default=3, help="with each of the peer's settings")
    args = parser.parse_args()
    where, python = environment(args.threads), peer()
    full = ["--full"] * args.full
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = random_model(folder / "model", SHAPE)
        problems = write_problems(folder / "problems.jsonl", TASK, PROMPTS * args.steps)
        script = HERE / "peers" / "trl_grpo.py"

        def theirs(settings: dict[str, Any], steps: int) -> dict[str, Any]:
            arguments = [model, problems, "--steps", steps, *options(settings), *full]
            return child(python, script, *arguments, threads=args.threads)

        trials = {}
        for settings in PEER:
            trials[" ".join(options(settings))] = steady(theirs(settings, args.trial_steps)["seconds"])
            print(f"peer {settings}: {list(trials.values())[-1]:.2f} s a step", flush=True)
        best = PEER[list(trials.values()).index(min(trials.values()))]
        pairs = []
        for number in range(args.pairs):
            pair: dict[str, Any] = {}
            for side in ("ours", "theirs") if number % 2 == 0 else ("theirs", "ours"):
                if side == "ours":
                    arguments = [model, "--steps", args.steps, *full]
                    pair[side] = child(sys.executable, HERE / "ours.py", *arguments, threads=args.threads)
                else:
                    pair[side] = theirs(best, args.steps)
            same = pair["ours"]["sampled"] == pair["theirs"]["sampled"]
            assert same, "the two sides sampled different numbers of tokens"
            pairs.append(pair)
            print(f"pair {number + 1}: ratio {ratio(pair, 'seconds'):.3f}", flush=True)
    summary = {
        side: {
            "seconds": spread([steady(p[side]["seconds"]) for p in pairs]),
            "rollout": spread([steady(p[side]["rollout"]) for p in pairs]),
            "memory": spread([p[side]["memory"] for p in pairs]),
            "versions": pairs[0][side]["versions"],
        }
        for side in ("ours", "theirs")
    }
    ratios = {
        "seconds": spread([ratio(p, "seconds") for p in pairs]),
        "processor": spread([ratio(p, "processor") for p in pairs]),
        "rollout": spread([ratio(p, "rollout") for p in pairs]),
        "memory": spread([p["ours"]["memory"] / p["theirs"]["memory"] for p in pairs]),
    }
    workload = {
        "shape": SHAPE, "task": TASK, "prompts": PROMPTS, "samples": SAMPLES, "shortest": SHORTEST, "longest": LONGEST,
        "flat": 0 if args.full else FLAT, "full": args.full, "steps": args.steps, "pairs": args.pairs,
        "sampled": sum(pairs[0]["ours"]["sampled"]),
    }  # fmt: skip
    name = "step-full" if args.full else "step-spread"
    result = {"command": command(), "environment": where, "workload": workload, "peer": best, "trials": trials}
    write(name, result | summary | {"ratios": ratios})


def ratio(pair: dict[str, Any], what: str) -> float:
    """Ours over the peer's, of the medians over steps."""
    return steady(pair["ours"][what]) / steady(pair["theirs"][what])


if __name__ == "__main__":
    main()
