"""Pretraining: the seed models are made here, from the tasks alone.

Everything follows from the mixture, the shape, the seed and the number of steps: the examples (train split only), the
order in which they come, the weights. On one thread a run gives the same bits each time, also when it was interrupted
and resumed.

    loss = sum_t w_t * -log p(x_t | x_<t) / sum_t w_t

over one step's tokens. w is 0 for prompts and tool replies, 1 for what the model is to write, and more for decisions
(see `Piece.weight`); every text ends in <eos>.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from evolvent.core.errors import UserError
from evolvent.core.files import whole
from evolvent.core.random import identifier, stream
from evolvent.core.records import Problem
from evolvent.models.checkpoint import WEIGHTS, seed_config, write_weights
from evolvent.models.decoder import Decoder, DecoderConfig, initialise
from evolvent.models.products import exact
from evolvent.models.tokenizer import SeedFormat, character_tokenizer
from evolvent.tasks.base import Demo, Task

STATE = "pretrain.pt"  # what a resumed run needs; removed at the end
CURVES = "curves.json"


@dataclass(frozen=True)
class Entry:
    """One ingredient: demonstrations of one level of a task.

    `share` is its part of the examples, relative to the other entries, as points (progress, share) that are joined by
    straight lines; progress runs from 0 to 1. `demo` writes the demonstration (default: the task's own `gold`).
    `name` keys the entry's random draws and its curve.
    """

    name: str
    task: Task
    level: str
    share: tuple[tuple[float, float], ...]
    demo: Callable[[Problem], Demo | None] | None = None

    def at(self, progress: float) -> float:
        """The share at this progress."""
        x, y = zip(*self.share, strict=True)
        return float(np.interp(progress, x, y))


Mixture = Sequence[Entry]


@dataclass(frozen=True)
class Shape:
    """Size of a seed model; heads are `width / 16` unless given."""

    layers: int
    width: int
    inner: int
    heads: int
    context: int = 512

    def config(self, vocabulary: int) -> dict[str, Any]:
        """The `config.json` of the model."""
        return seed_config(self.layers, self.width, self.heads, self.inner, self.context, vocabulary)


@dataclass(frozen=True)
class Schedule:
    """Learning rate and batch: AdamW, linear warm-up, then linear decay to zero over the last `decay` of the run.

    `examples` a step; a micro-batch holds up to `tokens` tokens with padding (1,500 fit the cache of a CPU core).
    `pool` is the most examples that are drawn for an entry; with fewer than the run uses, they come again.
    """

    rate: float = 3e-3
    warmup: float = 0.02
    decay: float = 0.7
    examples: int = 192
    tokens: int = 1500
    pool: int = 100_000
    weight_decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = 1.0

    def rate_at(self, progress: float) -> float:
        """The learning rate at this progress (0 to 1)."""
        if progress < self.warmup:
            return self.rate * progress / self.warmup
        return self.rate * min(1.0, (1 - progress) / self.decay)


class Example(NamedTuple):
    """A text with the weight of each of its tokens as something to predict; both [length]."""

    tokens: np.ndarray
    weights: np.ndarray


def example(problem: Problem, demo: Demo, format: SeedFormat) -> Example:
    """`<bos>` prompt completion `<eos>`. What the policy does not write has weight 0.

    A turn of the policy that is followed by a tool's reply has no `<eos>`: it ends in the task's own turn end.
    """
    tokens = format.prompt(problem.prompt)
    weights = [0.0] * len(tokens)
    for piece in demo:
        new = format.encode(piece.text)
        tokens += new
        weights += [piece.weight if piece.policy else 0.0] * len(new)
    return Example(np.array([*tokens, format.eos], np.uint8), np.array([*weights, 1.0], np.float32))


class Pool:
    """Examples, laid out one after the other to save memory."""

    def __init__(self, examples: Iterable[Example]) -> None:
        tokens, weights, ends = bytearray(), bytearray(), [0]
        self.levels: list[float] = []  # the few different weights; `weights` holds their numbers
        for one in examples:
            tokens += one.tokens.tobytes()
            for weight in set(one.weights.tolist()) - set(self.levels):
                self.levels.append(weight)
            weights += bytes(self.levels.index(w) for w in one.weights.tolist())
            ends.append(len(tokens))
        self.tokens, self.codes, self.ends = (
            np.frombuffer(tokens, np.uint8),
            np.frombuffer(weights, np.uint8),
            ends,
        )
        self.values = np.array(self.levels, np.float32)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, i: int) -> Example:
        span = slice(self.ends[i], self.ends[i + 1])
        return Example(self.tokens[span], self.values[self.codes[span]])


def draw(entry: Entry, size: int, seed: int, format: SeedFormat) -> Iterator[Example]:
    """`size` examples of an entry, from the train split of its task."""
    rng = stream(seed, "pool", entry.name)
    demo = entry.demo or entry.task.gold
    found = misses = 0
    while found < size:
        problem = entry.task.draw("train", rng, entry.level)
        written = demo(problem)
        if written is None:
            misses += 1
            if misses > 1000 and misses > 100 * found:
                raise UserError(f"{entry.name}: the task has no demonstrations; take it out of the mixture")
            continue
        found += 1
        yield example(problem, written, format)


class Pools:
    """The examples of all entries, and the ones of each step."""

    def __init__(
        self,
        mixture: Mixture,
        schedule: Schedule,
        seed: int,
        steps: int,
        format: SeedFormat,
        report: Callable[[str], None],
    ) -> None:
        self.mixture, self.schedule, self.seed, self.steps = mixture, schedule, seed, steps
        grid = np.linspace(0, 1, 101)
        shares = np.array([[e.at(p) for e in mixture] for p in grid])
        if (shares.sum(1) <= 0).any():
            raise UserError("the mixture has a time at which no entry has a share; let one begin at 0 and end at 1")
        use = (shares / shares.sum(1, keepdims=True)).mean(0) * steps * schedule.examples
        self.pools: list[Pool] = []
        for entry, expected in zip(mixture, use, strict=True):
            report(f"drawing {entry.name}")
            size = max(1, min(schedule.pool, math.ceil(expected)))
            self.pools.append(Pool(draw(entry, size, seed, format)))

    def step(self, step: int) -> list[tuple[int, Example]]:
        """The examples of a step, each with the number of its entry."""
        rng = stream(self.seed, "step", step)
        shares = np.array([e.at(step / self.steps) for e in self.mixture])
        counts = rng.multinomial(self.schedule.examples, shares / shares.sum())
        chosen = []
        for i, count in enumerate(counts.tolist()):
            if count:
                own = self.pools[i]
                chosen += [(i, own[j]) for j in rng.integers(0, len(own), count).tolist()]
        return chosen


class MicroBatch(NamedTuple):
    """Right-padded tokens [rows, time], the weights of tokens 1.. [rows, time - 1], and the entry of each row."""

    tokens: Tensor
    weights: Tensor
    entries: np.ndarray


def micro_batches(chosen: Sequence[tuple[int, Example]], limit: int) -> list[MicroBatch]:
    """Rows of similar length together, at most `limit` tokens each, padding included."""
    chosen = sorted(chosen, key=lambda c: len(c[1].tokens))
    batches: list[MicroBatch] = []
    rows: list[tuple[int, Example]] = []

    def close() -> None:
        width = len(rows[-1][1].tokens)
        tokens = np.zeros((len(rows), width), np.int64)
        weights = np.zeros((len(rows), width), np.float32)
        for i, (_, row) in enumerate(rows):
            tokens[i, : len(row.tokens)] = row.tokens
            weights[i, : len(row.tokens)] = row.weights
        entries = np.array([c[0] for c in rows])
        batches.append(MicroBatch(torch.from_numpy(tokens), torch.from_numpy(weights[:, 1:]), entries))

    for item in chosen:
        if rows and (len(rows) + 1) * len(item[1].tokens) > limit:
            close()
            rows = []
        rows.append(item)
    close()
    return batches


def losses(model: Decoder, batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Negative log-likelihood and weight of every token that counts, and the row of each; all [n]."""
    hidden = model(batch.tokens[:, :-1])
    at = batch.weights.nonzero(as_tuple=True)
    nll = F.cross_entropy(model.head(hidden[at]), batch.tokens[:, 1:][at], reduction="none")
    return nll, batch.weights[at], at[0]


class Curves:
    """Mean loss a token of every entry, over spans of the run; and what else is measured on the way."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.data: dict[str, Any] = {"steps": [], "loss": {n: [] for n in names}, "rate": [], "tokens": []}
        self.clear()

    def clear(self) -> None:
        """Begin a new span."""
        self.sums, self.counts, self.tokens = np.zeros(len(self.names)), np.zeros(len(self.names)), 0

    def add(self, nll: Tensor, rows: Tensor, batch: MicroBatch) -> None:
        """Count one micro-batch."""
        entries = batch.entries[rows.numpy()]
        self.sums += np.bincount(entries, nll.numpy().astype(np.float64), len(self.names))
        self.counts += np.bincount(entries, minlength=len(self.names))
        self.tokens += batch.tokens.numel()

    def close(self, step: int, rate: float) -> None:
        """End the span at this step."""
        self.data["steps"].append(step)
        self.data["rate"].append(rate)
        self.data["tokens"].append(self.tokens + (self.data["tokens"][-1] if self.data["tokens"] else 0))
        for name, total, count in zip(self.names, self.sums, self.counts, strict=True):
            self.data["loss"][name].append(round(float(total / count), 5) if count else None)
        self.clear()


@dataclass
class Progress:
    """What `pretrain` tells while it runs."""

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    eta: float  # seconds
    note: str = ""


def pretrain(
    mixture: Mixture,
    shape: Shape,
    seed: int,
    steps: int,
    out: Path,
    progress: Callable[[Progress], None] = lambda p: None,
    schedule: Schedule | None = None,
    spans: int = 100,
    save_every: float = 120.0,
    on_step: Callable[[int], None] = lambda step: None,
) -> Decoder:
    """Train a seed model and write it to `out` in Hugging Face format, with its learning curves.

    A run that was interrupted goes on from its last state if called again with the same arguments. `save_every` is in
    seconds and has no influence on the result. `progress` is called about twice a second, `on_step` after each step.
    """
    schedule = schedule or Schedule()
    format = SeedFormat(character_tokenizer())
    config = shape.config(format.size)
    out.mkdir(parents=True, exist_ok=True)
    with one_thread():
        model = Decoder(DecoderConfig.read(config))
        initialise(model, torch.Generator().manual_seed(identifier(seed, "weights")))
        optimizer = adamw(model, schedule)
        curves = Curves([e.name for e in mixture])
        same = {
            "seed": seed,
            "steps": steps,
            "shape": asdict(shape),
            "schedule": asdict(schedule),
            "entries": curves.names,
        }
        step = restore(out / STATE, same, model, optimizer, curves)
        pools = Pools(
            mixture,
            schedule,
            seed,
            steps,
            format,
            lambda note: progress(Progress(step, steps, 0, 0, 0, note)),
        )
        started, first, saved, told, loss = time.monotonic(), step, time.monotonic(), 0.0, 0.0
        run_tokens = 0
        while step < steps:
            for group in optimizer.param_groups:
                group["lr"] = schedule.rate_at(step / steps)
            batches = micro_batches(pools.step(step), schedule.tokens)
            total = float(sum(float(b.weights.sum()) for b in batches))
            optimizer.zero_grad(set_to_none=True)
            loss = 0.0
            for batch in batches:
                nll, weights, rows = losses(model, batch)
                part = (nll * weights).sum() / total
                part.backward()
                loss += float(part.detach())
                curves.add(nll.detach(), rows, batch)
                run_tokens += batch.tokens.numel()
            torch.nn.utils.clip_grad_norm_(model.parameters(), schedule.clip)
            optimizer.step()
            step += 1
            now = time.monotonic()
            if step * spans // steps != (step - 1) * spans // steps:
                curves.close(step, schedule.rate_at(step / steps))
            if now - saved > save_every and step < steps:
                save(out / STATE, {**same, "step": step}, model, optimizer, curves)
                saved = now
            if now - told > 0.5 or step == steps:
                speed = (now - started) / (step - first)
                progress(Progress(step, steps, loss, run_tokens / (now - started), speed * (steps - step)))
                told = now
            on_step(step)
        write_seed_model(out, model, config, format)
        text = json.dumps({**same, **curves.data})
        replace(out / CURVES, text.encode())
        (out / STATE).unlink(missing_ok=True)
        return model


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread, and the kernels that are fastest for small matrices.

    `medium` lets float32 products go through oneDNN, which on processors with AVX-512 that are not Intel's is twice as
    fast as MKL and as exact. Its fused attention is slow with that setting; plain products are not.
    """
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(1)
    if exact():  # else it would round to bfloat16
        torch.set_float32_matmul_precision("medium")
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)


