"""NFT and RFT on real steps: what wrong answers add."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import build, steps, without

from evolvent.core.records import Trajectory
from evolvent.learn.forward import padded, token_logprobs
from evolvent.run.assemble import Assembled


def change(neg_weight: float, count: int = 6) -> tuple[float, float]:
    """How the mean log-prob of the first step's right and wrong answers has changed after some steps."""
    made = build("nft", propose__n=8, learn__lr=1e-3, learn__minibatches=4, learn__surrogate__neg_weight=neg_weight)
    (first,) = steps(made.system, 1)
    rows = first.batches[0].rows
    before = np.array([t.logprob[t.mask].sum() for t in rows])
    steps(made.system, count)
    difference = logprobs(made, rows) - before
    right = np.array([t.outcome >= 1 for t in rows])
    return float(difference[right].mean()), float(difference[~right].mean())


def logprobs(made: Assembled, rows: list[Trajectory]) -> np.ndarray:
    """Log-probs of whole answers under the policy as it is."""
    tokens, mask, _, heat = padded(rows, made.policy.format.pad, made.policy.device)
    with torch.no_grad():
        return token_logprobs(made.policy, tokens, mask, heat)[0].sum(1).numpy()


def test_wrong_answers_are_pushed_away_and_right_ones_alone_only_pull() -> None:
    right, wrong = change(1.0)
    right_alone, wrong_alone = change(0.0)
    assert right > 0
    assert right_alone > 0
    assert wrong < wrong_alone
    assert right - wrong > right_alone - wrong_alone


def test_problems_without_a_signal_are_dropped() -> None:
    (s,) = steps(build("nft", propose__problems=12).system, 1)
    shares = [np.mean([t.outcome for t in g.trajectories]) for g in s.groups]
    assert len(s.batches[0].rows) == 4 * sum(0 < x < 1 for x in shares)
    assert s.batches[0].columns["rate"] == pytest.approx(np.repeat([x for x in shares if 0 < x < 1], 4))


def test_the_weight_of_problems_is_an_axis() -> None:
    def sizes(weight: str) -> list[tuple[float, float]]:
        """Success rate of the problem and weight, of every right answer."""
        (s,) = steps(build("nft", propose__problems=20, credit__weight=weight).system, 1)
        batch = s.batches[0]
        return [(float(r), float(w)) for r, w in zip(batch.columns["rate"], batch.weight, strict=True) if w > 0]

    assert {w for _, w in sizes("equal")} == {1.0}
    assert all(w == pytest.approx(1 - r) for r, w in sizes("failures"))
    assert all(w == pytest.approx(((1 - r) / r) ** 0.5) for r, w in sizes("odds"))


def test_rejection_weighs_every_problem_alike() -> None:
    (s,) = steps(build("rft", propose__problems=20).system, 1)
    batch = s.batches[0]
    assert len(set(batch.columns["rate"].tolist())) > 1
    assert {w for w in batch.weight.tolist() if w > 0} == {1.0}


def test_dropping_the_negatives_or_the_surrogate_changes_what_is_learned() -> None:
    losses = {}
    with without("nft", "learn.surrogate") as plain:
        for name in ("nft", "rft", plain):
            losses[name] = steps(build(name).system, 1)[0].metrics["learn/loss"]
    assert len({round(x, 6) for x in losses.values()}) == 3


def test_shaping_does_not_count() -> None:
    (s,) = steps(build("nft+label-noise", judge__flip_labels__share=0.5).system, 1)
    assert all((w > 0) == (t.outcome >= 1) for t, w in zip(s.batches[0].rows, s.batches[0].weight, strict=True))
