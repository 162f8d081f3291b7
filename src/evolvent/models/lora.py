"""Low-rank adapters through PEFT: put into a model, switched, merged, and written in PEFT's format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from evolvent.models.policy import Policy


def merged(policy: Policy) -> dict[str, Tensor]:
    """The weights of our decoder with its adapters merged in."""
    return {n: p.detach() for n, p in policy.model.named_parameters()}