def adamw(model: Decoder, schedule: Schedule) -> torch.optim.Optimizer:
    """AdamW; norms are not decayed."""
    decayed = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [
        {"params": decayed, "weight_decay": schedule.weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=schedule.rate, betas=schedule.betas, eps=1e-8, fused=True)


def write_seed_model(folder: Path, model: Decoder, config: dict[str, Any], format: SeedFormat) -> None:
    """Write the files that `transformers` loads."""
    write_weights(folder / WEIGHTS, dict(model.named_parameters()))
    replace(folder / "config.json", (json.dumps(config, indent=1) + "\n").encode())
    format.save(folder)


def replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with whole(path) as part:
        part.write_bytes(content)


def save(path: Path, about: dict[str, Any], model: Decoder, optimizer: torch.optim.Optimizer, curves: Curves) -> None:
    """Write the state of a run."""
    state = {
        "about": about, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
        "curves": curves.data, "span": (curves.sums.tolist(), curves.counts.tolist(), curves.tokens),
    }  # fmt: skip
    with whole(path) as part:
        torch.save(state, part)


def restore(path: Path, same: dict[str, Any], model: Decoder, optimizer: torch.optim.Optimizer, curves: Curves) -> int:
    """Load a state if there is one; the step to go on from. `UserError` if it belongs to another run."""
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    about = dict(state["about"])
    step = about.pop("step")
    wanted = json.loads(json.dumps(same))
    if json.loads(json.dumps(about)) != wanted:
        raise UserError(f"{path} is the state of another run; choose another folder, or delete it to begin anew")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    curves.data = state["curves"]
    sums, counts, curves.tokens = state["span"]
    curves.sums, curves.counts = np.array(sums), np.array(counts)
    return int(step)
