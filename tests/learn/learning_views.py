"""Views of made-up rows for the tests of the learning functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evolvent.learn.credit import GroupView
from evolvent.learn.objective import Tokens, Totals
from evolvent.learn.policy_gradient import PolicyGradient

FIXTURES = Path(__file__).parents[1] / "fixtures"


@cache
def fixture(name: str) -> Any:
    """The contents of a file of fixtures."""
    return json.loads((FIXTURES / f"{name}.json").read_text())


def tensor(values: Any) -> torch.Tensor:
    """Float64."""
    return torch.tensor(values, dtype=torch.float64)


def case_view(case: dict[str, Any], limit: int = 16) -> tuple[Tokens, torch.Tensor]:
    """A case of inputs.json as a view, and its leaf of log-probs."""
    new, mask = tensor(case["new"]).requires_grad_(), torch.tensor(case["mask"], dtype=torch.bool)
    advantage = tensor(case["advantages"])[:, None].expand_as(new)
    return make_view(new, tensor(case["old"]), advantage, mask, case["reference"], case["entropies"], limit), new


def make_view(
    new: torch.Tensor,
    old: torch.Tensor,
    advantage: torch.Tensor,
    mask: torch.Tensor,
    reference: Any = None,
    entropy: Any = None,
    limit: int = 16,
) -> Tokens:
    """A view of one whole minibatch, whose rows are groups of their own."""
    return Tokens(
        logprob=new,
        old=old,
        sampled=old,
        advantage=advantage,
        mask=mask,
        columns={},
        totals=Totals(len(mask), int(mask.sum()), len(mask), limit),
        reference=None if reference is None else torch.as_tensor(reference, dtype=new.dtype),
        entropy=None if entropy is None else torch.as_tensor(entropy, dtype=new.dtype),
    )


def random_view(seed: int, rows: int = 5, time: int = 6, spread: float = 0.5) -> tuple[Tokens, torch.Tensor]:
    """Random rows of unequal length with holes; one token at least in each."""
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, time)) < 0.7
    mask[np.arange(rows), rng.integers(0, time, rows)] = True
    old = -rng.exponential(1.0, (rows, time))
    new = tensor(old + rng.normal(0, spread, old.shape)).requires_grad_()
    advantage = tensor(rng.normal(0, 1, rows))[:, None].expand(rows, time)
    reference = old + rng.normal(0, 0.5, old.shape)
    view = make_view(new, tensor(old), advantage, torch.from_numpy(mask), reference, rng.exponential(1.0, old.shape))
    return view, new


def loss_and_gradient(view: Tokens, leaf: torch.Tensor, **fields: Any) -> tuple[float, torch.Tensor]:
    """The loss of a PolicyGradient with these fields, and its gradient with respect to the log-probs."""
    learner = PolicyGradient(**fields)
    learner.counts = {}
    leaf.grad = None
    loss = learner.loss(view)
    loss.backward()
    assert leaf.grad is not None
    return loss.item(), leaf.grad.clone()


def group_view(scores: Sequence[float], batch: Sequence[Sequence[float]] | None = None) -> GroupView:
    """A group by itself, or as one of a step."""
    groups = [np.array(x, float) for x in batch or [scores]]
    return GroupView(np.array(scores, float), groups, np.concatenate(groups))
