"""Sampling against Hugging Face `generate`, log-probs returned, on the same weights in the same process.

    equal   64 rows of the same length
    spread  64 rows whose lengths vary 20x; each ends when it has its length
    shared  8 samples of each of 8 prompts of 128 tokens

The two sides take turns; the ratio of a pair is what counts.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from material import random_policy
from measure import command, environment, spread, write
from transformers import AutoModelForCausalLM, LogitsProcessor, LogitsProcessorList
from transformers.utils import logging
from workload import SHAPE

from evolvent.core.ledger import Ledger
from evolvent.core.records import Problem
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.local import LocalEngine
from evolvent.models.policy import Policy
from evolvent.rollout.sample import blank

# prompts, samples of each, tokens of a prompt, shortest and longest completion
CASES = {"equal": (64, 1, 16, 64, 64), "spread": (64, 1, 16, 8, 160), "shared": (8, 8, 128, 32, 32)}


class Goal(LogitsProcessor):
    """<eos> where a row has its length, and never before."""

    def __init__(self, lengths: Sequence[int], prompt: int, end: int) -> None:
        self.lengths, self.prompt, self.end = torch.tensor(lengths), prompt, end

    def __call__(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See the class."""
        last = tokens.shape[1] - self.prompt + 1 == self.lengths
        scores[:, self.end] = -torch.inf
        scores[last] = -torch.inf
        scores[last, self.end] = 0.0
        return scores


def lengths_of(case: str) -> list[int]:
    """Log-uniform between the case's shortest and longest completion; both of them occur."""
    prompts, samples, _, low, high = CASES[case]
    rng, rows = random.Random(f"lengths {case}"), prompts * samples
    return [low, high, *(round(low * (high / low) ** rng.random()) for _ in range(rows - 2))]


def ours(policy: Policy, prefixes: np.ndarray, samples: int, lengths: Sequence[int]) -> Callable[[], int]:
    """One roll-out by the engine; the number of tokens that it sampled."""
    ledger, problem = Ledger(), Problem("", (), {})
    engine = LocalEngine(policy, ledger)
    stubs = [blank(i, problem, prefixes[i // samples], "policy") for i in range(len(prefixes) * samples)]

    def run() -> int:
        tree = engine.start(stubs, {"policy": Actor("policy", 0)}, Sampling(), lengths)
        tree.advance()
        assert all(b.logprob[b.mask].all() for b in tree.branches)
        return sum(int(b.mask.sum()) for b in tree.branches)

    return run


def theirs(folder: Path, prefixes: np.ndarray, samples: int, lengths: Sequence[int]) -> Callable[[], int]:
    """The same by `generate`, its log-probs taken as its documentation says."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = torch.from_numpy(prefixes.astype(np.int64))
    goal = Goal(lengths, tokens.shape[1], model.config.eos_token_id)
    equal = min(lengths) == max(lengths)
    options: dict[str, Any] = {"logits_processor": LogitsProcessorList([] if equal else [goal])}
    if equal:
        options["min_new_tokens"] = max(lengths)

    @torch.inference_mode()
    def run() -> int:
        made: Any = model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=True,
            top_k=0,
            temperature=1.0,
            max_new_tokens=max(lengths),
            num_return_sequences=samples,
            return_dict_in_generate=True,
            output_scores=True,
            **options,
        )
        chosen = model.compute_transition_scores(made.sequences, made.scores, normalize_logits=True)
        return int((chosen.isfinite() & (made.sequences[:, tokens.shape[1] :] != model.config.pad_token_id)).sum())

    return run


def main() -> None:
    """Measure and write `results/generation.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.set_verbosity_error()
    where, found = environment(args.threads), {}
    with tempfile.TemporaryDirectory() as name:
        policy = random_policy(Path(name), SHAPE)
        for case in args.cases:
            prompts, samples, width, _, _ = CASES[case]
            lengths = lengths_of(case)
            prefixes = np.random.default_rng(0).integers(5, policy.model.config.vocab_size, (prompts, width))
            sides = {
                "ours": ours(policy, prefixes.astype(np.int32), samples, lengths),
                "theirs": theirs(Path(name), prefixes, samples, lengths),
            }
            taken: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
            for number in range(args.pairs + 1):
                for side in ("ours", "theirs") if number % 2 else ("theirs", "ours"):
                    begun = time.perf_counter(), time.process_time()
                    sides[side]()
                    taken[side].append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
            pairs = list(zip(taken["ours"], taken["theirs"], strict=True))[1:]  # the first one warms up
            found[case] = {
                "rows": prompts * samples, "samples": samples, "prompt": width,
                "shortest": min(lengths), "longest": max(lengths), "sampled": sum(lengths),
                "ours": spread([a[0] for a, _ in pairs]), "theirs": spread([b[0] for _, b in pairs]),
                "speedup": spread([b[0] / a[0] for a, b in pairs]),
                "processor": spread([b[1] / a[1] for a, b in pairs]),
            }  # fmt: skip
            print(
                f"{case}: {found[case]['speedup']['median']:.2f}x, processor {found[case]['processor']['median']:.2f}x",
                flush=True,
            )
    write("generation", {"command": command(), "environment": where, "shape": SHAPE, "cases": found})


if __name__ == "__main__":
    main()
