"""Time to accuracy against TRL's GRPOTrainer: the same model, task, hyper-parameters and update rule, three seeds.

Both sides keep their weights every few steps, with the clock stopped. Afterwards one program scores all of them on
the same problems of the gate split. What counts is the training time until the sampled accuracy has risen by RISE.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from material import write_problems
from measure import HERE, child, command, environment, peer, spread, write
from safetensors.torch import load_file

from evolvent.bench.evaluate import Subject
from evolvent.core.ledger import Ledger
from evolvent.engine.local import LocalEngine
from evolvent.models.load import load_policy
from evolvent.tasks.base import distinct
from evolvent.tasks.registry import load_task

RISE = 0.15  # of the sampled accuracy over that of the start model
PROMPTS = 32  # a step
PROBLEMS, SAMPLES = 500, 2  # that score a snapshot


def curve(model: str, task: str, snapshots: Path) -> dict[int, float]:
    """Sampled accuracy by step; step 0 is the start model."""
    policy, ledger = load_policy(model), Ledger()
    made = load_task(task, policy.format.wording)
    problems = distinct(made, "gate", PROBLEMS)
    subject = Subject(policy, LocalEngine(policy, ledger), made, ledger)
    found = {}
    for step, path in [(0, None), *sorted((int(p.stem), p) for p in snapshots.glob("*.safetensors"))]:
        if path is not None:
            policy.set_weights(load_file(path))
        groups = subject.roll(problems, SAMPLES, 1.0, "accuracy")
        found[step] = float(np.mean([t.outcome for g in groups for t in g.valid]))
    return found


def reached(found: dict[int, float], seconds: list[float], level: float) -> tuple[int, float] | None:
    """Step and training seconds of the first snapshot at this accuracy."""
    spent = [0.0, *accumulate(seconds)]
    return next(((step, spent[step]) for step, accuracy in found.items() if accuracy >= level), None)


def settings_of(task: str, rate: float) -> dict[str, Any]:
    """What both sides are told."""
    return {
        "propose.problems": PROMPTS, "propose.n": 8, "rollout.max_tokens": load_task(task).max_tokens, "learn.lr": rate,
        "learn.kl": 0.0, "learn.minibatches": 1, "learn.warmup": 0, "learn.clip_low": 0.2, "learn.clip_high": 0.2,
    }  # fmt: skip


def learn(side: str, seed: int, folder: Path, model: Path, settings: dict[str, Any], args: Any) -> dict[str, Any]:
    """One run of one side, and what came of it."""
    snapshots = folder / f"{side}-{seed}"
    snapshots.mkdir()
    how = {"task": args.task, "seed": seed, "settings": settings, "every": args.every, "snapshots": str(snapshots)}
    options = ["--steps", args.steps, "--learn", json.dumps(how)]
    if side == "ours":
        made = child(sys.executable, HERE / "ours.py", model, *options, threads=args.threads)
    else:
        problems = write_problems(folder / "problems.jsonl", args.task, PROMPTS * args.steps, seed)
        script = HERE / "peers" / "trl_grpo.py"
        made = child(peer(), script, model, problems, *options, "--micro", args.peer_micro, threads=args.threads)
    found = curve(str(model), args.task, snapshots)
    at = reached(found, made["seconds"], found[0] + RISE)
    print(f"seed {seed}, {side}: {found[0]:.2f} to {max(found.values()):.2f}, level reached {at}", flush=True)
    return {
        "curve": found,
        "level": found[0] + RISE,
        "steps": at and at[0],
        "seconds": at and at[1],
        "all_seconds": sum(made["seconds"]),
        "sampled": sum(made["sampled"]),
        "versions": made["versions"],
    }


def main() -> None:
    """Measure and write `results/accuracy.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["tiny-0", "tiny-1", "tiny-2"], help="one for each seed")
    parser.add_argument("--task", default="countdown")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--every", type=int, default=10, help="steps between two snapshots")
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peer-micro", type=int, default=256, help="rows in one training pass of the peer")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    where, settings = environment(args.threads), settings_of(args.task, args.rate)
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        for seed, model in enumerate(args.models):
            copy = Path(name) / f"model-{seed}"
            load_policy(model).save(copy)  # both sides read the same files
            sides = ("ours", "theirs") if seed % 2 == 0 else ("theirs", "ours")
            made = {side: learn(side, seed, Path(name), copy, settings, args) for side in sides}
            runs.append({"seed": seed, "model": Path(model).name, **made})
    both = [r for r in runs if r["ours"]["seconds"] and r["theirs"]["seconds"]]
    ratios = spread([r["ours"]["seconds"] / r["theirs"]["seconds"] for r in both]) if both else None
    workload = {"task": args.task, "steps": args.steps, "rise": RISE, "settings": settings, "problems": PROBLEMS}
    result = {"command": command(), "environment": where, "workload": workload, "runs": runs, "ratios": ratios}
    write("accuracy", result)


if __name__ == "__main__":
    main()
