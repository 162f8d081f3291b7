"""In-process engine for our decoder: a key-value cache with one row a live branch, addressed by position.

Positions index the cache, so rows of different length, forks, tool replies and resumed episodes are one mechanism.
Small models run on fused copies of their weights, made once a roll-out: fewer and larger matrix products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from evolvent.engine.perturb import perturbation
from evolvent.models.decoder import Decoder, Layer, Low, LowRank, apply_low, rotate
from evolvent.models.policy import Policy
from evolvent.models.products import linear

FUSE_BELOW = 20_000_000  # parameters; above, the copies cost more than they save
ROOM = 16  # positions that the cache grows by


class LocalEngine:
    """Rolls out a `Policy` whose model is a `Decoder`."""

    offers = frozenset(
        {"tokens", "logprobs", "fork", "append", "entropy", "alternatives", "hidden", "adapters", "noise"}
    )

    def __init__(self, policy: Policy, ledger: Ledger) -> None:
        if not isinstance(policy.model, Decoder):
            raise UserError(f"the local engine runs Llama, Mistral and Qwen models, not {type(policy.model).__name__}")
        self.model, self.ledger = policy.model, ledger

    def start(
        self,
        stubs: Sequence[Trajectory],
        actors: Mapping[str, Actor],
        sampling: Sampling,
        limits: Sequence[int],
    ) -> TokenTree:
        """See `engine.base.Engine`."""
        with torch.inference_mode():
            return TokenTree(CachedRunner(self.model, actors), self.ledger, stubs, sampling, limits)


class CachedRunner:
    """Prefill and cached decoding of one `Decoder`, with per-row low-rank changes."""

    def __init__(self, model: Decoder, actors: Mapping[str, Actor]) -> None:
        self.model, self.config = model, model.config
        self.context = model.config.max_position_embeddings
        self.device, self.dtype = (
            model.model.embed_tokens.weight.device,
            model.model.embed_tokens.weight.dtype,
        )
        self.weights = Weights(model)
        self.low = LowTable(model, self.weights.groups, actors)
        self.row_low: RowLow = {}
        self.keys: list[Tensor] = []  # a layer each: [rows, kv heads, capacity, dim]
        self.values: list[Tensor] = []
        self.actors = np.zeros(0, np.int64)
        self.hidden = torch.zeros(0)  # of the logits that came last, after the final norm

    def prefill(self, prefixes: Sequence[np.ndarray], actors: Sequence[str], rows: np.ndarray) -> Tensor:
        """See `Runner.prefill`."""
        lengths = np.array([len(p) for p in prefixes])
        tokens = np.zeros((len(prefixes), int(lengths.max())), np.int64)
        for i, prefix in enumerate(prefixes):
            tokens[i, : len(prefix)] = prefix
        index = torch.from_numpy(rows).to(self.device)
        self.actors = self.low.index(actors)
        low = self.low.rows(self.actors)
        hidden, self.keys, self.values = self._full(torch.from_numpy(tokens).to(self.device), low)
        last = hidden[torch.arange(len(prefixes)), torch.from_numpy(lengths - 1).to(self.device)]
        logits = self._logits(last)
        self.hidden = self.hidden.index_select(0, index)
        self.keys = [F.pad(k, (0, 0, 0, ROOM)).index_select(0, index) for k in self.keys]
        self.values = [F.pad(v, (0, 0, 0, ROOM)).index_select(0, index) for v in self.values]
        self.actors = self.actors[rows]
        self.row_low = self.low.rows(self.actors)
        return logits.index_select(0, index)

    def _full(self, tokens: Tensor, low: RowLow) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Causal pass over right-padded tokens; hidden states, keys and values of every position."""
        time = tokens.shape[1]
        cos, sin = self.weights.cos[:time], self.weights.sin[:time]
        x = F.embedding(tokens, self.weights.embedding)
        keys, values = [], []
        for layer in self.weights.layers:
            q, k, v = layer.project(x, cos, sin, low)
            keys.append(k)
            values.append(v)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=layer.grouped)
            x = layer.rest(x, mixed, low)
        return x, keys, values

    def _logits(self, hidden: Tensor) -> Tensor:
        self.hidden = self.weights.norm(hidden)
        return linear(self.hidden, self.weights.head).float()

    def step(self, tokens: np.ndarray, positions: np.ndarray) -> Tensor:
        """See `Runner.step`."""
        self._room(int(positions.max()) + 1)
        at = torch.from_numpy(positions).to(self.device)
        cos, sin = (table.index_select(0, at)[:, None, None] for table in (self.weights.cos, self.weights.sin))
        heads = self.config.num_key_value_heads
        places = torch.arange(len(tokens) * heads, device=self.device) * self.capacity + at.repeat_interleave(heads)
        future = torch.arange(self.capacity, device=self.device) > at[:, None, None]
        mask = torch.zeros(future.shape, dtype=self.dtype, device=self.device).masked_fill_(future, -torch.inf)
        mask = mask.expand(-1, heads, -1).reshape(-1, 1, self.capacity)
        x = F.embedding(torch.from_numpy(tokens.astype(np.int64)).to(self.device)[:, None], self.weights.embedding)
        for layer, keys, values in zip(self.weights.layers, self.keys, self.values, strict=True):
            q, k, v = layer.project(x, cos, sin, self.row_low)
            for cache, new in ((keys, k), (values, v)):
                cache.view(-1, cache.shape[-1]).index_copy_(0, places, new.reshape(-1, cache.shape[-1]))
            x = layer.rest(x, attend(q, keys, values, mask), self.row_low)
        return self._logits(x[:, 0])

    def extend(self, rows: Sequence[int], chunks: Sequence[np.ndarray], starts: Sequence[int]) -> Tensor:
        """See `Runner.extend`."""
        sizes = np.array([len(c) for c in chunks])
        first, time = np.asarray(starts), int(sizes.max())
        self._room(int((first + time).max()))
        tokens = np.zeros((len(rows), time), np.int64)
        for i, chunk in enumerate(chunks):
            tokens[i, : len(chunk)] = chunk
        positions = torch.from_numpy(first[:, None] + np.arange(time)).to(self.device)
        end = int(positions.max()) + 1
        at = positions.clamp(max=self.context - 1)
        cos, sin = self.weights.cos[at][:, None], self.weights.sin[at][:, None]
        mask = (torch.arange(end, device=self.device) <= positions[:, :, None])[:, None]
        index = torch.as_tensor(rows, device=self.device)
        low = {name: Low(*(t if t.dim() == 2 else t[index] for t in pair)) for name, pair in self.row_low.items()}
        x = F.embedding(torch.from_numpy(tokens).to(self.device), self.weights.embedding)
        for layer, keys, values in zip(self.weights.layers, self.keys, self.values, strict=True):
            q, k, v = layer.project(x, cos, sin, low)
            keys[index[:, None], :, positions] = k.transpose(1, 2)
            values[index[:, None], :, positions] = v.transpose(1, 2)
            mixed = F.scaled_dot_product_attention(
                q, keys[index, :, :end], values[index, :, :end], attn_mask=mask, enable_gqa=layer.grouped
            )
            x = layer.rest(x, mixed, low)
        return self._logits(x[torch.arange(len(rows)), torch.from_numpy(sizes - 1).to(self.device)])

    @property
    def capacity(self) -> int:
        """Positions that the cache has room for."""
        return self.keys[0].shape[2]

    def _room(self, end: int) -> None:
        """Make the cache at least `end` positions wide. Narrow is fast: attention reads all of it."""
        if end > self.capacity:
            extra = end - self.capacity + ROOM
            self.keys = [F.pad(k, (0, 0, 0, extra)) for k in self.keys]
            self.values = [F.pad(v, (0, 0, 0, extra)) for v in self.values]

    def keep(self, rows: np.ndarray) -> None:
        """See `Runner.keep`."""
        index = torch.from_numpy(rows).to(self.device)
        self.keys = [k.index_select(0, index) for k in self.keys]
        self.values = [v.index_select(0, index) for v in self.values]
        self.actors = self.actors[rows]
        self.row_low = self.low.rows(self.actors)

    def add(self, like: int | None, actor: str) -> None:
        """See `Runner.add`."""

        def more(cache: Tensor) -> Tensor:
            row = cache.new_zeros(1, *cache.shape[1:]) if like is None else cache[like : like + 1]
            return torch.cat([cache, row])

        self.keys, self.values = [more(k) for k in self.keys], [more(v) for v in self.values]
        self.actors = np.append(self.actors, self.low.index([actor]))
        self.row_low = self.low.rows(self.actors)


