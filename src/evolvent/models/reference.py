"""The start model, kept frozen for KL terms and preference losses."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from evolvent.models.policy import Policy


class Reference:
    """Log-probs under the policy as it was when this was made; with adapters, under the model without them."""

    def __init__(self, policy: Policy) -> None:
        self.live = policy if policy.adapters else None
        self.frozen = policy
        if not policy.adapters:
            model = copy.deepcopy(policy.model).requires_grad_(False)
            self.frozen = Policy(model, policy.format, policy.config, policy.name)

    @torch.no_grad()
    def logprobs(self, tokens: Tensor, mask: Tensor, heat: Tensor) -> Tensor:
        """Log-probs [rows, time] of the masked tokens, at the rows' temperatures."""
        from evolvent.learn.forward import token_logprobs

        if self.live is None:
            return token_logprobs(self.frozen, tokens, mask, heat)[0]
        active = self.live.active
        self.live.activate(None)
        try:
            return token_logprobs(self.live, tokens, mask, heat)[0]
        finally:
            self.live.activate(active)
