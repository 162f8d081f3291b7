"""Gradient descent on batches: minibatches, micro-batches by token budget, AdamW. Losses are its subclasses'."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evolvent.core.errors import UserError
from evolvent.core.out_of_memory import explained
from evolvent.core.records import Batch, Change
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.base import Actor
from evolvent.learn.forward import extent, pack, padded, token_logprobs
from evolvent.learn.objective import Tokens, Totals
from evolvent.models.products import fast


@dataclass
class Fit:
    """Fits the policy to weighted rows.

    epochs, minibatches  passes over the step's rows, and updates a pass
    micro_tokens         tokens (with padding) held in one forward pass; the gradient does not depend on it
    warmup               updates over which the learning rate rises to `lr`
    max_grad_norm        clips the norm of the gradient
    recompute            gradient checkpointing: less memory, more time, the same gradient
    """

    lr: float = 1e-6
    epochs: int = 1
    minibatches: int = 1
    warmup: int = 0
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    micro_tokens: int | None = None
    recompute: bool = False
    updates: int = field(default=0, init=False)

    def setup(self, role: Role) -> None:
        """Find the parameters to train and make the optimizer."""
        self.role = role
        check_rates(self)
        if self.recompute:
            role.policy.recompute(True)
        self.parameters = role.policy.trainable(role.adapter)
        self.fused = {p.device.type for p in self.parameters.values()} <= {"cpu", "cuda"}
        self.optimizer = torch.optim.AdamW(
            list(self.parameters.values()), self.lr, self.betas, weight_decay=self.weight_decay, fused=self.fused
        )

    def check(self, system: object) -> None:
        """Counts and rates in range."""
        for name in ("epochs", "minibatches"):
            if getattr(self, name) < 1:
                raise UserError(f"learn.{name} must be at least 1, got {getattr(self, name)}")
        if not self.max_grad_norm > 0 or self.warmup < 0 or (self.micro_tokens is not None and self.micro_tokens < 1):
            raise UserError(
                "learn.max_grad_norm must be above 0, learn.warmup at least 0 and learn.micro_tokens at least 1, got "
                f"{self.max_grad_norm}, {self.warmup} and {self.micro_tokens}"
            )

    def ask(self, s: Step) -> list[Actor]:
        """The policy as it is."""
        return [s.role.policy_actor()]

    @explained("learn")
    def tell(self, batches: Sequence[Batch], s: Step) -> list[Change]:
        """Update the policy; one new version, unless there is nothing to learn from."""
        batches = [b for b in batches if len(b.rows)]
        before = self.role.policy.version
        updates = 0
        self.counts: dict[str, float] = {}
        self.role.policy.activate(self.role.adapter)
        policy, longest = self.role.policy, max((len(t.tokens) for b in batches for t in b.rows), default=0)
        with fast(policy.device, policy.size, longest):
            views = [self.prepare(b, s) for b in batches]
            for epoch in range(self.epochs):
                for part in range(self.minibatches):
                    updates += self._update(views, epoch, part, s)
        tokens = self.counts.pop("tokens", 0.0)
        for name, count in self.counts.items():
            s.log(f"learn/{name}", count / max(1.0, tokens))
        if not updates:
            return []
        s.metrics["learn/loss"] /= updates
        s.log("learn/updates", updates)
        return [Change("learn", before, self.role.policy.bump())]

    # --- what a subclass says ---

    def loss(self, k: Tokens) -> Tensor:
        """The loss of some rows; a minibatch's loss is the sum over its micro-batches."""
        raise NotImplementedError

    def silent(self, batch: Batch) -> np.ndarray:
        """Rows that cannot have a gradient, bool [rows]; they count in the totals but cost no pass."""
        if isinstance(batch.weight, np.ndarray):
            return batch.weight == 0
        return np.array([not np.any(w) for w in batch.weight])

    def units(self, batch: Batch) -> list[np.ndarray]:
        """Rows that must stay in one micro-batch, as arrays of row numbers."""
        return [np.array([i]) for i in range(len(batch.rows))]

    def wants(self) -> tuple[bool, bool]:
        """Whether the loss reads entropies, and reference log-probs."""
        return False, False

    def rate(self, s: Step) -> float:
        """Learning rate of the update that comes next; called when the parameters have their gradients, clipped."""
        return self.lr * min(1.0, self.updates / max(1, self.warmup))

    def count(self, **amounts: float) -> None:
        """Add to the counts of this step; each is logged as a share of `tokens`."""
        for name, amount in amounts.items():
            self.counts[name] = self.counts.get(name, 0.0) + amount

    # --- one update ---

    def prepare(self, batch: Batch, s: Step) -> Prepared:
        """What stays the same over epochs."""
        return Prepared(batch, self.units(batch), self.silent(batch), s.role.limit)

    def _update(self, views: list[Prepared], epoch: int, part: int, s: Step) -> bool:
        """One optimizer step on a minibatch of every batch; False if no row had a gradient."""
        policy = self.role.policy
        budget = self.micro_tokens or (2048 if policy.device.type == "cpu" else 16384)
        self.optimizer.zero_grad(set_to_none=True)
        rows = 0
        for number, view in enumerate(views):
            order = s.rng("minibatches", number, epoch).permutation(len(view.units))
            chosen = np.sort(order[part :: self.minibatches])  # an even share; all of them with one minibatch
            units = [view.units[i] for i in chosen]
            totals = view.totals(units)
            live = [u for u in units if not view.silent[u].all()]
            for micro in pack(live, view.lengths, budget):
                loss = self.loss(self.view(view, micro, totals, s)) * view.batch.coefficient
                loss.backward()
                rows += len(micro)
                s.metrics["learn/loss"] = s.metrics.get("learn/loss", 0.0) + float(loss.detach())
                self.role.ledger.charge(trained=int(view.lengths[micro].sum()))
        s.metrics["learn/rows"] = s.metrics.get("learn/rows", 0.0) + rows
        if not rows:
            return False
        norm = torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), self.max_grad_norm)
        if not torch.isfinite(norm):
            s.log("learn/skipped", s.metrics.get("learn/skipped", 0.0) + 1)
            return False
        self.updates += 1
        rate = self.rate(s)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        s.log("learn/grad_norm", float(norm))
        return True

    def view(self, view: Prepared, rows: np.ndarray, totals: Totals, s: Step) -> Tokens:
        """The training pass over some rows."""
        policy = self.role.policy
        trajectories = [view.batch.rows[i] for i in rows]
        tokens, mask, sampled, heat = padded(trajectories, policy.format.pad, policy.device)
        with_entropy, with_reference = self.wants()
        logprob, entropy = token_logprobs(policy, tokens, mask, heat, with_entropy)
        reference = None
        if with_reference:
            assert s.role.reference is not None
            reference = s.role.reference.logprobs(tokens, mask, heat)
        old = sampled if view.old is None else torch.zeros_like(sampled)
        if view.old is not None:
            for i, row in enumerate(rows):
                end = min(old.shape[1], len(view.old[row]))
                old[i, :end] = torch.from_numpy(view.old[row][:end]).to(old.device)
        columns = {n: torch.from_numpy(np.asarray(c)[rows]).to(policy.device) for n, c in view.batch.columns.items()}
        return Tokens(
            logprob,
            old,
            sampled,
            self._weights(view.batch, rows, mask),
            mask,
            columns,
            totals,
            s.t,
            reference,
            entropy,
        )

    @staticmethod
    def _weights(batch: Batch, rows: np.ndarray, mask: Tensor) -> Tensor:
        if isinstance(batch.weight, np.ndarray):
            return torch.from_numpy(batch.weight[rows]).to(mask.device)[:, None].expand(mask.shape)
        weight = torch.zeros(mask.shape)
        for i, row in enumerate(rows):
            values = torch.from_numpy(np.asarray(batch.weight[row], np.float32))[: mask.shape[1]]
            weight[i, : len(values)] = values
        return weight.to(mask.device)

    def state_dict(self) -> dict[str, Any]:
        """Optimizer moments by parameter name, and the number of updates; no copies."""
        state = self.optimizer.state
        moments = {n: dict(state[p]) for n, p in self.parameters.items() if p in state}
        return {"updates": self.updates, "moments": moments}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.updates = state["updates"]
        self.optimizer.state.clear()
        for name, saved in state["moments"].items():
            parameter = self.parameters[name]
            self.optimizer.state[parameter] = {
                # the fused kernel wants its step count beside the parameter, the plain one on the CPU
                key: value.clone().to(parameter.device if key != "step" or self.fused else "cpu")
                for key, value in saved.items()
            }


