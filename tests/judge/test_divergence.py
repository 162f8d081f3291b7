"""The KL penalty as a reward, on real samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from tests.toys import random_policy, role_of

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.judge.divergence import KLPenalty
from evolvent.judge.verify import Verify
from evolvent.rollout.sample import Sample


def sampled(role: Role, n: int = 64) -> list[Group]:
    """Judged answers of the policy to two problems."""
    s = Step(0, role, [role.policy_actor()])
    requests = [Request(role.task.draw("train", s.rng("problem", i)), n) for i in range(2)]
    groups = Sample(temperature=0.8)(requests, s)
    role.slots["judge"](groups, s)
    return groups


def role_with(beta: float, move: float = 0.0) -> Role:
    """A role whose policy has moved away from the start model by random noise."""
    part = KLPenalty(Verify(), beta=beta)
    role = role_of(random_policy(1, 16, spread=3.0), slots={"judge": part})
    part.setup(role)
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in role.policy.model.parameters():
            p.add_(move * torch.randn(p.shape, generator=noise))
    return role


def penalties(groups: Sequence[Group]) -> np.ndarray:
    """The rewards `kl`."""
    return np.array([t.rewards["kl"].value for g in groups for t in g.valid])


def test_at_the_start_there_is_no_penalty() -> None:
    np.testing.assert_allclose(penalties(sampled(role_with(0.1))), 0, atol=1e-4)


def test_the_penalty_is_the_log_ratio_of_whole_answers() -> None:
    role = role_with(0.5, move=0.2)
    groups = sampled(role)
    assert role.reference is not None
    model = role.reference.frozen.model
    for t in [g.trajectories[0] for g in groups]:
        logits = model.head(model(torch.from_numpy(t.tokens.astype(np.int64))[None]))[0] / t.temperature
        logprob = torch.log_softmax(logits, -1)
        reference = sum(logprob[at - 1, int(t.tokens[at])].item() for at in np.flatnonzero(t.mask))
        assert t.rewards["kl"].value == pytest.approx(-0.5 * (t.logprob.sum() - reference), abs=1e-3)
    values = penalties(groups)
    # single answers go both ways, the mean is an estimate of the KL divergence, which is positive
    assert values.mean() < -3 * values.std() / len(values) ** 0.5 < 0


def test_without_a_coefficient_there_is_no_reference_and_no_cost() -> None:
    role = role_with(0.0, move=0.2)
    groups = sampled(role)
    assert role.reference is None
    assert all("kl" not in t.rewards for g in groups for t in g.trajectories)
    with pytest.raises(UserError, match="beta"):
        KLPenalty(Verify(), beta=-1.0).check(None)
