"""A role with a small random model, and made-up answers of it, for the tests of the learners."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tests.toys import random_policy, role_of

from evolvent.core.records import Batch, Problem, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.learn.fit import Fit
from evolvent.learn.forward import padded, token_logprobs

PROBLEM = Problem("key", (), {})


def make_role(learner: Fit, seed: int = 0) -> Role:
    """A role around a small random model, with its learner set up."""
    role = role_of(random_policy(layers=1, width=16, context=64, seed=seed), seed=seed, slots={"learn": learner})
    learner.setup(role)
    return role


def make_rows(role: Role, count: int, seed: int = 0, drift: float = 0.2, longest: int = 20) -> list[Trajectory]:
    """Answers of unequal length, some with a tool's reply inside; their log-probs are the policy's, `drift` away."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        size = int(rng.integers(5, longest))
        mask = np.arange(size) >= 4
        if i % 3 == 0:
            mask[size - 3 : size - 1] = False
        mask[-1] = i % 4 != 0  # some end in what the policy did not write
        mask[4] = True
        tokens = rng.integers(4, 90, size).astype(np.int32)
        rows.append(Trajectory(i, PROBLEM, tokens, mask, np.zeros(size, np.float32), temperature=1.0 + 0.1 * (i % 2)))
    tokens, mask, _, heat = padded(rows, role.policy.format.pad, role.policy.device)
    with torch.no_grad():
        logprob = token_logprobs(role.policy, tokens, mask, heat)[0].numpy()
    for row, values in zip(rows, logprob, strict=True):
        noise = rng.normal(0, drift, len(row.tokens)).astype(np.float32) if drift else 0.0
        row.logprob = np.where(row.mask, np.pad(values, (0, longest))[: len(row.tokens)] + noise, 0).astype(np.float32)
    return rows


def make_batch(role: Role, count: int = 10, seed: int = 0, **options: Any) -> Batch:
    """Answers with random advantages; every fourth row has none."""
    rows = make_rows(role, count, seed, **options)
    weight = np.random.default_rng(seed + 1).normal(0, 1, count).astype(np.float32)
    weight[::4] = 0
    return Batch(rows, weight, columns={"group": np.arange(count) // 2})


def gradients(role: Role) -> torch.Tensor:
    """The gradient of the last update, flat. The learner must not clip it."""
    return torch.cat([p.grad.flatten() for p in role.policy.model.parameters() if p.grad is not None]).clone()


def weights(role: Role) -> torch.Tensor:
    """All weights, flat."""
    return torch.cat([p.detach().flatten() for p in role.policy.model.parameters()]).clone()


def tell(role: Role, *batches: Batch, t: int = 0) -> Step:
    """One step of learning; the changes are in the step."""
    s = Step(t, role)
    s.changes += role.slots["learn"].tell(list(batches), s)
    return s
