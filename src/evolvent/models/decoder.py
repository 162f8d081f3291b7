"""The decoder that Llama, Mistral, Qwen2 and Qwen3 checkpoints share, as one plain module.

Parameter names are those of the Hugging Face checkpoints, so weights travel both ways unchanged. The forward pass is
written for training and for cached decoding alike; `low` adds low-rank changes, shared or one for each row:

    y = x W^T + (x B_i) A_i^T
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SUPPORTED = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True)
class DecoderConfig:
    """Shapes and constants, under the names of the Hugging Face configuration."""

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: Mapping[str, Any] | None
    tie_word_embeddings: bool
    attention_bias: bool
    output_bias: bool
    mlp_bias: bool
    query_key_norm: bool

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> DecoderConfig:
        """From the contents of a `config.json`. Raises ValueError with what is not supported."""
        kind = config.get("model_type", "")
        if kind not in SUPPORTED:
            raise ValueError(f"model type {kind!r}")
        if config.get("hidden_act", "silu") != "silu":
            raise ValueError(f"activation {config['hidden_act']!r}")
        layers = set(config.get("layer_types") or ["full_attention"])
        if config.get("use_sliding_window") or (kind == "mistral" and config.get("sliding_window")):
            layers.add("sliding_attention")
        if layers != {"full_attention"}:
            raise ValueError("sliding-window attention")
        rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
        scaling = rope.get("rope_type", rope.get("type", "default"))
        if scaling not in ("default", "llama3", "linear") or rope.get("partial_rotary_factor", 1) != 1:
            raise ValueError(f"rope scaling {scaling!r}")
        heads = config["num_attention_heads"]
        return cls(
            model_type=kind,
            vocab_size=config["vocab_size"],
            hidden_size=config["hidden_size"],
            intermediate_size=config["intermediate_size"],
            num_hidden_layers=config["num_hidden_layers"],
            num_attention_heads=heads,
            num_key_value_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            max_position_embeddings=config.get("max_position_embeddings", 2048),
            rms_norm_eps=config.get("rms_norm_eps", 1e-6),
            rope_theta=float(rope.get("rope_theta", config.get("rope_theta", 10000.0))),
            rope_scaling=rope if scaling != "default" else None,
            tie_word_embeddings=config.get("tie_word_embeddings", False),
            attention_bias=kind == "qwen2" or (kind != "mistral" and config.get("attention_bias", False)),
            output_bias=kind in ("llama", "qwen3") and config.get("attention_bias", False),
            mlp_bias=kind == "llama" and config.get("mlp_bias", False),
            query_key_norm=kind == "qwen3",
        )


class Low(NamedTuple):
    """A low-rank change of one linear map: x -> (x b) a^T. Shared: a [out, r], b [in, r]; one a row: a leading axis."""

    a: Tensor
    b: Tensor


LowRank = Mapping[str, Low]  # by module name, `model.layers.0.self_attn.q_proj`


def apply_low(y: Tensor, x: Tensor, low: Low | None) -> Tensor:
    """y + (x b) a^T, for x [rows, time, in]; without a change, y itself."""
    if low is None:
        return y
    return y + (x @ low.b) @ low.a.mT


def inverse_frequencies(config: DecoderConfig) -> Tensor:
    """Rotary frequencies, [head_dim / 2], with the linear or the Llama 3 scaling where the config asks for it."""
    inverse = config.rope_theta ** -(torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim)
    scaling = config.rope_scaling
    if scaling is None:
        return inverse
    factor = scaling["factor"]
    if scaling.get("rope_type", scaling.get("type")) == "linear":
        return inverse / factor
    low, high, old = (
        scaling["low_freq_factor"],
        scaling["high_freq_factor"],
        scaling["original_max_position_embeddings"],
    )
    wavelength = 2 * math.pi / inverse
    smooth = ((old / wavelength - low) / (high - low)).clamp(0, 1)
    return (1 - smooth) * inverse / factor + smooth * inverse


def rotary_tables(config: DecoderConfig) -> tuple[Tensor, Tensor]:
    """Cosines and sines of every position, each float32 [positions, head_dim], as `rotate` wants them."""
    angles = torch.outer(torch.arange(config.max_position_embeddings).float(), inverse_frequencies(config))
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of x [..., head_dim], half-split layout: (a, b) to (a cos - b sin, b cos + a sin)."""
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


