"""Low-rank adapters (LoRA, arXiv 2106.09685) through PEFT: put into a model, switched, merged, read and written.

PEFT replaces linear maps by its own modules, in our decoder as in models of `transformers`, and keeps any number of
named adapters in each. Training runs with the active one. Engines do not: they get an adapter as low-rank changes
(`Policy.low`), so that the rows of one batch may act with different ones.
"""

from __future__ import annotations

import copy
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from evolvent.core.errors import UserError, nearest, unknown

if TYPE_CHECKING:
    from evolvent.models.decoder import Low, LowRank
    from evolvent.models.policy import Policy

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
OTHER_MODEL = f"; take the model that it was trained on, and name that as base_model_name_or_path in {CONFIG}"
PREFIX = "base_model.model."  # before every name in PEFT's files
PLACE = re.compile(r"\.lora_[AB]\.([^.]+)\.")
FIELDS = ("rank", "alpha", "targets")


@dataclass(frozen=True)
class Lora:
    """W + alpha / rank * B A, with B [out, rank] and A [rank, in].

    alpha    None: twice the rank
    targets  names of linear maps, as in `q_proj`; empty: all of them, the output head left out
    """

    rank: int = 16
    alpha: float | None = None
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.rank, int) or self.rank < 1:
            raise UserError(f"the rank of a LoRA adapter must be a whole number above 0, got {self.rank}; try 16")
        if self.alpha is not None and not self.alpha > 0:
            raise UserError(f"the alpha of a LoRA adapter must be above 0, got {self.alpha}; try twice the rank")

    @property
    def scale(self) -> float:
        """What B A is multiplied with."""
        return (2 * self.rank if self.alpha is None else self.alpha) / self.rank

    @classmethod
    def parse(cls, text: str) -> Lora:
        """`16`, or `rank=16,alpha=32,targets=q_proj+v_proj`."""
        values: dict[str, Any] = {}
        for part in text.split(","):
            name, given, value = part.strip().partition("=")
            if not given:
                name, value = "rank", name
            if name not in FIELDS or name in values:
                raise UserError(f"`{text}` does not describe an adapter{nearest(name, FIELDS)}; write 16 or "
                                "rank=16,alpha=32,targets=q_proj+v_proj")  # fmt: skip
            values[name] = value
        try:
            return cls(
                int(values.get("rank", cls.rank)),
                float(values["alpha"]) if "alpha" in values else None,
                tuple(t.strip() for t in values.get("targets", "").split("+") if t.strip()),
            )
        except ValueError:
            raise UserError(f"`{text}`: rank is a whole number and alpha a number, as in rank=16,alpha=32") from None


def adapter_of(parameter: str) -> str | None:
    """The adapter that a parameter belongs to, by its name; None for the model's own."""
    found = PLACE.search(parameter)
    return found[1] if found else None


def linear_names(model: nn.Module) -> list[str]:
    """Names that adapters can target: the last part of the names of all linear maps but the output head's."""
    find_head: Any = getattr(model, "get_output_embeddings", lambda: None)
    head = find_head()
    names = set()
    for name, module in model.named_modules():
        base = getattr(module, "base_layer", module)
        inside = name.endswith(".base_layer") or adapter_of(f"{name}.weight") is not None
        if base is not head and not inside and (isinstance(base, nn.Linear) or type(base).__name__ == "Conv1D"):
            names.add(name.rpartition(".")[2])
    return sorted(names - {"lm_head"})


def attach(policy: Policy, name: str, options: Lora, rng: np.random.Generator) -> None:
    """Put a new adapter into the policy's model and make it the active one. It changes nothing at first: B is zero.

    A is uniform in +-1/sqrt(in), as PEFT and torch initialise it, and drawn from `rng`. The model's own weights are
    frozen. Adapters are float32, whatever the model is.
    """
    if name in policy.adapters:
        raise UserError(f"the model has an adapter `{name}` already; name the new one otherwise")
    if not name.isidentifier():
        raise UserError(f"`{name}` cannot name an adapter; use letters, digits and underscores")
    known = linear_names(policy.model)
    for target in options.targets:
        if target not in known:
            raise unknown("LoRA target", target, known, "this model has " + ", ".join(known))
    _inject(policy.model, name, options.rank, options.scale * options.rank, options.targets or tuple(known))
    policy.adapters += (name,)
    with torch.no_grad():
        for parameter_name, parameter in policy.trainable(name).items():
            if ".lora_A." in parameter_name:
                bound = parameter.shape[1] ** -0.5
                drawn = rng.uniform(-bound, bound, tuple(parameter.shape)).astype(np.float32)
                parameter.copy_(torch.from_numpy(drawn))
            else:
                parameter.zero_()
    policy.activate(name)


def _inject(model: nn.Module, name: str, rank: int, alpha: float, targets: tuple[str, ...]) -> None:
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(targets), lora_dropout=0.0, bias="none")
    # PEFT initialises from the global generator, and `attach` draws again; that there are several is on purpose
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
        inject_adapter_in_model(config, model, name)
    for parameter_name, parameter in model.named_parameters():
        if adapter_of(parameter_name) is None:
            parameter.requires_grad_(False)
        elif adapter_of(parameter_name) == name:
            parameter.data = parameter.data.float()


def layers(model: nn.Module) -> dict[str, Any]:
    """PEFT's modules in a model, by the name of the linear map that each replaced."""
    return {n: m for n, m in model.named_modules() if hasattr(m, "lora_A")}


def activate(model: nn.Module, adapter: str | None) -> None:
    """Run forward passes with one adapter, or with none."""
    for layer in layers(model).values():
        if adapter is not None:
            layer.set_adapter(adapter)
        layer.enable_adapters(adapter is not None)


