"""Evolution strategies on low-rank noise: the population is the actors of one batch, nothing is stored but seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from evolvent.core.errors import UserError
from evolvent.core.random import identifier
from evolvent.core.records import Batch, Change
from evolvent.core.role import Role, find_field
from evolvent.core.step import Step
from evolvent.engine.base import Actor, Noise
from evolvent.engine.perturb import draw, linear_modules
from evolvent.learn.fit import check_rates


@dataclass
class LowRankES:
    """W_i = W + sigma / sqrt(r) A_i B_i^T for member i; a gradient from the members' fitness (EGGROLL, 2511.16652).

        gradient = -sqrt(N) / N * sum_i f_i A_i B_i^T / sqrt(r)    (members 2j, 2j + 1: the same A, B with both signs)

    population  N, even; members are dealt to the trajectories of the step in turn
    rank        r of every member's noise; the sum over members has full rank
    lr          of Adam, or of SGD without momentum where `adam` is False

    Embeddings, norms and the output head stay as they are. Fitness is the weight that credit gives; a member's is the
    mean over its trajectories.
    """

    population: int = 64
    sigma: float = 1e-3
    rank: int = 1
    lr: float = 1e-3
    adam: bool = True
    betas: tuple[float, float] = (0.9, 0.999)
    needs: tuple[str, ...] = field(default=("noise",), init=False)

    def setup(self, role: Role) -> None:
        """Find the linear maps."""
        self.role = role
        check_rates(self)
        self.modules = linear_modules(role.policy.model)
        weights = [m.weight for m in self.modules.values()]
        self.optimizer: torch.optim.Optimizer
        if self.adam:
            self.optimizer = torch.optim.Adam(weights, self.lr, self.betas)
        else:
            self.optimizer = torch.optim.SGD(weights, self.lr)

    def check(self, system: Any) -> None:
        """An even population, and a policy without adapters."""
        if self.population < 2 or self.population % 2:
            raise UserError(
                f"learn.population must be even and at least 2, got {self.population}: members come in pairs"
            )
        if self.rank < 1 or not self.sigma > 0:
            raise UserError(f"learn.rank must be at least 1 and learn.sigma above 0, got {self.rank} and {self.sigma}")
        problems, n = (find_field(self.role.slots.get("propose"), name) for name in ("problems", "n"))
        if isinstance(problems, int) and isinstance(n, int) and problems * n < self.population:
            raise UserError(
                f"learn.population is {self.population}, but a step has {problems} x {n} trajectories, and members "
                "without one would count for nothing; lower the population, or raise propose.problems or propose.n"
            )
        if self.role.policy.adapters:
            raise UserError("evolution strategies change the weights themselves; leave the adapter out")

    def ask(self, s: Step) -> list[Actor]:
        """The members of this step."""
        version = s.role.policy.version
        return [Actor(f"member-{i}", version, self.noise(s.t, i)) for i in range(self.population)]

    def noise(self, t: int, member: int) -> Noise:
        """A member's noise: a function of the seed, the step and the pair."""
        seed = identifier(self.role.seed, "population", self.role.name, t, member // 2)
        return Noise(seed, 1 if member % 2 == 0 else -1, self.sigma, self.rank)

    def fitness(self, batches: Sequence[Batch]) -> np.ndarray:
        """Mean weight of every member's trajectories, float64 [population]; 0 for members without one."""
        total, count = np.zeros(self.population), np.zeros(self.population)
        for batch in batches:
            for row, weight in zip(batch.rows, batch.weight, strict=True):
                member = int(row.actor.rpartition("-")[2])
                total[member] += batch.coefficient * float(np.mean(weight))
                count[member] += 1
        return total / np.maximum(count, 1)

    def tell(self, batches: Sequence[Batch], s: Step) -> list[Change]:
        """One optimizer step; none if all members are equally fit."""
        fitness = self.fitness(batches)
        s.log("learn/fitness_std", float(fitness.std()))
        paired = fitness[0::2] - fitness[1::2]
        if not paired.any():
            return []
        before = self.role.policy.version
        seeds = [self.noise(s.t, 2 * j).seed for j in range(len(paired))]
        self.optimizer.zero_grad(set_to_none=True)
        norm = 0.0
        for name, module in self.modules.items():
            gradient = self.gradient(name, module, seeds, paired)
            norm += float(gradient.square().sum())
            module.weight.grad = gradient.to(module.weight)
        s.log("learn/grad_norm", norm**0.5)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return [Change("learn", before, self.role.policy.bump())]

    def gradient(self, name: str, module: torch.nn.Linear, seeds: list[int], paired: np.ndarray) -> torch.Tensor:
        """The estimate for one linear map, [out, in], as one product of stacked factors."""
        factors = [draw(seed, name, module.out_features, module.in_features, self.rank) for seed in seeds]
        weights = torch.from_numpy(paired).float().repeat_interleave(self.rank)
        a = torch.cat([f[0] for f in factors], 1) * weights
        b = torch.cat([f[1] for f in factors], 1)
        return a @ b.T * (-1.0 / (self.population**0.5 * self.rank**0.5))

    def state_dict(self) -> dict[str, Any]:
        """Optimizer moments by module name."""
        state = self.optimizer.state
        return {"moments": {n: dict(state[m.weight]) for n, m in self.modules.items() if m.weight in state}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.optimizer.state.clear()
        for name, saved in state["moments"].items():
            self.optimizer.state[self.modules[name].weight] = {k: v.clone() for k, v in saved.items()}