class Attention(nn.Module):
    """Grouped-query self-attention with rotary positions."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.dim = (
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
        )
        width, bias = config.hidden_size, config.attention_bias
        self.q_proj = nn.Linear(width, self.heads * self.dim, bias=bias)
        self.k_proj = nn.Linear(width, self.kv_heads * self.dim, bias=bias)
        self.v_proj = nn.Linear(width, self.kv_heads * self.dim, bias=bias)
        self.o_proj = nn.Linear(self.heads * self.dim, width, bias=config.output_bias)
        if config.query_key_norm:
            self.q_norm = nn.RMSNorm(self.dim, config.rms_norm_eps)
            self.k_norm = nn.RMSNorm(self.dim, config.rms_norm_eps)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor, low: LowRank, at: str) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries, rotated keys and values, each [rows, heads, time, dim]."""
        rows, time, _ = x.shape
        q = apply_low(self.q_proj(x), x, low.get(f"{at}.q_proj")).view(rows, time, self.heads, self.dim)
        k = apply_low(self.k_proj(x), x, low.get(f"{at}.k_proj")).view(rows, time, self.kv_heads, self.dim)
        v = apply_low(self.v_proj(x), x, low.get(f"{at}.v_proj")).view(rows, time, self.kv_heads, self.dim)
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        return rotate(q.transpose(1, 2), cos, sin), rotate(k.transpose(1, 2), cos, sin), v.transpose(1, 2)

    def output(self, mixed: Tensor, low: LowRank, at: str) -> Tensor:
        """Back to the model's width, from [rows, heads, time, dim]."""
        x = mixed.transpose(1, 2).flatten(2)
        return apply_low(self.o_proj(x), x, low.get(f"{at}.o_proj"))


class MLP(nn.Module):
    """The gated feed-forward block."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        width, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = nn.Linear(width, inner, bias=bias)
        self.up_proj = nn.Linear(width, inner, bias=bias)
        self.down_proj = nn.Linear(inner, width, bias=bias)

    def forward(self, x: Tensor, low: LowRank, at: str) -> Tensor:
        """[rows, time, width] to the same."""
        gate = apply_low(self.gate_proj(x), x, low.get(f"{at}.gate_proj"))
        up = apply_low(self.up_proj(x), x, low.get(f"{at}.up_proj"))
        h = F.silu(gate) * up
        return apply_low(self.down_proj(h), h, low.get(f"{at}.down_proj"))


class Layer(nn.Module):
    """One block: attention and feed-forward, each behind a norm and around a residual."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, low: LowRank, at: str) -> Tensor:
        """Full causal pass over [rows, time, width]."""
        attention = self.self_attn
        q, k, v = attention.project(self.input_layernorm(x), cos, sin, low, f"{at}.self_attn")
        grouped = attention.heads != attention.kv_heads
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        x = x + attention.output(mixed, low, f"{at}.self_attn")
        return x + self.mlp(self.post_attention_layernorm(x), low, f"{at}.mlp")


class Stack(nn.Module):
    """Embedding, layers and final norm; called `model` in the checkpoints."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)

    @property
    def blocks(self) -> list[Layer]:
        """The layers in order."""
        return [layer for layer in self.layers if isinstance(layer, Layer)]


class Decoder(nn.Module):
    """A causal language model."""

    cos: Tensor
    sin: Tensor

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Stack(config)
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        cos, sin = rotary_tables(config)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.checkpointing = False  # recompute activations in the backward pass

    def head(self, hidden: Tensor) -> Tensor:
        """Logits of hidden states."""
        if self.config.tie_word_embeddings:
            return F.linear(hidden, self.model.embed_tokens.weight)
        return self.lm_head(hidden)

    def forward(self, tokens: Tensor, low: LowRank | None = None) -> Tensor:
        """Hidden states [rows, time, width] of right-padded tokens [rows, time].

        Padding comes last, so that causal attention alone keeps it out of every position that counts.
        """
        time = tokens.shape[1]
        if time > self.config.max_position_embeddings:
            raise ValueError(f"{time} tokens for a context of {self.config.max_position_embeddings}")
        x = self.model.embed_tokens(tokens)
        cos, sin = self.cos[:time].to(x.dtype), self.sin[:time].to(x.dtype)
        for i, layer in enumerate(self.model.layers):
            arguments = (x, cos, sin, low or {}, f"model.layers.{i}")
            if self.checkpointing and torch.is_grad_enabled():
                x = torch.utils.checkpoint.checkpoint(layer, *arguments, use_reentrant=False)
            else:
                x = layer(*arguments)
        return self.model.norm(x)


def initialise(model: Decoder, generator: torch.Generator) -> None:
    """Scaled normal weights for training from nothing: 0.02, or less in the projections back into the stream."""
    back = 1 / math.sqrt(2 * model.config.num_hidden_layers)
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            continue
        scale = 0.02 if "embed" in name else parameter.shape[1] ** -0.5
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            scale *= back
        with torch.no_grad():
            parameter.normal_(0.0, scale, generator=generator)
