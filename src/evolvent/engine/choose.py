"""A model specification as a policy and the engine that runs it.

tiny, small, FOLDER, hub id      in this process: our cached decoding for Llama, Mistral and Qwen models,
                                 transformers' forward pass for others; or vLLM, if asked for
http://HOST/v1#NAME, openai:NAME an OpenAI-compatible endpoint (cannot be trained)
simulated                        a simulated model, for tests and studies of scale
none                             no model, for recipes that write no text
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evolvent.core import places
from evolvent.core.build import check_type
from evolvent.core.errors import UserError, unknown
from evolvent.core.ledger import Ledger
from evolvent.engine import SPECIAL, is_endpoint
from evolvent.engine.base import Engine
from evolvent.tasks.base import Task
from evolvent.tasks.registry import load_task

if TYPE_CHECKING:
    from evolvent.engine.transport import Replay

ENGINES = ("auto", "vllm")
SERVICE = (  # what a run may set of an endpoint, as `engine.concurrency`; see `EndpointEngine` and `Transport`
    "prices", "requests_per_minute", "tokens_per_minute", "concurrency", "timeout", "attempts", "logprobs", "variable",
)  # fmt: skip


def open_model(
    model: str,
    task: str,
    ledger: Ledger,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float32",
    engine: str = "auto",
    replay: Replay | None = None,
    service: Mapping[str, Any] | None = None,
) -> tuple[Any, Engine, Task]:
    """Policy, engine and task; the task in the wording that the model reads best.

    `replay` is the log of paid calls, asked before an endpoint is; `service` its settings, see `SERVICE`.
    """
    if service and not is_endpoint(model):
        raise UserError(f"nothing reads engine.{next(iter(service))}: {model} is no endpoint (http://host/v1#name)")
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES, "engines: auto, vllm")
    if model in SPECIAL:
        made = load_task(task)
        stand_in, running = places.at(SPECIAL[model])(made, ledger)
        return stand_in, running, made
    if is_endpoint(model):
        from evolvent.engine.endpoint import EndpointEngine

        remote = EndpointEngine(model, ledger, seed=seed, replay=replay, **checked(service or {}))
        return remote.policy, remote, load_task(task, remote.policy.format.wording)
    from evolvent.engine.huggingface import local_engine
    from evolvent.models.load import load_policy

    policy = load_policy(model, device, dtype)
    made = load_task(task, policy.format.wording)
    if engine == "vllm":
        from evolvent.engine.vllm import VllmEngine

        return policy, VllmEngine(policy, ledger), made
    return policy, local_engine(policy, ledger), made


def checked(service: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an endpoint in their types; `UserError` for unknown ones and impossible values."""
    from evolvent.engine.endpoint import EndpointEngine

    types, made = typing.get_type_hints(EndpointEngine.__init__), {}
    for name, value in service.items():
        if name not in SERVICE:
            raise unknown("setting", f"engine.{name}", [f"engine.{known}" for known in SERVICE], ", ".join(SERVICE))
        made[name] = check_type(f"engine.{name}", value, types[name])
        for number in made[name] if name == "prices" and made[name] else (made[name],):
            if isinstance(number, int | float) and not isinstance(number, bool) and number < 0:
                raise UserError(f"engine.{name} must not be negative, got {number:g}")
    return made
