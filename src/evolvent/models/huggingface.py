"""Models of `transformers` that our decoder does not cover: read, run in training, written. Imported lazily."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.checkpoint
from torch import Tensor, nn

from evolvent.core.errors import UserError

if TYPE_CHECKING:
    from evolvent.models.policy import Policy


def check_causal(folder: Path, config: Mapping[str, Any]) -> None:
    """`UserError` unless `config.json` is that of a causal language model whose weights we can train."""
    if config.get("quantization_config"):
        raise UserError(
            f"{folder} holds quantised weights, which cannot be trained; take the model before quantisation"
        )
    kind, made = config.get("model_type"), config.get("architectures") or []
    # the four families that our decoder runs are recognised without importing transformers
    if made and all(m.endswith("ForCausalLM") for m in made) and kind in ("llama", "mistral", "qwen2", "qwen3"):
        return
    from transformers.models.auto.modeling_auto import CONFIG_MAPPING_NAMES, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    if kind not in CONFIG_MAPPING_NAMES:
        own = "; it brings code of its own, which is never run" if config.get("auto_map") else ""
        raise UserError(f"{folder}: unknown architecture `{kind}`{own}; take a model that transformers knows")
    causal = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or (made and not causal.intersection(made)):
        raise UserError(
            f"{folder} is no causal language model ({made[0] if made else kind}); take a model that writes text"
        )


def read_model(folder: Path, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """Any causal language model, without dropout, so that training sees the distribution that was sampled from."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from evolvent.models.checkpoint import not_whole

    with quiet():
        try:
            config = AutoConfig.from_pretrained(folder)
            no_dropout(config)
            model, found = AutoModelForCausalLM.from_pretrained(
                folder, config=config, dtype=dtype, output_loading_info=True
            )
        except Exception as reason:
            first = (str(reason).strip().splitlines() or [type(reason).__name__])[0]
            raise UserError(f"{folder} cannot be loaded ({first}); copy or save the model again") from None
    if found["missing_keys"]:
        raise not_whole(folder, found["missing_keys"])
    return model.to(device).eval()


def no_dropout(config: Any) -> None:
    """Every dropout rate of a configuration, nested ones included, to zero."""
    for name, value in list(vars(config).items()):
        if isinstance(value, float) and ("drop" in name):
            setattr(config, name, 0.0)
        elif hasattr(value, "model_type"):
            no_dropout(value)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars and warnings of transformers."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def takes(model: nn.Module) -> frozenset[str]:
    """Names of the arguments of a model's forward pass."""
    return frozenset(inspect.signature(type(model).forward).parameters)


def selected_logits(model: nn.Module, tokens: Tensor, select: Tensor) -> Tensor:
    """Logits [n, vocabulary] after the n positions of `select`, bool [rows, time - 1], of right-padded tokens.

    All positions are attended to: padding comes last, and causal attention keeps it out of every position that counts.
    """
    tokens = tokens[:, :-1]
    arguments = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "use_cache": False}
    if "logits_to_keep" in takes(model):
        columns = select.any(0).nonzero()[:, 0]
        arguments["logits_to_keep"] = columns = columns if len(columns) else columns.new_zeros(1)
        select = select[:, columns]
    with training_pass(model):
        return model(**arguments).logits[select]


def checkpointing(model: nn.Module, on: bool) -> None:
    """Recompute activations in the backward pass, or keep them."""
    layers = recomputed_layers(model)
    if not layers:
        raise UserError(f"{type(model).__name__} has no gradient checkpointing; lower learn.micro_tokens instead")
    for layer in layers:
        layer.gradient_checkpointing = on
        layer._gradient_checkpointing_func = partial(torch.utils.checkpoint.checkpoint, use_reentrant=False)


def recomputed_layers(model: nn.Module) -> list[Any]:
    """The layers that transformers can recompute."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    return [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]


@contextmanager
def training_pass(model: nn.Module) -> Iterator[None]:
    """A pass in which layers are recomputed if they are to be.

    transformers recomputes in layers that are in training mode, and these do without their cache. So the flag is set
    on the layers alone, for passes with gradients alone: nothing else changes.
    """
    layers = [x for x in recomputed_layers(model) if x.gradient_checkpointing] if torch.is_grad_enabled() else []
    for layer in layers:
        layer.training = True
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False


def write_model(policy: Policy, folder: Path) -> None:
    """Weights, configuration and generation settings as transformers writes them, the active adapter merged in."""
    from evolvent.models.lora import unloaded

    model = unloaded(policy) if policy.adapters else policy.model
    with quiet():
        model.save_pretrained(folder)  # type: ignore[operator]
    written = json.loads((folder / "config.json").read_text())
    kept = {k: v for k, v in policy.config.items() if "drop" in k}  # `read_model` set these to zero
    (folder / "config.json").write_text(json.dumps(written | kept, indent=2) + "\n")
