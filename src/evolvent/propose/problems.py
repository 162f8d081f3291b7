"""Problems from the task's train split: how many a step, how many rollouts each, and of which category."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from evolvent.core.errors import UserError
from evolvent.core.records import Request
from evolvent.core.step import Step


class Choose(Protocol):
    """The category of each problem of a step, `count` of them."""

    def __call__(self, count: int, s: Step) -> list[str]: ...


def uniform(count: int, s: Step) -> list[str]:
    """Every category with the same probability."""
    categories = s.role.task.categories
    return [categories[i] for i in s.rng("category").integers(0, len(categories), count)]


def in_order(count: int, s: Step, *, steps: int = 300) -> list[str]:
    """Easiest category first, each for the same share of `steps`; the last one from then on."""
    categories = s.role.task.categories
    return [categories[min(s.t * len(categories) // steps, len(categories) - 1)]] * count


@dataclass
class Problems:
    """`problems` a step, with `n` rollouts each, in one round."""

    problems: int = 32
    n: int = 8
    choose: Choose = uniform

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of requests."""
        yield self.requests(self.problems, s)

    def requests(self, count: int, s: Step) -> list[Request]:
        """Requests for `count` problems, drawn anew each round."""
        task, rng = s.role.task, s.rng("problems")
        return [Request(task.draw("train", rng, c), self.n) for c in self.choose(count, s)]

    def check(self, system: object) -> None:
        """Counts must be positive."""
        if self.problems < 1 or self.n < 1:
            raise UserError(f"propose needs at least 1 problem and 1 rollout, got {self.problems} and {self.n}")
