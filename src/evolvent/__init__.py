"""Evolvent: evolve a model, an agent or a program on a task with a verifier.

import evolvent as ev
result = ev.run(recipe="grpo", task="countdown", model="tiny", budget="300 steps")
result.policy, result.curve("outcome"), result.ledger
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# oneDNN keeps what it prepared for every shape of product that it has met, up to a thousand of them: a gigabyte after
# thirty steps, and no faster. It reads these once, so they come before torch.
for _name in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
    os.environ.setdefault(_name, "32")

if TYPE_CHECKING:
    from evolvent.run.api import run

__all__ = ["__version__", "run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from evolvent.run import api

        return getattr(api, name)
    raise AttributeError(f"module 'evolvent' has no attribute {name!r}")