def attend(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Attention of one new position, q [rows, heads, 1, dim], over the cache.

    `mask` [rows x kv heads, 1, capacity] is added to the scores. On CPU two batched products over the contiguous cache
    take half the time of the fused kernel, which is made for long queries.
    """
    rows, kv, capacity, dim = keys.shape
    grouped = q.reshape(rows * kv, -1, dim)
    scores = torch.baddbmm(mask, grouped, keys.view(rows * kv, capacity, dim).mT, alpha=dim**-0.5)
    weights = torch.softmax(scores, -1, dtype=torch.float32).to(values.dtype)
    return torch.bmm(weights, values.view(rows * kv, capacity, dim)).view(rows, -1, 1, dim)


class Linears:
    """Linear maps that read the same input, as one product; y = x W^T + (x B_i) A_i^T with stacked changes."""

    def __init__(self, layers: Mapping[str, nn.Module], fuse: bool) -> None:
        self.names = list(layers)
        # PEFT keeps the original map inside its own
        bases: list[Any] = [getattr(layer, "base_layer", layer) for layer in layers.values()]
        self.sizes = [base.out_features for base in bases]
        self.parts: list[tuple[Tensor, Tensor | None]] = [(base.weight, base.bias) for base in bases]
        if fuse and len(bases) > 1:
            biases = [b.bias for b in bases if b.bias is not None]
            bias = torch.cat(biases) if biases else None
            self.parts = [(torch.cat([b.weight for b in bases]), bias)]

    def __call__(self, x: Tensor, low: Low | None) -> Tensor:
        """[rows, time, in] to [rows, time, sum of outs]."""
        made = [linear(x, weight, bias) for weight, bias in self.parts]
        return apply_low(made[0] if len(made) == 1 else torch.cat(made, -1), x, low)

    def change(self, low: LowRank) -> Low | None:
        """The changes of the group's maps as one: block-diagonal A, B side by side."""
        found = [low.get(name) for name in self.names]
        present = [f for f in found if f is not None]
        if not present:
            return None
        if len(found) == 1:
            return present[0]
        rank = sum(f.a.shape[-1] for f in present)
        a = present[0].a.new_zeros(sum(self.sizes), rank)
        row = column = 0
        for size, one in zip(self.sizes, found, strict=True):
            if one is not None:
                a[row : row + size, column : column + one.a.shape[-1]] = one.a
                column += one.a.shape[-1]
            row += size
        return Low(a, torch.cat([f.b for f in present], -1))


class LayerWeights:
    """One layer: projections for attention, and everything that follows it."""

    def __init__(self, layer: Layer, number: int, fuse: bool) -> None:
        a, m, at = layer.self_attn, layer.mlp, f"model.layers.{number}"
        self.layer, self.attention = layer, a
        self.grouped = a.heads != a.kv_heads
        attention = {f"{at}.self_attn.{n}": getattr(a, n) for n in ("q_proj", "k_proj", "v_proj")}
        self.qkv, self.out = Linears(attention, fuse), Linears({f"{at}.self_attn.o_proj": a.o_proj}, fuse)
        inner = {f"{at}.mlp.{n}": getattr(m, n) for n in ("gate_proj", "up_proj")}
        self.inner, self.down = Linears(inner, fuse), Linears({f"{at}.mlp.down_proj": m.down_proj}, fuse)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor, low: RowLow) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries, rotated keys and values of the layer's input, each [rows, heads, time, dim]."""
        a, h = self.attention, self.layer.input_layernorm(x)
        made = self.qkv(h, low.get(self.qkv.names[0])).unflatten(-1, (-1, a.dim)).transpose(1, 2)
        turned = made[:, : a.heads + a.kv_heads]
        if hasattr(a, "q_norm"):
            turned = torch.cat([a.q_norm(turned[:, : a.heads]), a.k_norm(turned[:, a.heads :])], 1)
        turned = rotate(turned, cos, sin)
        return turned[:, : a.heads], turned[:, a.heads :], made[:, a.heads + a.kv_heads :]

    def rest(self, x: Tensor, mixed: Tensor, low: RowLow) -> Tensor:
        """The layer's output, from its input and what attention gave, [rows, heads, time, dim]."""
        x = x + self.out(mixed.transpose(1, 2).flatten(2), low.get(self.out.names[0]))
        h = self.layer.post_attention_layernorm(x)
        gate, up = self.inner(h, low.get(self.inner.names[0])).chunk(2, -1)
        return x + self.down(F.silu(gate) * up, low.get(self.down.names[0]))