def check_rates(learner: Any) -> None:
    """`UserError` for what an optimizer cannot use: `lr`, `betas` and, if there is one, `weight_decay`."""
    if not 0 < learner.lr < math.inf:
        raise UserError(
            f"learn.lr must be above 0 and finite, got {learner.lr}; use the recipe no-change to learn nothing"
        )
    decay = getattr(learner, "weight_decay", 0.0)
    if not all(0 <= beta < 1 for beta in learner.betas) or not 0 <= decay < math.inf:
        raise UserError(
            f"learn.betas must be in [0, 1) and learn.weight_decay at least 0, got {learner.betas} and {decay}"
        )


class Prepared:
    """A batch with what its minibatches need: lengths, units, silent rows, and recomputed log-probs if asked for."""

    def __init__(self, batch: Batch, units: list[np.ndarray], silent: np.ndarray, limit: int) -> None:
        self.batch, self.units, self.silent, self.limit = batch, units, silent, limit
        self.lengths = np.array([extent(t) for t in batch.rows])
        self.written = np.array([np.count_nonzero(t.mask[1:]) for t in batch.rows])  # nothing predicts the first token
        self.groups = np.asarray(batch.columns.get("group", np.arange(len(batch.rows))))
        self.old: list[np.ndarray] | None = None

    def totals(self, units: Sequence[np.ndarray]) -> Totals:
        """Of a minibatch, silent rows included."""
        rows = np.concatenate(units) if units else np.zeros(0, int)
        return Totals(len(rows), int(self.written[rows].sum()), len(np.unique(self.groups[rows])), self.limit)
