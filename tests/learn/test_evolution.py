"""The evolution-strategies estimate: its formula, its direction, pairs, state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.learn.learning_system import tell, weights
from tests.toys import random_policy, role_of, stub

from evolvent.core.errors import UserError
from evolvent.core.records import Batch
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.perturb import draw, perturbation
from evolvent.learn.evolution import LowRankES


def make(**options: Any) -> tuple[Role, LowRankES]:
    """A role with a small random model and evolution strategies as its learner."""
    learner = LowRankES(**{"population": 8, "sigma": 0.1, "lr": 1e-2, **options})
    role = role_of(random_policy(layers=1, width=16), slots={"learn": learner})
    learner.setup(role)
    return role, learner


def batch(fitness: list[float], each: int = 1, **options: Any) -> Batch:
    """Rows of every member in turn, whose weight is the member's fitness."""
    rows = [stub(i, [1, 5], f"member-{i % len(fitness)}") for i in range(each * len(fitness))]
    return Batch(rows, np.array(fitness * each, np.float32), **options)


def taken(learner: LowRankES, role: Role, *batches: Batch, t: int = 0) -> dict[str, torch.Tensor]:
    """The gradients that the optimizer is given."""
    seen: dict[str, torch.Tensor] = {}
    step = learner.optimizer.step

    def noted(*args: Any, **more: Any) -> Any:
        seen.update({n: m.weight.grad.clone() for n, m in learner.modules.items() if m.weight.grad is not None})
        return step(*args, **more)

    learner.optimizer.step = noted  # type: ignore[method-assign]
    tell(role, *batches, t=t)
    del learner.optimizer.step
    return seen


@pytest.mark.parametrize("rank", [1, 3])
def test_the_gradient_is_the_formula_member_by_member(rank: int) -> None:
    role, learner = make(rank=rank)
    fitness = np.random.default_rng(0).normal(size=8)
    members = learner.ask(Step(3, role))
    found = taken(learner, role, batch(fitness.tolist()), t=3)
    for name, module in learner.modules.items():
        wanted = torch.zeros_like(module.weight)
        for f, member in zip(fitness, members, strict=True):
            noise: Any = member.low
            a, b = draw(noise.seed, name, module.out_features, module.in_features, rank)
            wanted -= 8**0.5 / 8 * f * noise.sign * (a @ b.T) / rank**0.5
        torch.testing.assert_close(found[name], wanted, atol=1e-5, rtol=1e-4)


def test_members_come_in_pairs_of_opposite_noise_anew_each_step() -> None:
    role, learner = make()
    members = learner.ask(Step(0, role))
    changes = [perturbation(role.policy.model, m.low) for m in members]  # type: ignore[arg-type]
    name = next(iter(learner.modules))
    made = [c[name].a @ c[name].b.T for c in changes]
    assert [m.id for m in members] == [f"member-{i}" for i in range(8)]
    for plus, minus in zip(made[0::2], made[1::2], strict=True):
        torch.testing.assert_close(plus, -minus)
    assert not torch.allclose(made[0], made[2])
    later = perturbation(role.policy.model, learner.ask(Step(1, role))[0].low)  # type: ignore[arg-type]
    assert not torch.allclose(made[0], later[name].a @ later[name].b.T)
    deviation = torch.stack(made).std()
    assert deviation == pytest.approx(0.1, rel=0.2)


def test_it_climbs() -> None:
    """Fitness that is linear in one weight matrix: the estimate points up, closer the more members there are.

    With P pairs in d dimensions its cosine is about sqrt(P / (P + d)).
    """
    for population in (32, 512):
        role, learner = make(population=population)
        name, module = next(iter(learner.modules.items()))
        up = torch.randn(module.weight.shape, generator=torch.Generator().manual_seed(0))
        fitness = []
        for member in learner.ask(Step(0, role)):
            change = perturbation(role.policy.model, member.low)[name]  # type: ignore[arg-type]
            fitness.append(float((up * (change.a @ change.b.T)).sum()))
        descent = -taken(learner, role, batch(fitness))[name]
        cosine = float(torch.nn.functional.cosine_similarity(descent.flatten(), up.flatten(), dim=0))
        pairs = population / 2
        assert cosine == pytest.approx((pairs / (pairs + up.numel())) ** 0.5, abs=0.12)


def test_only_linear_maps_move_and_the_version_goes_on() -> None:
    role, _ = make()
    before = {n: w.clone() for n, w in role.policy.weights().items()}
    s = tell(role, batch([1.0, 0, 0, 0, 0, 0, 0, 0]))
    moved = {n for n, w in role.policy.weights().items() if not torch.equal(before[n], w)}
    assert moved == {n for n in before if "proj" in n}
    assert [(c.before, c.after) for c in s.changes] == [(0, 1)]
    assert s.metrics["learn/grad_norm"] > 0


@pytest.mark.parametrize("fitness", [[0.0] * 8, [3.0] * 8, [1.0, 1, -2, -2, 0, 0, 5, 5]])
def test_pairs_that_are_equally_fit_say_nothing(fitness: list[float]) -> None:
    role, _ = make()
    before = weights(role)
    assert tell(role, batch(fitness)).changes == []
    assert torch.equal(before, weights(role))


def test_fitness_is_the_mean_over_a_members_rows() -> None:
    _, learner = make()
    first = batch([1.0, 2, 3, 4, 5, 6, 7, 8])
    second = batch([3.0, 2, 3, 4, 5, 6, 7, 8], coefficient=2.0)
    assert learner.fitness([first])[0] == 1
    assert learner.fitness([first, second])[0] == (1 + 2 * 3) / 2
    assert learner.fitness([first.take(np.arange(8) < 2)]).tolist() == [1, 2, 0, 0, 0, 0, 0, 0]
    tokens = Batch(first.rows[:1], [np.array([1.0, 3.0], np.float32)])
    assert learner.fitness([tokens])[0] == 2


@pytest.mark.parametrize("adam", [True, False])
def test_its_state_goes_into_another_learner(adam: bool) -> None:
    fitness = [batch(np.random.default_rng(t).normal(size=8).tolist()) for t in range(3)]
    whole, _ = make(adam=adam)
    for t in range(3):
        tell(whole, fitness[t], t=t)
    first, learner = make(adam=adam)
    for t in range(2):
        tell(first, fitness[t], t=t)
    second, other = make(adam=adam)
    second.policy.set_weights(first.policy.weights())
    other.load_state_dict(learner.state_dict())
    tell(second, fitness[2], t=2)
    assert torch.equal(weights(second), weights(whole))


def test_values_out_of_range_are_refused() -> None:
    for options in ({"population": 7}, {"population": 0}, {"rank": 0}, {"sigma": 0.0}):
        _, learner = make(**options)
        with pytest.raises(UserError, match=f"learn.{next(iter(options))}"):
            learner.check(None)
