"""The start model, kept frozen for KL terms and preference losses."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from evolvent.models.decoder import Low
from evolvent.models.lora import acting
from evolvent.models.policy import Policy


class Reference:
    """Log-probs under the policy as it was when this was made.

    A full copy of the weights, or, where an adapter is trained, a copy of that adapter: the weights below it stay.
    """

    def __init__(self, policy: Policy, adapter: str | None = None) -> None:
        self.policy = policy
        self.frozen: Policy | None = None
        if policy.adapters:
            low = policy.low(adapter) or {}
            self.low = {name: Low(*(t.clone() for t in change)) for name, change in low.items() if change.a.any()}
        else:
            model = copy.deepcopy(policy.model).requires_grad_(False)
            self.frozen = Policy(model, policy.format, policy.config, policy.name)

    @torch.no_grad()
    def logprobs(self, tokens: Tensor, mask: Tensor, heat: Tensor) -> Tensor:
        """Log-probs [rows, time] of the masked tokens, at the rows' temperatures."""
        from evolvent.learn.forward import token_logprobs

        if self.frozen is not None:
            return token_logprobs(self.frozen, tokens, mask, heat)[0]
        with acting(self.policy, self.low):
            return token_logprobs(self.policy, tokens, mask, heat)[0]
