"""The KL penalty as a reward: what an answer costs for being likelier than under the start model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Group
from evolvent.core.role import Role
from evolvent.core.step import Judge, Step
from evolvent.learn.forward import pack, padded

MICRO_TOKENS = 8192


@dataclass
class KLPenalty:
    """Reward `kl` = -beta (log pi(y) - log ref(y)), summed over the tokens that the policy wrote.

    Its expectation is -beta times the KL divergence of whole answers, and so is its share of the policy gradient
    (RLOO, arXiv 2402.14740, section 2). With beta 0 there is no reference and no cost.
    """

    inner: Judge
    beta: float = 0.03

    def setup(self, role: Role) -> None:
        """Keep the start model."""
        if self.beta:
            role.need_reference()

    def check(self, system: object) -> None:
        """The coefficient must not be negative."""
        if self.beta < 0:
            raise UserError(f"judge.kl_penalty.beta must be at least 0, got {self.beta}")

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge, then charge what was judged."""
        self.inner(groups, s)
        rows = [t for g in groups for t in g.valid]
        if not self.beta or not rows:
            return
        reference, policy = s.role.reference, s.role.policy
        assert reference is not None
        lengths = np.array([len(t.tokens) for t in rows])
        divergence = np.zeros(len(rows))
        for part in pack([np.array([i]) for i in range(len(rows))], lengths, MICRO_TOKENS):
            tokens, mask, sampled, heat = padded([rows[i] for i in part], policy.format.pad, policy.device)
            logratio = (sampled - reference.logprobs(tokens, mask, heat)).masked_fill(~mask, 0.0)
            divergence[part] = logratio.sum(1).double().cpu().numpy()
            s.role.ledger.charge(prefilled=int(lengths[part].sum()))
        for t, value in zip(rows, divergence, strict=True):
            t.reward("kl", -self.beta * float(value), "reference")
        s.log("kl", float(divergence.mean()))
