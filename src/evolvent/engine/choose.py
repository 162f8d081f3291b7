"""The engine for a policy."""

from __future__ import annotations

from evolvent.core.ledger import Ledger
from evolvent.engine.base import Engine
from evolvent.engine.local import LocalEngine
from evolvent.models.decoder import Decoder
from evolvent.models.policy import Policy


def make_engine(policy: Policy, ledger: Ledger) -> Engine:
    """Our own cached decoding where the model is our decoder, transformers' forward pass for any other model."""
    if isinstance(policy.model, Decoder):
        return LocalEngine(policy, ledger)
    from evolvent.engine.huggingface import HuggingFaceEngine

    return HuggingFaceEngine(policy, ledger)
