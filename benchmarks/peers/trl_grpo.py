"""The same run by TRL's GRPOTrainer, in an environment of its own; its last line of output is the result.

Times are taken from outside: a callback at the end of each step, and a clock around generation. The lengths of the
speed run are forced by a logits processor.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
import trl
from datasets import Dataset
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessor, LogitsProcessorList, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

sys.path.insert(0, str(Path(__file__).parents[1]))
from measure import Clock, peak_memory
from workload import CLIP, LONGEST, PROMPTS, RATE, SAMPLES, lengths, reward


class FixedLengths(LogitsProcessor):
    """<eos> where a row has its committed length, and never before."""

    def __init__(self, goal: list[int], prompt: int, end: int) -> None:
        self.goal, self.prompt, self.end = torch.tensor(goal), prompt, end

    def __call__(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        last = tokens.shape[1] - self.prompt + 1 == self.goal
        scores[:, self.end] = -torch.inf
        scores[last] = -torch.inf
        scores[last, self.end] = 0.0
        return scores


class Watch(TrainerCallback):
    """Step times, sampled tokens and snapshots of the weights."""

    def __init__(self, steps: int, how: dict) -> None:
        self.clock, self.steps, self.how = Clock(), steps, how
        self.sampled: list[int] = []
        self.rollout: list[float] = []

    def on_train_begin(self, *_, **__) -> None:
        self.clock.start()

    def on_step_end(self, args, state, control, model=None, **_) -> None:
        self.clock.stop()
        t = state.global_step
        if self.how and (t % self.how["every"] == 0 or t == self.steps):
            # a model that ties its head to the embedding has the same tensor under two names
            weights = {n: p.detach().clone() for n, p in model.named_parameters()}
            save_file(weights, Path(self.how["snapshots"]) / f"{t}.safetensors")
        self.clock.start()


class Timed(GRPOTrainer):
    """Counts and times what is sampled."""

    watch: Watch

    def _generate_single_turn(self, *args, **kwargs):
        begun = time.perf_counter()
        made = super()._generate_single_turn(*args, **kwargs)
        self.watch.rollout.append(time.perf_counter() - begun)
        self.watch.sampled.append(sum(map(len, made[0])))
        return made


def solved(completions, numbers, target, **_):
    """The task's own verifier; its package needs nothing but NumPy."""
    from evolvent.tasks.countdown import solves
    from evolvent.tasks.extract import final_answer

    answers = [final_answer(c) for c in completions]
    rows = zip(answers, numbers, target, strict=True)
    return [float(a is not None and solves(a, list(n), t)) for a, n, t in rows]


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("problems", help="JSON lines with prompt, numbers and target, in the order in which they come")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--micro", type=int, default=PROMPTS * SAMPLES, help="rows in one training pass")
    parser.add_argument("--attention", default="sdpa")
    parser.add_argument("--products", default="highest", help="torch.set_float32_matmul_precision")
    parser.add_argument("--learn", default="", help="as in ours.py")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_float32_matmul_precision(args.products)
    how = json.loads(args.learn) if args.learn else {}
    rows = [json.loads(line) for line in Path(args.problems).read_text().splitlines()]
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model, attn_implementation=args.attention, dtype=torch.float32)
    assert tokenizer(rows[0]["prompt"])["input_ids"] == rows[0]["tokens"], "the two sides read another prompt"
    settings = how.get("settings", {})
    prompts, samples = settings.get("propose.problems", PROMPTS), settings.get("propose.n", SAMPLES)
    batch = prompts * samples
    micro = min(args.micro, batch)

    def judge(prompts, completions, **columns):
        if how:
            return solved(completions, **columns)
        plain = [p.removeprefix("<bos>") for p in prompts]
        return [reward(p, c, args.full) for p, c in zip(plain, completions, strict=True)]

    watch = Watch(args.steps, how)
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(), use_cpu=True, bf16=False, fp16=False, gradient_checkpointing=False,
        # one update a step on all its rows
        per_device_train_batch_size=micro, gradient_accumulation_steps=batch // micro, num_generations=samples,
        num_iterations=1, max_completion_length=settings.get("rollout.max_tokens", LONGEST), max_steps=args.steps,
        temperature=1.0, top_k=0, top_p=1.0, loss_type="grpo", scale_rewards="group", beta=0.0,
        epsilon=settings.get("learn.clip_high", CLIP), learning_rate=settings.get("learn.lr", RATE),
        lr_scheduler_type="constant", adam_beta1=0.9, adam_beta2=0.999, adam_epsilon=1e-8, weight_decay=0.0,
        max_grad_norm=1.0, shuffle_dataset=False, logging_steps=1, report_to="none", save_strategy="no",
        disable_tqdm=True, dataloader_num_workers=0, seed=how.get("seed", 0),
    )  # fmt: skip
    trainer = Timed(
        model=model,
        processing_class=tokenizer,
        reward_funcs=judge,
        args=config,
        train_dataset=Dataset.from_list(rows),
        callbacks=[watch],
    )
    trainer.watch = watch
    if not how:
        generate = model.generate

        def fixed(**kwargs):
            goal = lengths(len(watch.sampled), args.full)
            processor = FixedLengths(goal, kwargs["input_ids"].shape[1], tokenizer.eos_token_id)
            return generate(**kwargs, logits_processor=LogitsProcessorList([processor]))

        model.generate = fixed
    trainer.train()
    print(
        json.dumps(
            {
                "seconds": watch.clock.seconds,
                "processor": watch.clock.processor,
                "sampled": watch.sampled,
                "rollout": watch.rollout,
                "memory": peak_memory(),
                "versions": {m.__name__: m.__version__ for m in (torch, transformers, trl)},
            }
        )
    )


if __name__ == "__main__":
    main()
