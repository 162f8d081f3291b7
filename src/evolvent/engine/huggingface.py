"""In-process engine for any causal language model of `transformers`: what runs where `LocalEngine` does not.

Rows are padded on the left, which is the one layout that every model there supports, and each has its key-value cache
in a block with the other rows of its actor. A row that has been waiting, a fork and a tool's reply are prefilled anew:
slower than in `LocalEngine`, but right for sliding windows and ALiBi too. Models with another kind of memory than keys
and values (Mamba) are run without a cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.records import Trajectory
from evolvent.engine.base import Actor, Noise, Sampling
from evolvent.engine.branches import TokenTree
from evolvent.engine.local import LocalEngine
from evolvent.engine.perturb import perturbation
from evolvent.engine.rules import NO_STATES
from evolvent.models.decoder import Decoder
from evolvent.models.huggingface import selected_logits, takes
from evolvent.models.lora import acting
from evolvent.models.policy import Policy

PREFILL = 2**15  # tokens in one prefill pass, padding included
CACHE = "past_key_values", "cache"  # what the argument is called before and since transformers 5.24

States = Sequence[Tensor | None]  # hidden states [width], one a row; None where nobody asks for them


def local_engine(policy: Policy, ledger: Ledger) -> LocalEngine | HuggingFaceEngine:
    """The in-process engine that runs a policy: the fast one where it can."""
    return (LocalEngine if isinstance(policy.model, Decoder) else HuggingFaceEngine)(policy, ledger)


class HuggingFaceEngine:
    """Rolls out a `Policy` whose model is one of `transformers`. The rows of one batch may have different actors;
    each actor's rows are a forward pass of their own."""

    offers = frozenset({"tokens", "logprobs", "fork", "append", "entropy", "alternatives", "adapters", "noise"})

    def __init__(self, policy: Policy, ledger: Ledger) -> None:
        self.policy, self.ledger = policy, ledger
        if output_head(policy) is not None:
            self.offers = self.offers | {"hidden"}

    def start(
        self,
        stubs: Sequence[Trajectory],
        actors: Mapping[str, Actor],
        sampling: Sampling,
        limits: Sequence[int],
    ) -> TokenTree:
        """See `engine.base.Engine`."""
        if sampling.hidden and "hidden" not in self.offers:
            raise UserError(NO_STATES)
        with torch.inference_mode():
            runner = PaddedRunner(self.policy, actors, output_head(self.policy) if sampling.hidden else None)
            return TokenTree(runner, self.ledger, stubs, sampling, limits)


@dataclass(eq=False)
class Row:
    """One row of the tree: its actor, and every token that it was given. `state` is the hidden state after the last of
    these, of a row that was in a pass, where states are asked for."""

    actor: str
    tokens: np.ndarray
    place: int = 0
    state: Tensor | None = None


@dataclass(eq=False)
class Block:
    """Rows of one actor with their cache; `mask` [rows, width] is 0 where a row is padded."""

    cache: Any
    mask: Tensor
    rows: list[Row] = field(default_factory=list)


