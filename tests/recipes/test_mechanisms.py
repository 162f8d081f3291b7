"""Each mechanism of the baseline recipes, switched off, moves the quantity that it is named for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import build, steps, without

from evolvent.core.step import Step
from evolvent.learn.credit import with_signal
from evolvent.learn.forward import padded, token_logprobs
from evolvent.learn.objective import Tokens, Totals
from evolvent.run.assemble import Assembled


def run(name: str, count: int = 4, **settings: Any) -> list[Step]:
    """Steps of a recipe."""
    return steps(build(name, **settings).system, count)


def both(name: str, path: str, count: int = 4, **settings: Any) -> tuple[list[Step], list[Step]]:
    """Steps with and without what the recipe does at a path."""
    with without(name, path) as ablated:
        return run(name, count, **settings), run(ablated, count, **settings)


def average(taken: list[Step], metric: str) -> float:
    """Mean of a metric over steps."""
    return float(np.mean([s.metrics[metric] for s in taken]))


# --- dapo ----------------------------------------------------------------------------------------------------------


def test_clip_higher_clips_fewer_tokens_above() -> None:
    """Of the same updates: the runs part once one token more has been clipped."""
    on, off = both("dapo", "learn.clip_high", 1, learn__minibatches=6, propose__n=16, propose__problems=24)
    assert 0 < average(on, "learn/clipped_high") < average(off, "learn/clipped_high")


def test_refilling_fills_the_batch_with_signal() -> None:
    on, off = both("dapo", "propose", propose__n=16)
    informative = [[len(with_signal(s.groups)) for s in taken] for taken in (on, off)]
    assert min(informative[0]) >= 6
    assert min(informative[1]) < 6
    assert average(on, "asked") > 1


def test_the_filter_keeps_groups_without_signal_out_of_the_update() -> None:
    on, off = both("dapo", "credit.groups")

    def silent(taken: list[Step]) -> float:
        rows = [w for s in taken for b in s.batches for w in b.weight]
        return float(np.mean([w == 0 for w in rows]))

    assert silent(on) == 0
    assert silent(off) > 0.1


def test_the_overlong_penalty_falls_on_long_answers() -> None:
    on, off = both("dapo", "judge", rollout__max_tokens=3)
    for taken, expected in ((on, True), (off, False)):
        rows = [t for s in taken for g in s.groups for t in g.valid]
        assert any(t.score < t.outcome for t in rows) == expected
        assert all(t.sampled == 3 for t in rows if t.score < t.outcome)


# --- dr-grpo -------------------------------------------------------------------------------------------------------


def length_bias(made: Assembled) -> float:
    """How much more a token of a short answer weighs than one of an answer four times as long, in this learner."""
    leaf = torch.zeros(2, 8).requires_grad_()
    mask = torch.arange(8) < torch.tensor([[2], [8]])
    still = torch.zeros(2, 8)
    view = Tokens(leaf, still, still, torch.ones(2, 8), mask, {}, Totals(2, 10, 2, 8))
    learner = made.system.roles[""].slots["learn"]
    learner.counts = {}
    learner.loss(view).backward()
    return float(leaf.grad[0, 0] / leaf.grad[1, 0])  # type: ignore[index]


def test_a_constant_length_removes_the_length_bias() -> None:
    with without("dr-grpo", "learn.aggregate") as ablated:
        assert length_bias(build("dr-grpo")) == pytest.approx(1.0)
        assert length_bias(build(ablated)) == pytest.approx(4.0)


def test_without_deviation_hard_and_easy_groups_weigh_less() -> None:
    """Root mean square advantages: all groups alike when divided by their deviation, else sqrt(p (1 - p))."""
    on, off = both("dr-grpo", "credit.scale", propose__n=16, propose__problems=12)
    spread = []
    for taken in (on, off):
        squares = [
            np.mean(b.weight[b.columns["group"] == g] ** 2)
            for s in taken
            for b in s.batches
            for g in np.unique(b.columns["group"])
        ]
        informative = np.sqrt([x for x in squares if x > 0])
        spread.append(float(informative.std() / informative.mean()))
    assert spread[0] > 10 * spread[1]


# --- gspo, cispo ---------------------------------------------------------------------------------------------------


def test_ratios_of_whole_answers_vary_less() -> None:
    on, off = both("gspo", "learn.ratio", learn__clip_low=0.2, learn__clip_high=0.2, propose__n=16)
    assert 0 < average(on, "learn/ratio_variance") < average(off, "learn/ratio_variance")


def dead_tokens(made: Assembled) -> int:
    """Tokens of 400, off policy, that have no gradient in this learner."""
    rng = torch.Generator().manual_seed(0)
    leaf = (0.5 * torch.randn(100, 4, generator=rng)).requires_grad_()
    mask, still = torch.ones(100, 4).bool(), torch.zeros(100, 4)
    view = Tokens(leaf, still, still, torch.randn(100, 4, generator=rng), mask, {}, Totals(100, 400, 100, 4))
    learner = made.system.roles[""].slots["learn"]
    learner.counts = {}
    learner.loss(view).backward()
    return int((leaf.grad == 0).sum())


def test_clipping_the_weight_leaves_no_token_without_gradient() -> None:
    with without("cispo", "learn.surrogate") as ablated:
        assert dead_tokens(build("cispo", learn__clip_high=0.2)) == 0
        assert dead_tokens(build(ablated, learn__clip_high=0.2)) > 40


# --- rloo ----------------------------------------------------------------------------------------------------------


def divergence(made: Assembled, taken: list[Step]) -> float:
    """Mean log-ratio of the last step's answers to the start model."""
    rows = [t for g in taken[-1].groups for t in g.valid]
    start = build("no-change").policy
    tokens, mask, sampled, heat = padded(rows, start.format.pad, start.device)
    with torch.no_grad():
        return float((sampled - token_logprobs(start, tokens, mask, heat)[0]).masked_fill(~mask, 0).sum(1).mean())


