"""What the loop itself takes, and how far sampling and training are from the processor's product rate.

Overhead is the share of a step that is neither sampling, nor verifying, nor training: problems, prompts, records,
credit, metrics, ledger, store and checkpoint. Rates count the multiplications and additions of the linear maps (two
for each weight and token; six in training), over the best rate that a product of two large matrices reaches here.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from material import model_of
from measure import Clock, command, environment, spread, steady, write
from ours import speed_run
from workload import SHAPE

from evolvent.core.ledger import Ledger
from evolvent.core.records import Trajectory
from evolvent.engine.base import Actor, Engine, Sampling, Tree
from evolvent.lineage.store import Store
from evolvent.models.policy import Policy
from evolvent.models.products import available, exact
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import Progress, Session
from evolvent.run.spec import RunSpec

SIZES = (256, 512, 1024, 2048)  # of the square matrices
TASK = "countdown:3x20"


class Timed:
    """An engine, and the seconds that it and its trees have taken."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.offers, self.seconds = engine, engine.offers, 0.0

    def start(
        self, stubs: Sequence[Trajectory], actors: Mapping[str, Actor], sampling: Sampling, limits: Sequence[int]
    ) -> Tree:
        """See `Engine.start`."""
        tree = self._timed(self.engine.start)(stubs, actors, sampling, limits)
        tree.advance = self._timed(tree.advance)
        return tree

    def _timed(self, call: Any) -> Any:
        def timed(*args: Any) -> Any:
            begun = time.perf_counter()
            try:
                return call(*args)
            finally:
                self.seconds += time.perf_counter() - begun

        return timed


def product_rates() -> dict[str, float]:
    """Multiplications and additions a second of the fastest product of two square float32 matrices, by setting."""
    settings = ("highest", "medium") if available() and exact() else ("highest",)
    found = dict.fromkeys(settings, 0.0)
    before = torch.get_float32_matmul_precision()
    for setting in settings:
        torch.set_float32_matmul_precision(setting)
        for size in SIZES:
            a, b = torch.randn(size, size), torch.randn(size, size)
            for _ in range(5):
                begun = time.perf_counter()
                a @ b
                found[setting] = max(found[setting], 2 * size**3 / (time.perf_counter() - begun))
    torch.set_float32_matmul_precision(before)
    return found


def weights_of(policy: Policy) -> tuple[int, int]:
    """Weights of the linear maps, and of the head, which only tokens that are predicted go through."""
    inner = sum(p.numel() for n, p in policy.model.named_parameters() if n.endswith("proj.weight"))
    return inner, policy.model.model.embed_tokens.weight.numel()


def measured(made: Assembled, steps: int, rate: float) -> dict[str, Any]:
    """Shares of the steps of a run."""
    role, ledger = made.main_role, made.system.ledger
    engine = role.engine = Timed(role.engine)
    inner, head = weights_of(made.policy)
    clock = Clock()
    seen: dict[str, float] = {"sampling": 0.0, "verifying": 0.0, "sampled": 0.0, "prefilled": 0.0, "trained": 0.0}
    rows: list[dict[str, float]] = []

    def since(name: str, now: float) -> float:
        """What has been added since the last step."""
        before, seen[name] = seen[name], now
        return now - before

    def watch(progress: Progress) -> None:
        clock.stop()
        spent = progress.spent
        row = {
            "sampling": since("sampling", engine.seconds),
            "verifying": since("verifying", spent["verifier_seconds"]),
            "training": progress.metrics["seconds/learn"],
        }
        tokens = {name: since(name, spent[name]) for name in ("sampled", "prefilled", "trained")}
        total = clock.seconds[-1]
        predicted = progress.metrics["learn/rows"] / progress.metrics["trajectories"] * tokens["sampled"]
        sampling = 2 * ((tokens["sampled"] + tokens["prefilled"]) * inner + tokens["sampled"] * head)
        training = 6 * (tokens["trained"] * inner + predicted * head)
        rows.append(
            {name: value / total for name, value in row.items()}
            | {"overhead": 1 - sum(row.values()) / total, "seconds": total}
            | {"sampling_rate": sampling / row["sampling"] / rate, "training_rate": training / row["training"] / rate}
        )
        clock.start()

    with tempfile.TemporaryDirectory() as folder:
        session = Session(Store(Path(folder)), made.spec, "run", final=False, logs=(), watch=watch)
        clock.start()
        session.start(made)
    assert isinstance(ledger, Ledger)
    counted = rows[2:] or rows
    return {name: spread([row[name] for row in counted]) for name in rows[0]} | {
        "parameters": made.policy.size,
        "rows": int(steady([progress_rows(made)])),
        "steps": steps,
    }


def progress_rows(made: Assembled) -> int:
    """Trajectories a step."""
    propose = made.main_role.slots["propose"]
    return propose.problems * propose.n


def main() -> None:
    """Measure and write `results/overhead.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    where, rates, found = environment(args.threads), product_rates(), {}
    rate = max(rates.values())
    print(f"products: {rate / 1e9:.0f} GFLOP/s")
    with tempfile.TemporaryDirectory() as name:
        for model in ("tiny", "small"):
            spec = RunSpec("grpo", TASK, model_of(model, Path(name)), f"{args.steps} steps", profile="tiny")
            found[f"{model}, {TASK}"] = measured(assemble(spec), args.steps, rate)
        speed = speed_run(model_of(SHAPE, Path(name)), args.steps // 4, False)
        found[f"{SHAPE}, the speed comparison"] = measured(speed, args.steps // 4, rate)
    for label, row in found.items():
        print(f"{label}: overhead {row['overhead']['median']:.1%}")
    write("overhead", {"command": command(), "environment": where, "product_rates": rates, "runs": found})


if __name__ == "__main__":
    main()