@contextmanager
def acting(policy: Policy, low: LowRank | None) -> Iterator[None]:
    """Within the context, forward passes run with these low-rank changes instead of the active adapter.

    For any model: each change is added to the output of the linear map that it is named after. All rows share it.
    """
    before = policy.active
    policy.activate(None)
    handles = []
    try:
        for name, change in (low or {}).items():
            handles.append(policy.model.get_submodule(name).register_forward_hook(_Add(change)))
        yield
    finally:
        for handle in handles:
            handle.remove()
        policy.activate(before)


class _Add:
    """A forward hook that adds (x b) a^T."""

    def __init__(self, change: Low) -> None:
        self.change = change

    def __call__(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return output + (inputs[0] @ self.change.b) @ self.change.a.mT


# --- whole models ---


def merged(policy: Policy) -> dict[str, Tensor]:
    """The weights of our decoder under the names of the checkpoint, with the active adapter merged in."""
    low = policy.low(to_merge(policy)) or {}
    weights = {}
    for name, parameter in policy.model.named_parameters():
        if adapter_of(name) is None:
            module, _, kind = name.replace(".base_layer.", ".").rpartition(".")
            value = parameter.detach()
            if kind == "weight" and module in low:
                a, b = low[module]
                value = (value.float() + a.float() @ b.float().T).to(value.dtype)
            weights[f"{module}.{kind}"] = value
    return weights


def unloaded(policy: Policy) -> nn.Module:
    """A copy of a model of `transformers` with the active adapter merged in, and without PEFT's modules."""
    adapter = to_merge(policy)
    model = copy.deepcopy(policy.model)
    for name, layer in layers(model).items():
        if adapter in layer.lora_A:
            layer.merge(adapter_names=[adapter])
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, layer.get_base_layer())
    vars(model).pop("peft_config", None)
    return model


def to_merge(policy: Policy) -> str | None:
    """The adapter that a merged model contains: the active one, or the only one."""
    if policy.active is None and len(policy.adapters) > 1:
        raise UserError(
            f"the model has the adapters {', '.join(policy.adapters)}; activate the one to merge, or save each alone"
        )
    return policy.active or (policy.adapters[0] if policy.adapters else None)


# --- PEFT's files ---


def save_adapter(policy: Policy, name: str, folder: Path) -> None:
    """Write one adapter in PEFT's format; `PeftModel.from_pretrained(base, folder)` reads it."""
    tensors = {
        PREFIX + n.replace(f".{name}.", "."): p.detach().contiguous().cpu() for n, p in policy.trainable(name).items()
    }
    configs: Any = policy.model.peft_config
    config = copy.copy(configs[name])
    config.base_model_name_or_path, config.task_type, config.inference_mode = policy.source, "CAUSAL_LM", True
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{WEIGHTS}.part"
    save_file(tensors, part, metadata={"format": "pt"})
    os.replace(part, folder / WEIGHTS)
    config.save_pretrained(str(folder))


def read_adapter_config(folder: Path) -> dict[str, Any]:
    """The `adapter_config.json` of a folder; `UserError` if it is no LoRA adapter that we can run."""
    try:
        config = json.loads((folder / CONFIG).read_text())
    except (OSError, json.JSONDecodeError) as reason:
        raise UserError(f"{folder / CONFIG} cannot be read ({reason}); save the adapter again") from None
    extras = [k for k in ("use_dora", "modules_to_save", "trainable_token_indices", "alpha_pattern") if config.get(k)]
    if config.get("peft_type") != "LORA" or extras or config.get("bias", "none") != "none":
        what = extras[0] if extras else config.get("peft_type", "no type")
        raise UserError(f"{folder} holds an adapter with {what}; only plain LoRA adapters can be used: merge it first")
    return config


def load_adapter(policy: Policy, name: str, folder: Path) -> None:
    """Attach an adapter that PEFT or `save_adapter` wrote, and make it the active one."""
    config = read_adapter_config(folder)
    try:
        tensors = load_file(folder / WEIGHTS)
    except Exception as reason:
        raise UserError(f"{folder / WEIGHTS} cannot be read ({reason}); save the adapter again") from None
    rank = int(config["r"])
    alpha = float(config["lora_alpha"]) * (rank**0.5 if config.get("use_rslora") else 1.0)
    ranks = {t.shape[0] for n, t in tensors.items() if ".lora_A." in n}
    if ranks != {rank}:
        raise UserError(f"{folder}: the adapter has ranks {sorted(ranks)} where {rank} was said; use one rank for all")
    targets = tuple(sorted({n.split(".lora_")[0].rpartition(".")[2] for n in tensors}))
    attach(policy, name, Lora(rank, alpha, targets), np.random.default_rng(0))
    wanted = policy.trainable(name)
    found = {named(n, name): t for n, t in tensors.items()}
    missing, extra = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    if missing or extra:
        raise UserError(
            f"{folder} does not fit this model: "
            + (f"the model has no {extra[0]}" if extra else f"the adapter has no {missing[0]}")
            + OTHER_MODEL
        )
    _copy(wanted, found, folder)


def named(key: str, adapter: str) -> str:
    """A name in PEFT's files as the name of our parameter."""
    return re.sub(r"\.(lora_[AB])\.", rf".\1.{adapter}.", key.removeprefix(PREFIX))


def _copy(wanted: Mapping[str, nn.Parameter], found: Mapping[str, Tensor], folder: Path) -> None:
    with torch.no_grad():
        for name, parameter in wanted.items():
            if parameter.shape != found[name].shape:
                raise UserError(
                    f"{folder}: {name} is {list(found[name].shape)}, the model has {list(parameter.shape)}{OTHER_MODEL}"
                )
            parameter.copy_(found[name])
