"""One training run of ours in a process of its own, timed step by step; its last line of output is the result.

The run is what `evolvent run grpo` does, store, ledger and checkpoints included.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from measure import Clock, peak_memory
from safetensors.torch import save_file
from torch import Tensor
from workload import CLIP, LONGEST, PROMPTS, RATE, SAMPLES, TASK, lengths, reward

from evolvent.core.ledger import Ledger
from evolvent.core.records import Problem, Trajectory
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.branches import TokenTree
from evolvent.engine.local import CachedRunner, LocalEngine
from evolvent.lineage.store import Store
from evolvent.models.policy import Policy
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import Progress, Session
from evolvent.run.spec import RunSpec
from evolvent.tasks.base import Score
from evolvent.tasks.countdown import Countdown


class FixedLengths(TokenTree):
    """Draws <eos> where a branch has its committed length, and never before."""

    def __init__(self, goal: np.ndarray, *args: object) -> None:
        self.goal = goal
        super().__init__(*args)  # type: ignore[arg-type]

    def _draw(self, logprob: Tensor, live: np.ndarray) -> Tensor:
        (end,) = self._ends
        last = torch.from_numpy(self.sampled[live] + 1 == self.goal[live])
        drawn = super()._draw(logprob, live)
        drawn[drawn == end] = int(end) + 2  # some other token
        return drawn.masked_fill(last, int(end))


class FixedEngine(LocalEngine):
    """The local engine, with the committed lengths of one step after the other."""

    def __init__(self, policy: Policy, ledger: Ledger, full: bool) -> None:
        super().__init__(policy, ledger)
        self.step, self.full = 0, full

    def start(
        self, stubs: Sequence[Trajectory], actors: Mapping[str, Actor], sampling: Sampling, limits: Sequence[int]
    ) -> TokenTree:
        """See `LocalEngine.start`."""
        goal = np.array(lengths(self.step, self.full))
        self.step += 1
        with torch.inference_mode():
            return FixedLengths(goal, CachedRunner(self.model, actors), self.ledger, stubs, sampling, limits)


class Coin(Countdown):
    """The prompts of the task, judged by the committed rule."""

    full = False

    def score(self, problem: Problem, completion: str) -> Score:
        """See `workload.reward`."""
        return Score(reward(problem.prompt[0].content, completion, self.full), completion)


def speed_run(model: str, steps: int, full: bool) -> Assembled:
    """The run with committed lengths."""
    settings = {
        "propose.problems": PROMPTS, "propose.n": SAMPLES, "rollout.max_tokens": LONGEST,
        "learn.lr": RATE, "learn.kl": 0.0, "learn.minibatches": 1, "learn.clip_low": CLIP, "learn.clip_high": CLIP,
        "gate.every": 0,  # the peer evaluates nothing
    }  # fmt: skip
    made = assemble(RunSpec("grpo", TASK, model, f"{steps} steps", 0, settings, profile="paper"))
    role = made.main_role
    role.engine = FixedEngine(made.policy, role.ledger, full)
    role.task = Coin(role.task.categories)
    role.task.full = full
    return made


def learning_run(model: str, task: str, steps: int, seed: int, settings: Mapping[str, object]) -> Assembled:
    """A run that learns."""
    return assemble(RunSpec("grpo", task, model, f"{steps} steps", seed, settings, profile="paper"))


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--learn", default="", help="task, seed, settings and snapshots, as JSON")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    how = json.loads(args.learn) if args.learn else {}
    if how:
        made = learning_run(args.model, how["task"], args.steps, how["seed"], how["settings"])
    else:
        made = speed_run(args.model, args.steps, args.full)
    clock, sampled, stages = Clock(), [], []

    def watch(progress: Progress) -> None:
        clock.stop()
        sampled.append(progress.spent["sampled"])
        stages.append(progress.metrics["seconds/rollout"])
        if how and (progress.t % how["every"] == 0 or progress.t == args.steps):
            weights = {name: w.clone() for name, w in made.policy.weights().items()}
            save_file(weights, Path(how["snapshots"]) / f"{progress.t}.safetensors")
        clock.start()

    with tempfile.TemporaryDirectory() as folder:
        session = Session(Store(Path(folder)), made.spec, "run", final=False, logs=(), watch=watch)
        clock.start()
        session.start(made)
    print(
        json.dumps(
            {
                "seconds": clock.seconds,
                "processor": clock.processor,
                "sampled": np.diff(sampled, prepend=0).tolist(),
                "rollout": stages,
                "memory": peak_memory(),
                "versions": {"torch": torch.__version__},
            }
        )
    )


if __name__ == "__main__":
    main()
