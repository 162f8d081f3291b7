"""The Python interface: one call that does what the command line does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evolvent.run.session import Progress, Result, begin
from evolvent.run.spec import RunSpec


def run(
    recipe: str = "grpo",
    task: str = "countdown",
    model: str = "tiny",
    budget: str = "300 steps",
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    take: Mapping[str, str] | None = None,
    profile: str = "auto",
    device: str = "cpu",
    dtype: str = "float32",
    engine: str = "auto",
    store: str | Path = "runs",
    name: str | None = None,
    watch: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Result:
    """Evolve a model; the result has the policy, the curves, the ledger and the run's folder.

    `settings` maps paths to values, as `--set` does: {"learn.lr": 3e-4, "propose.n": 4}. `options` are those of a
    session: target, final, logs, say. Errors are `UserError`.
    """
    spec = RunSpec(
        recipe, task, model, budget, seed, dict(settings or {}), dict(take or {}), profile, device, dtype, engine
    )
    extra = {"watch": watch} if watch else {}
    return begin(spec, Path(store), name, **extra, **options)
