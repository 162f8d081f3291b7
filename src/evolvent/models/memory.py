"""How much memory a run will need, and what to do where it was too much."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import psutil
import torch
from torch import Tensor

from evolvent.core.out_of_memory import remedy
from evolvent.models.decoder import Decoder
from evolvent.models.policy import LOGIT_CHUNK, Policy

GIB = 2**30
LIBRARIES, LOST = 120 * 2**20, 1.0  # measured: PyTorch 2.13 on Linux with the allocator of glibc


@dataclass(frozen=True)
class Memory:
    """Bytes that a run takes, by what they hold; what the process held before it loaded the model comes on top.

    On CPU the peak of the whole process was within a factor of 1.5 of the estimate, both ways: 0.1M, 1M, 22M (with
    30,000 tokens) and 50M parameters, full training, LoRA, checkpointing, and a GPT-2. Not measured on a GPU.
    """

    weights: int  # of the model, adapters included
    reference: int  # a frozen copy of the weights, for KL terms and preference losses
    gradients: int
    moments: int  # of AdamW, two for each trained parameter
    activations: int  # kept for the backward pass of one micro-batch
    logits: int  # of that micro-batch, with their gradient
    cache: int  # keys and values of all rows of a roll-out at full length, with what copying them takes
    sampling: int  # the engine's copies of weights, the prompts' prefill and the rows' distributions
    checkpoint: int  # on disk: weights that can change, and moments
    libraries: int  # what torch loads when it is first used
    lost: float  # what the allocator cannot use again, as a share of what comes and goes

    @property
    def kept(self) -> int:
        """What is there all the time."""
        return self.weights + self.reference + self.gradients + self.moments

    @property
    def learning(self) -> int:
        """While the policy is updated."""
        return self.libraries + self.kept + int((1 + self.lost) * (self.activations + self.logits))

    @property
    def rollout(self) -> int:
        """While it is sampled from."""
        return self.libraries + self.kept + int((1 + self.lost) * (self.cache + self.sampling))

    @property
    def peak(self) -> int:
        """The most at any time."""
        return max(self.learning, self.rollout)

    def table(self) -> str:
        """Lines of name and size, for people."""
        rows = [(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in ("checkpoint", "lost")]
        rows += [("peak while sampling", self.rollout), ("peak while learning", self.learning)]
        rows += [("a checkpoint on disk", self.checkpoint)]
        return "\n".join(f"{name:<22}{size(count):>10}" for name, count in rows if count)


def estimate(
    policy: Policy,
    rows: int,
    prompts: int,
    prompt: int,
    completion: int,
    micro_tokens: int,
    adapter: str | None = None,
    reference: bool = False,
    recompute: bool = False,
    training: bool = True,
) -> Memory:
    """What a run with this policy takes.

    rows, prompts       trajectories in one roll-out, and distinct prompts among them
    prompt, completion  tokens of the longest of each
    micro_tokens        of one training pass (`learn.micro_tokens`)
    recompute           with gradient checkpointing

    Activations are not derived but counted: on three short passes, whose sizes give the part that grows with the
    number of tokens and the part that grows with its square.
    """
    trained = list(policy.trainable(adapter).values()) if training else []
    held = sum(nbytes(p) for p in policy.model.parameters())
    changed = sum(nbytes(p) for p in trained)
    length = min(prompt + completion, policy.context)
    shape = Shape.of(policy)
    kept = logits = 0
    if training:
        linear, square = activation_bytes(policy)
        kept = int(micro_tokens * (linear + square * length))
        if recompute:
            kept = kept // shape.layers + micro_tokens * shape.layers * shape.width * shape.bytes
        scored = max(1, round(micro_tokens * completion / max(1, length))) * shape.vocabulary
        logits = 4 * (2 * scored + min(scored, LOGIT_CHUNK))
    fused = shape.fused
    prefill = prompts * prompt * (6 * shape.width + 4 * shape.inner) * shape.bytes
    return Memory(
        weights=held,
        reference=held if reference and adapter is None else changed if reference else 0,
        gradients=changed,
        moments=2 * changed,
        activations=kept,
        logits=logits,
        cache=int(1.5 * rows * length * shape.cached),
        sampling=fused + prefill + 6 * 4 * rows * shape.vocabulary,
        checkpoint=changed * 3 if training else 0,
        libraries=LIBRARIES,
        lost=LOST if policy.device.type == "cpu" else 0.1,
    )


@dataclass(frozen=True)
class Shape:
    """What of a model's configuration the estimate reads."""

    layers: int
    width: int
    inner: int
    vocabulary: int
    bytes: int  # a number
    cached: int  # bytes of keys and values of one token
    fused: int  # bytes of the local engine's copies

    @classmethod
    def of(cls, policy: Policy) -> Shape:
        """From our configuration or that of transformers."""
        model: Any = policy.model
        config = model.config if isinstance(model, Decoder) else model.config.get_text_config()

        def find(*names: str, default: int = 0) -> int:
            return next((int(v) for n in names if isinstance(v := getattr(config, n, None), int)), default)

        width, layers = (
            find("hidden_size", "d_model", "n_embd"),
            find("num_hidden_layers", "n_layers", "n_layer", default=1),
        )
        heads = find("num_attention_heads", "n_heads", "n_head", default=1)
        dim = find("head_dim", default=width // heads)
        size = policy.dtype.itemsize
        held = sum(nbytes(p) for p in policy.model.parameters())
        from evolvent.engine.local import FUSE_BELOW

        fuses = isinstance(model, Decoder) and policy.size < FUSE_BELOW
        return cls(
            layers,
            width,
            find("intermediate_size", "ffn_dim", "n_inner", default=4 * width),
            find("vocab_size"),
            size,
            2 * layers * find("num_key_value_heads", default=heads) * dim * size,
            held if fuses else 0,
        )


def activation_bytes(policy: Policy) -> tuple[float, float]:
    """Bytes that autograd keeps of a row of T tokens, as a T + b T^2: counted at three sizes, without the logits."""
    sizes = [max(2, min(48, policy.context) * k // 3) for k in (1, 2, 3)]
    counts = [kept_bytes(policy, n) for n in sizes]
    design = np.array([[1.0, n, n * n] for n in sizes])
    _, linear, square = np.linalg.lstsq(design, np.array(counts, float), rcond=None)[0]
    return max(0.0, float(linear)), max(0.0, float(square))


def kept_bytes(policy: Policy, tokens: int) -> int:
    """Bytes of the distinct tensors that autograd saves in a pass over one row; parameters do not count."""
    own = {p.untyped_storage().data_ptr() for p in policy.model.parameters()}
    own |= {b.untyped_storage().data_ptr() for b in policy.model.buffers()}
    seen: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        seen.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    row = torch.zeros(1, tokens, dtype=torch.long, device=policy.device)
    select = torch.zeros(1, tokens, dtype=torch.bool, device=policy.device)
    select[:, -1] = True
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), torch.enable_grad():
        policy.logits(row, select)
    return sum(t.untyped_storage().nbytes() for place, t in seen.items() if place not in own)


def nbytes(tensor: Tensor) -> int:
    """Bytes of a tensor."""
    return tensor.numel() * tensor.element_size()


def size(count: int) -> str:
    """Bytes for people."""
    for unit, factor in (("GiB", GIB), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def available(device: torch.device) -> int:
    """Bytes that are free on a device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available


def total(device: torch.device) -> int:
    """Bytes that a device has."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return psutil.virtual_memory().total


def shortage(memory: Memory, device: torch.device) -> str | None:
    """A sentence if a run that has loaded its model will probably not fit into what is free; None if it will."""
    missing = memory.peak - memory.weights - available(device)
    if missing <= 0:
        return None
    stage = "learn" if memory.learning >= memory.rollout else "rollout"
    return f"the run needs about {size(memory.peak)}, {size(missing)} more than is free on {device}; {remedy(stage)}"
