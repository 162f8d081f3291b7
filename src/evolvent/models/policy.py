"""A policy: a model that can be trained, its text format, its adapters and its version number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from evolvent.core.errors import UserError
from evolvent.models.decoder import Decoder, Low, LowRank
from evolvent.models.lora import activate, adapter_of, layers
from evolvent.models.tokenizer import Format

LOGIT_CHUNK = 2**25  # logits held at once in a training pass; more are recomputed in the backward pass
CONTEXTS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length", "seq_length")

WIDTHS = ("hidden_size", "d_model", "n_embd")


def context_of(config: Mapping[str, Any]) -> int:
    """The most tokens that a model reads, from its `config.json`; 2048 where it does not say."""
    return _number(config, CONTEXTS) or 2048


def _number(config: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """The first of these entries that a `config.json` has; models that also see have it one level down."""
    for part in (config, config.get("text_config") or {}):
        for name in names:
            if isinstance(part.get(name), int):
                return part[name]
    return None


class Policy:
    """What learners change and engines run.

    Without adapters all weights are trained. With adapters (LoRA modules that PEFT put into the model, one name a
    role) the weights stay as they are. `version` counts changes; a number is never given to other weights again.
    `source` is where the weights came from: what PEFT's files name as the base model.
    """

    def __init__(
        self, model: nn.Module, format: Format, config: Mapping[str, Any], name: str = "", source: str = ""
    ) -> None:
        self.model, self.format, self.config, self.name = model, format, dict(config), name
        self.source = source or name
        self.version = 0
        self.adapters: tuple[str, ...] = ()
        self.active: str | None = None
        self.context = context_of(self.config)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def width(self) -> int:
        """Of the hidden states that tokens are drawn from. `UserError` where the configuration does not say."""
        found = _number(self.config, WIDTHS)
        if found is None:
            raise UserError(f"the config.json of {self.name} names no width ({', '.join(WIDTHS)}); take another model")
        return found

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights; adapters are float32 always."""
        return next(p.dtype for n, p in self.model.named_parameters() if adapter_of(n) is None)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(p.numel() for p in self.model.parameters())

    def bump(self) -> int:
        """Count a change of the weights; the new version."""
        self.version += 1
        return self.version

    def trainable(self, adapter: str | None = None) -> dict[str, nn.Parameter]:
        """The parameters that a learner of this adapter (None: of all weights) changes, by name."""
        named = dict(self.model.named_parameters())
        if adapter is None:
            if self.adapters:
                raise UserError(f"the model has adapters ({', '.join(self.adapters)}); say which one to train")
            return named
        if adapter not in self.adapters:
            raise UserError(f"the model has no adapter `{adapter}`; it has {', '.join(self.adapters) or 'none'}")
        return {n: p for n, p in named.items() if adapter_of(n) == adapter}

    def low(self, adapter: str | None) -> LowRank | None:
        """An adapter as it is now: a low-rank change of each linear map that it sits in, in the dtype of the weight."""
        if adapter is None:
            return None
        changes = {}
        for name, layer in layers(self.model).items():
            if adapter in layer.lora_A:
                dtype = layer.get_base_layer().weight.dtype
                a = layer.lora_B[adapter].weight.detach() * layer.scaling[adapter]
                changes[name] = Low(a.to(dtype), layer.lora_A[adapter].weight.detach().T.to(dtype, copy=True))
        return changes

    def activate(self, adapter: str | None) -> None:
        """Make one adapter (None: no adapter) the one that the training pass runs with."""
        self.active = adapter
        if self.adapters:
            activate(self.model, adapter)

    def recompute(self, on: bool) -> None:
        """Gradient checkpointing: activations inside a layer are computed again in the backward pass, not kept."""
        if isinstance(self.model, Decoder):
            self.model.checkpointing = on
        else:
            from evolvent.models.huggingface import checkpointing

            checkpointing(self.model, on)

    def logits(self, tokens: Tensor, select: Tensor) -> Tensor:
        """Next-token logits [n, vocabulary] for the n positions of right-padded tokens [rows, time] in `select`.

        Row i of the result belongs to the i-th True of `select` (bool, [rows, time]; never the first column): the
        distribution that the token at that position was drawn from.
        """
        if isinstance(self.model, Decoder):
            before = select.flatten().nonzero()[:, 0] - 1  # the position that predicts it
            return self.model.head(self.model(tokens).flatten(0, 1).index_select(0, before))
        from evolvent.models.huggingface import selected_logits

        return selected_logits(self.model, tokens, select[:, 1:])

    def state_dict(self) -> dict[str, Any]:
        """Weights that training can change, and the version."""
        return {"version": self.version, "weights": self.weights()}

    def weights(self) -> dict[str, Tensor]:
        """All parameters, or those of the adapters where there are any; no copies."""
        keep = {n: p.detach() for n, p in self.model.named_parameters()}
        if self.adapters:
            keep = {n: p for n, p in keep.items() if adapter_of(n) in self.adapters}
        return keep

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights in, by name; the version stays (call `bump`)."""
        named = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, value in weights.items():
                named[name].copy_(value)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.version = state["version"]
        self.set_weights(state["weights"])

    def save(self, folder: Path) -> None:
        """Write a Hugging Face folder: the whole model, the active adapter merged in (see also `lora.save_adapter`)."""
        from evolvent.models.checkpoint import write_policy

        write_policy(self, folder)