class PaddedRunner:
    """See `engine.branches.Runner`. Hidden states are what enters the output `head`; None: nobody asks for them."""

    def __init__(self, policy: Policy, actors: Mapping[str, Actor], head: nn.Module | None = None) -> None:
        self.policy, self.model, self.device, self.head = policy, policy.model, policy.device, head
        self.context = policy.context
        self.low = {
            name: perturbation(policy.model, a.low) if isinstance(a.low, Noise) else a.low for name, a in actors.items()
        }
        self.arguments = takes(policy.model)
        self.takes_cache = next((name for name in CACHE if name in self.arguments), "")
        self.cached = bool(self.takes_cache)
        self.rows: list[Row] = []
        self.moved: Sequence[Row] = []  # those whose logits came last
        self.blocks: dict[str, Block] = {}

    # --- the protocol ---

    @property
    def hidden(self) -> Tensor:
        """See `Runner.hidden`. That of a row that waits means nothing."""
        states = [row.state for row in self.moved]
        some = next(state for state in states if state is not None)
        return torch.stack([torch.zeros_like(some) if state is None else state for state in states])

    def prefill(self, prefixes: Sequence[np.ndarray], actors: Sequence[str], rows: np.ndarray) -> Tensor:
        """See `Runner.prefill`."""
        self.blocks = {}
        self.rows = [Row(actors[i], prefixes[i].copy(), place) for place, i in enumerate(rows)]
        self.moved = self.rows
        return self._begin(self.rows)

    def step(self, tokens: np.ndarray, positions: np.ndarray) -> Tensor:
        """See `Runner.step`. Rows that get a token again are waiting: they lose their cache, and their logits are 0."""
        fresh = [row for row in self.rows if positions[row.place] == len(row.tokens)]
        for row in fresh:
            row.tokens = np.append(row.tokens, tokens[row.place])
        found: dict[int, Tensor] = {}
        self.moved = self.rows
        if self.cached:
            moving = set(map(id, fresh))
            self._forget([row for row in self.rows if id(row) not in moving])
            for actor, block in self.blocks.items():
                last = np.array([row.tokens[-1] for row in block.rows], np.int64)[:, None]
                block.mask = F.pad(block.mask, (0, 1), value=1)
                logits, states = self._pass(actor, torch.from_numpy(last), block.mask, block.cache)
                for i, row in enumerate(block.rows):
                    found[row.place], row.state = logits[i], states[i]
        else:
            found = self._recompute(fresh)
        some = next(iter(found.values()))
        return torch.stack([found.get(i, torch.zeros_like(some)) for i in range(len(self.rows))])

    def extend(self, rows: Sequence[int], chunks: Sequence[np.ndarray], starts: Sequence[int]) -> Tensor:
        """See `Runner.extend`."""
        changed = [self.rows[i] for i in rows]
        for row, chunk, start in zip(changed, chunks, starts, strict=True):
            row.tokens = np.concatenate([row.tokens[:start], chunk])
        self._forget(changed)
        self.moved = changed
        return self._begin(changed)

    def keep(self, rows: np.ndarray) -> None:
        """See `Runner.keep`."""
        kept = [self.rows[i] for i in rows]
        self._forget([row for row in self.rows if not any(row is k for k in kept)])
        self.rows = kept
        for place, row in enumerate(kept):
            row.place = place

    def add(self, like: int | None, actor: str) -> None:
        """See `Runner.add`. The row has no cache until it is extended."""
        tokens = np.zeros(0, np.int32) if like is None else self.rows[like].tokens.copy()
        self.rows.append(Row(actor, tokens, len(self.rows)))

    # --- passes ---

    def _begin(self, rows: Sequence[Row]) -> Tensor:
        """Fill the cache for rows that have none; next-token logits of each. Equal prefixes are read once."""
        if not self.cached:
            found = self._recompute(rows)
            return torch.stack([found[row.place] for row in rows])
        logits: dict[int, Tensor] = {}
        for actor in dict.fromkeys(row.actor for row in rows):
            own = [row for row in rows if row.actor == actor]
            prefixes = {row.tokens.tobytes(): row.tokens for row in own}
            place = {key: i for i, key in enumerate(prefixes)}
            after = self._prefill(actor, list(prefixes.values()), own, [place[row.tokens.tobytes()] for row in own])
            if after is None:
                return self._begin(rows)
            logits |= {id(row): after[place[row.tokens.tobytes()]] for row in own}
        return torch.stack([logits[id(row)] for row in rows])

    def _prefill(self, actor: str, prefixes: list[np.ndarray], rows: list[Row], source: list[int]) -> Tensor | None:
        """Read distinct prefixes and give row i a copy of the cache of prefix `source[i]`.

        Logits [prefixes, vocabulary], or None where it turns out that the model cannot be cached in this way.
        """
        found = []
        size = max(1, PREFILL // max(len(p) for p in prefixes))
        for first in range(0, len(prefixes), size):
            part = prefixes[first : first + size]
            width = max(len(p) for p in part)
            tokens, mask = np.zeros((2, len(part), width), np.int64)
            for i, prefix in enumerate(part):
                tokens[i, width - len(prefix) :], mask[i, width - len(prefix) :] = prefix, 1
            cache = new_cache(self.model)
            block = Block(cache, torch.from_numpy(mask).to(self.device))
            logits, states = self._pass(actor, torch.from_numpy(tokens), block.mask, cache)
            found.append(logits)
            if not plain(cache):
                self.cached = False
                return None
            index = [i for i, s in enumerate(source) if first <= s < first + len(part)]
            select(block, [source[i] - first for i in index])
            block.rows = [rows[i] for i in index]
            for i in index:
                rows[i].state = states[source[i] - first]
            self.blocks[actor] = joined(self.blocks[actor], block) if actor in self.blocks else block
        return torch.cat(found)

    def _pass(self, actor: str, tokens: Tensor, mask: Tensor, cache: Any) -> tuple[Tensor, States]:
        """Logits [rows, vocabulary] and hidden states after the last column of `tokens`; `cache` grows by these."""
        more: dict[str, Any] = {self.takes_cache: cache}
        if "position_ids" in self.arguments:
            more["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        if "logits_to_keep" in self.arguments:
            more["logits_to_keep"] = 1
        with acting(self.policy, self.low[actor]), entering(self.head) as seen:
            out = self.model(input_ids=tokens.to(self.device), attention_mask=mask, use_cache=True, **more)
        return out.logits[:, -1].float(), list(seen[0][:, -1]) if seen else [None] * len(tokens)

    def _recompute(self, rows: Sequence[Row]) -> dict[int, Tensor]:
        """Logits after the last token of rows by place, without a cache."""
        found: dict[int, Tensor] = {}
        for actor in dict.fromkeys(row.actor for row in rows):
            own = [row for row in rows if row.actor == actor]
            width = max(len(row.tokens) for row in own)
            tokens = np.zeros((len(own), width + 1), np.int64)
            last = np.zeros((len(own), width), bool)
            for i, row in enumerate(own):
                tokens[i, : len(row.tokens)], last[i, len(row.tokens) - 1] = row.tokens, True
            with acting(self.policy, self.low[actor]), entering(self.head) as seen:
                logits = selected_logits(
                    self.model, torch.from_numpy(tokens).to(self.device), torch.from_numpy(last).to(self.device)
                ).float()
            states: States = [None] * len(own)
            if seen:  # of all columns, or of those alone that some row ends in
                columns = last if seen[0].shape[1] == width else last[:, last.any(0)]
                states = list(seen[0][torch.from_numpy(columns).to(self.device)])
            for i, row in enumerate(own):
                found[row.place], row.state = logits[i], states[i]
        return found

    def _forget(self, rows: Sequence[Row]) -> None:
        """Take rows out of the cache."""
        gone = set(map(id, rows))
        for actor, block in list(self.blocks.items()):
            index = [i for i, row in enumerate(block.rows) if id(row) not in gone]
            if not index:
                del self.blocks[actor]
            elif len(index) < len(block.rows):
                block.rows = [block.rows[i] for i in index]
                select(block, index)


def output_head(policy: Policy) -> nn.Module | None:
    """The map from hidden states to logits, if the model names it."""
    model: Any = policy.model
    return model.get_output_embeddings()


@contextmanager
def entering(head: nn.Module | None) -> Iterator[list[Tensor]]:
    """What enters the output head within the context, [rows, columns, width] a pass: the states after the final norm,
    and all else that an architecture does to them before its logits. Empty without a head.

    `output_hidden_states` would keep the states of all layers, and of columns that nobody needs.
    """
    seen: list[Tensor] = []
    if head is None:
        yield seen
        return
    handle = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        yield seen
    finally:
        handle.remove()


def new_cache(model: Any) -> Any:
    """An empty cache for a model."""
    from transformers import DynamicCache

    return DynamicCache(config=model.config)


def plain(cache: Any) -> bool:
    """Whether the cache is nothing but keys and values of positions, the last ones in a window or all."""
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    kinds = (DynamicLayer, DynamicSlidingWindowLayer)
    return all(type(x) in kinds for x in cache.layers) and cache.get_seq_length() > 0


def select(block: Block, index: Sequence[int]) -> None:
    """Make the block's cache hold these rows, in this order, and no more columns than they need."""
    if list(index) != list(range(len(block.mask))):
        chosen = torch.as_tensor(index, device=block.mask.device)
        block.cache.batch_select_indices(chosen)
        block.mask = block.mask[chosen]
        resize(block, int(block.mask.sum(1).max()))


def resize(block: Block, width: int) -> None:
    """Add or remove padding on the left until the block is `width` columns wide."""
    for layer in block.cache.layers:
        if layer.is_initialized and layer.keys.numel():
            window = getattr(layer, "sliding_window", None)
            extra = (width if window is None else min(width, window - 1)) - layer.keys.shape[-2]
            layer.keys, layer.values = F.pad(layer.keys, (0, 0, extra, 0)), F.pad(layer.values, (0, 0, extra, 0))
            if window is not None:
                layer.cumulative_length = width
    block.mask = F.pad(block.mask, (width - block.mask.shape[1], 0))


def joined(one: Block, other: Block) -> Block:
    """Two blocks as one."""
    width = max(one.mask.shape[1], other.mask.shape[1])
    resize(one, width)
    resize(other, width)
    for mine, theirs in zip(one.cache.layers, other.cache.layers, strict=True):
        if mine.is_initialized and mine.keys.numel():
            mine.keys, mine.values = torch.cat([mine.keys, theirs.keys]), torch.cat([mine.values, theirs.values])
    return Block(one.cache, torch.cat([one.mask, other.mask]), one.rows + other.rows)
