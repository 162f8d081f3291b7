"""Evolvent: evolve a model, an agent or a program on a task with a verifier.

import evolvent as ev
result = ev.run(recipe="grpo", task="countdown", model="tiny", budget="300 steps")
result.policy, result.curve("outcome"), result.ledger
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from evolvent.run.api import run

__all__ = ["__version__", "run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from evolvent.run import api

        return getattr(api, name)
    raise AttributeError(f"module 'evolvent' has no attribute {name!r}")
