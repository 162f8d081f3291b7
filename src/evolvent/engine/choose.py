"""A model specification as a policy and the engine that runs it.

tiny, small, FOLDER, hub id      in this process: our cached decoding for Llama, Mistral and Qwen models,
                                 transformers' forward pass for others; or vLLM, if asked for
http://HOST/v1#NAME, openai:NAME an OpenAI-compatible endpoint (cannot be trained)
simulated                        a simulated model, for tests and studies of scale
"""

from __future__ import annotations

from typing import Any

from evolvent.core.errors import unknown
from evolvent.core.ledger import Ledger
from evolvent.engine.base import Engine
from evolvent.engine.endpoint import EndpointEngine, is_endpoint
from evolvent.engine.huggingface import local_engine
from evolvent.engine.transport import Replay
from evolvent.models.load import load_policy
from evolvent.tasks.base import Task
from evolvent.tasks.registry import load_task

ENGINES = ("auto", "vllm")


def open_model(
    model: str,
    task: str,
    ledger: Ledger,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float32",
    engine: str = "auto",
    replay: Replay | None = None,
) -> tuple[Any, Engine, Task]:
    """Policy, engine and task; the task in the wording that the model reads best.

    `replay` is the log of paid calls, asked before an endpoint is.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES, "engines: auto, vllm")
    if model == "simulated":
        from evolvent.engine.simulated import SimulatedEngine, SimulatedPolicy

        made = load_task(task)
        simulated = SimulatedPolicy(made)
        return simulated, SimulatedEngine(simulated, ledger), made
    if is_endpoint(model):
        remote = EndpointEngine(model, ledger, seed=seed, replay=replay)
        return remote.policy, remote, load_task(task, remote.policy.format.wording)
    policy = load_policy(model, device, dtype)
    made = load_task(task, policy.format.wording)
    if engine == "vllm":
        from evolvent.engine.vllm import VllmEngine

        return policy, VllmEngine(policy, ledger), made
    return policy, local_engine(policy, ledger), made