def test_the_kl_reward_keeps_the_policy_near_the_start() -> None:
    with without("rloo", "judge") as ablated:
        settings = {"learn__lr": 5e-3, "propose__problems": 16, "seed": 1}
        on = build("rloo", judge__kl_penalty__beta=1.0, **settings)
        off = build(ablated, **settings)
        assert divergence(on, steps(on.system, 15)) < 0.7 * divergence(off, steps(off.system, 15))


def test_leaving_one_out_centres_each_group() -> None:
    on, off = both("rloo", "credit.baseline")

    def centres(taken: list[Step]) -> float:
        (batch,) = taken[0].batches
        groups = batch.columns["group"]
        return max(abs(float(np.mean(batch.weight[groups == g]))) for g in np.unique(groups))

    assert centres(on) == pytest.approx(0, abs=1e-6)
    assert centres(off) > 0.05


# --- supervised, preference, control ---------------------------------------------------------------------------------


def test_raft_keeps_one_answer_of_a_group() -> None:
    on, off = both("raft", "credit.choose")
    solved = [sum(any(t.outcome for t in g.valid) for g in s.groups) for s in on]
    assert [s.metrics["chosen"] for s in on] == solved
    assert average(off, "chosen") > average(on, "chosen")


def test_demonstrations_cost_no_samples() -> None:
    with without("sft", "rollout") as ablated:
        on, off = build("sft", gate__every=0), build(ablated, gate__every=0)
        assert steps(on.system, 2)[0].metrics["outcome"] == 1.0
        assert steps(off.system, 2)[0].metrics["outcome"] < 0.6
        assert on.system.ledger.of("sampled") == 0
        assert off.system.ledger.of("sampled") > 0


def test_sft_learns_the_solutions() -> None:
    taken = run("sft", 30, propose__problems=32, learn__lr=1e-2)
    assert average(taken[-5:], "learn/nll") < 0.9 * average(taken[:5], "learn/nll")


def test_dpo_learns_which_answer_is_better() -> None:
    """The share of new pairs whose better answer has gained more on the start model; at the start it is chance."""
    taken = run("dpo", 30, propose__problems=32, propose__n=8, learn__beta=1.0, learn__lr=1e-3)
    assert average(taken[:8], "learn/ranked") < 0.5 < average(taken[-8:], "learn/ranked")


def test_best_of_n_answers_better_than_one_sample() -> None:
    taken = run("best-of-n")
    assert average(taken, "answered") > average(taken, "outcome") + 0.1
    assert sum(len(s.changes) for s in taken) == 0
