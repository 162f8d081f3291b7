"""The training pass: log-probs of the tokens that the policy produced, and how rows are packed into micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from evolvent.core.records import Trajectory
from evolvent.core.role import Role
from evolvent.models.policy import LOGIT_CHUNK, Policy

MICRO_TOKENS = 8192  # of a pass without gradients


def token_logprobs(
    policy: Policy,
    tokens: Int[Tensor, "rows time"],
    mask: Bool[Tensor, "rows time"],
    temperature: Float[Tensor, " rows"],
    with_entropy: bool = False,
) -> tuple[Float[Tensor, "rows time"], Float[Tensor, "rows time"] | None]:
    """Log-probs (and entropies) at each row's sampling temperature; zero where `mask` is False."""
    logits = policy.logits(tokens, mask).float()
    targets = tokens[mask]
    heat = temperature[:, None].expand_as(tokens)[mask]
    chosen, entropy = _score(logits, targets, heat, with_entropy)
    logprob = torch.zeros(tokens.shape, device=tokens.device).masked_scatter(mask, chosen)
    if entropy is None:
        return logprob, None
    return logprob, torch.zeros(tokens.shape, device=tokens.device).masked_scatter(mask, entropy)


def _score(logits: Tensor, targets: Tensor, heat: Tensor, with_entropy: bool) -> tuple[Tensor, Tensor | None]:
    size = max(1, LOGIT_CHUNK // max(1, logits.shape[-1]))
    if len(logits) <= size:
        return _score_some(logits, targets, heat, with_entropy)
    parts = [
        torch.utils.checkpoint.checkpoint(
            _score_some,
            logits[i : i + size],
            targets[i : i + size],
            heat[i : i + size],
            with_entropy,
            use_reentrant=False,
        )
        for i in range(0, len(logits), size)
    ]
    return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts]) if with_entropy else None


def _score_some(logits: Tensor, targets: Tensor, heat: Tensor, with_entropy: bool) -> tuple[Tensor, Tensor | None]:
    scaled = logits / heat[:, None]
    if not with_entropy:
        return -torch.nn.functional.cross_entropy(scaled, targets, reduction="none"), None
    logprob = torch.log_softmax(scaled, -1)
    return logprob.gather(1, targets[:, None])[:, 0], -(logprob.exp() * logprob).sum(-1)


def pack(
    units: Sequence[Int[np.ndarray, " _"]], lengths: Int[np.ndarray, " rows"], budget: int
) -> Iterator[Int[np.ndarray, " _"]]:
    """Micro-batches of row numbers: units of similar length together, at most `budget` tokens with padding.

    A unit is an array of rows that must not be parted. A unit that is over the budget alone is a batch of its own.
    """
    if not units:
        return
    longest = np.array([lengths[u].max() for u in units])
    batch: list[np.ndarray] = []
    rows = 0
    for place in np.argsort(-longest, kind="stable"):
        unit = units[place]
        width = int(lengths[batch[0]].max()) if batch else int(longest[place])
        if batch and (rows + len(unit)) * width > budget:
            yield np.concatenate(batch)
            batch, rows = [], 0
        batch.append(unit)
        rows += len(unit)
    yield np.concatenate(batch)


def extent(t: Trajectory) -> int:
    """The place after the last token that the policy wrote, at least 1."""
    if t.mask[-1]:  # as in most
        return len(t.mask)
    return len(t.mask) - int(t.mask[::-1].argmax()) if t.mask.any() else 1


def padded(
    rows: Sequence[Trajectory], pad: int, device: torch.device
) -> tuple[Int[Tensor, "rows time"], Bool[Tensor, "rows time"], Float[Tensor, "rows time"], Float[Tensor, " rows"]]:
    """Tokens, mask, sampling log-probs and temperatures of trajectories, right-padded.

    The columns after the last token that the policy wrote are left off: nothing is learned from them.
    """
    ends = [extent(t) for t in rows]
    shape = (len(rows), max(ends))
    tokens = np.full(shape, pad, np.int64)
    mask = np.zeros(shape, bool)
    old = np.zeros(shape, np.float32)
    for i, (t, end) in enumerate(zip(rows, ends, strict=True)):
        tokens[i, :end], mask[i, :end], old[i, :end] = t.tokens[:end], t.mask[:end], t.logprob[:end]
    mask[:, 0] = False
    heat = np.array([t.temperature or 1.0 for t in rows], np.float32)
    to = [torch.from_numpy(a).to(device) for a in (tokens, mask, old, heat)]
    return to[0], to[1], to[2], to[3]


@torch.no_grad()
def rescored(role: Role, rows: Sequence[Trajectory], micro_tokens: int = MICRO_TOKENS) -> list[np.ndarray]:
    """Log-probs of every row's tokens under the policy as it is now, 0 where others wrote; charged as prefilled."""
    policy = role.policy
    policy.activate(role.adapter)
    lengths = np.array([len(t.tokens) for t in rows])
    found = [np.zeros(n, np.float32) for n in lengths]
    for part in pack([np.array([i]) for i in range(len(rows))], lengths, micro_tokens):
        tokens, mask, _, heat = padded([rows[i] for i in part], policy.format.pad, policy.device)
        for i, row in zip(part, token_logprobs(policy, tokens, mask, heat)[0].cpu().numpy(), strict=True):
            end = min(lengths[i], len(row))
            found[i][:end] = row[:end]
        role.ledger.charge(prefilled=int(lengths[part].sum()))
    return found