class Weights:
    """A model's weights as decoding wants them."""

    def __init__(self, model: Decoder) -> None:
        fuse = sum(p.numel() for p in model.parameters()) < FUSE_BELOW
        self.embedding = model.model.embed_tokens.weight
        self.head = self.embedding if model.config.tie_word_embeddings else model.lm_head.weight
        self.cos, self.sin = model.cos.to(self.embedding.dtype), model.sin.to(self.embedding.dtype)
        self.norm = model.model.norm
        self.layers = [LayerWeights(layer, i, fuse) for i, layer in enumerate(model.model.blocks)]

    @property
    def groups(self) -> list[Linears]:
        """All groups of linear maps."""
        return [g for w in self.layers for g in (w.qkv, w.out, w.inner, w.down)]


RowLow = Mapping[str, Low]  # by the first name of a group; shared, or one a row


class LowTable:
    """The low-rank changes of all actors of a batch, by group of linear maps."""

    def __init__(self, model: Decoder, groups: Sequence[Linears], actors: Mapping[str, Actor]) -> None:
        self.place = {name: i for i, name in enumerate(actors)}
        members: list[RowLow] = []
        for actor in actors.values():
            low = perturbation(model, actor.low) if isinstance(actor.low, Noise) else actor.low
            changes = {g.names[0]: g.change(low or {}) for g in groups}
            members.append({name: change for name, change in changes.items() if change is not None})
        self.shared = members[0] if len(members) == 1 else None
        self.tables = {}
        if self.shared is None:
            changed = sorted(set().union(*members))
            self.tables = {name: stacked([m.get(name) for m in members]) for name in changed}

    def index(self, actors: Sequence[str]) -> np.ndarray:
        """Places of actors by name."""
        return np.array([self.place[a] for a in actors], np.int64)

    def rows(self, index: np.ndarray) -> RowLow:
        """The changes of these rows: shared where there is one actor, else one a row."""
        if self.shared is not None:
            return self.shared
        return {name: Low(low.a[index], low.b[index]) for name, low in self.tables.items()}


def stacked(changes: Sequence[Low | None]) -> Low:
    """Changes of several members as one with a leading axis; none is zero, smaller ranks are padded."""
    found = [c for c in changes if c is not None]
    rank = max(c.a.shape[-1] for c in found)
    zero = Low(found[0].a.new_zeros(found[0].a.shape[0], rank), found[0].b.new_zeros(found[0].b.shape[0], rank))
    every = [zero if c is None else Low(*(F.pad(t, (0, rank - t.shape[-1])) for t in c)) for c in changes]
    return Low(torch.stack([c.a for c in every]), torch.stack([c.b for c in every]))
