"""VCPO: its formulas by hand, the gradient of an update row by row, and what each mechanism moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import build, steps, without

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Trajectory
from evolvent.core.step import Step
from evolvent.learn.lag import Lag
from evolvent.learn.objective import Tokens, Totals
from evolvent.learn.variance import FINITE, VarianceControlled, effective_share, least_variance, whole_ratio
from evolvent.run.assemble import Assembled

UNCUT = {"learn__max_grad_norm": 1e9}


def tokens(logprob: list[list[float]], sampled: list[list[float]], mask: list[list[int]]) -> Tokens:
    """A view of a few rows."""
    new, old = torch.tensor(logprob), torch.tensor(sampled)
    totals = Totals(len(new), 0, len(new), 8)
    return Tokens(new, old, old, torch.ones_like(new), torch.tensor(mask).bool(), {}, totals)


# --- formulas ------------------------------------------------------------------------------------------------------


def test_the_ratio_is_that_of_the_whole_sequence() -> None:
    k = tokens(
        [[-1.0, -2.0, -9.0], [-1.0, -1.0, -1.0]], [[-1.5, -1.0, 0.0], [-2.0, -2.0, -2.0]], [[1, 1, 0], [1, 1, 1]]
    )
    ratio = whole_ratio(k)
    assert ratio[0].tolist() == pytest.approx([0.60653] * 3, abs=1e-4)  # e^(0.5 - 1)
    assert ratio[1].tolist() == pytest.approx([20.0855] * 3, abs=1e-3)  # e^3


def test_the_ratio_stays_a_number() -> None:
    k = tokens([[-500.0], [0.0]], [[0.0], [-500.0]], [[1], [1]])
    assert torch.log(whole_ratio(k))[:, 0].tolist() == pytest.approx([-FINITE, FINITE])
    assert np.isfinite(effective_share(whole_ratio(k)[:, 0]))


@pytest.mark.parametrize(
    ("w", "share"),
    [
        ([1.0, 1.0, 1.0, 1.0], 1.0),
        ([3.0, 3.0], 1.0),  # it is a share: the size of the ratios does not matter
        ([1.0, 0.0, 0.0, 0.0], 0.25),
        ([1.0, 2.0, 3.0], 36 / (3 * 14)),
        ([10.0, 0.5, 0.5], 121 / (3 * 100.5)),
    ],
)
def test_the_effective_share_by_hand(w: list[float], share: float) -> None:
    assert effective_share(torch.tensor(w)) == pytest.approx(share)


def test_the_baseline_by_hand() -> None:
    reward = torch.tensor([1.0, 0.0, 1.0, 0.0, 2.0], dtype=torch.float64)
    w = torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0], dtype=torch.float64)
    norm = torch.tensor([4.0, 1.0, 8.0, 1.0, 9.0], dtype=torch.float64)
    found = least_variance(reward, w, norm, torch.tensor([7, 7, 7, 2, 2]))
    # weights 4, 4, 2 and 9, 9
    assert found.tolist() == pytest.approx([0.6, 0.6, 0.6, 1.0, 1.0])
    shifted = least_variance(reward - 0.3, w, norm, torch.tensor([7, 7, 7, 2, 2]))
    assert shifted.tolist() == pytest.approx([0.3, 0.3, 0.3, 0.7, 0.7])  # a constant less makes it as much less


def test_no_other_baseline_has_less_variance() -> None:
    rng = np.random.default_rng(0)
    reward, w, norm = (torch.from_numpy(rng.uniform(0.1, 2, 6)) for _ in range(3))
    best = float(least_variance(reward, w, norm, torch.zeros(6, dtype=torch.long))[0])

    def variance(b: float) -> float:
        return float((w.square() * norm * (reward - b).square()).sum())

    assert variance(best) <= min(variance(best + d) for d in (-0.1, -1e-3, 1e-3, 0.1))


# --- an update -----------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One row, from a pass over it alone: log w, the gradient of log pi(tau), its squared norm."""

    log_w: float
    gradient: list[torch.Tensor]
    length: int

    @property
    def norm(self) -> float:
        return sum(float(g.double().square().sum()) for g in self.gradient)


def alone(made: Assembled, t: Trajectory) -> Row:
    """The row through the whole model, by torch alone."""
    text = torch.from_numpy(t.tokens[None].astype(np.int64))
    logprob = torch.log_softmax(made.policy.model.head(made.policy.model(text)).float(), -1)[0, :-1]
    written = torch.from_numpy(t.mask[1:])
    total = logprob.gather(1, text[0, 1:, None])[:, 0][written].sum()
    gradient = torch.autograd.grad(total, list(made.policy.trainable().values()))
    return Row(float(total.detach()) - float(t.logprob[t.mask].sum()), list(gradient), int(written.sum()))


def stale(made: Assembled, taken: int = 1) -> tuple[Any, Batch, list[Row]]:
    """The learner after some steps at a high rate, the batch that it learns from next, and that batch row by row."""
    steps(made.system, taken)
    learner, lag = made.system.parts["learn"], made.system.parts["credit.lag"]
    batch = lag.waiting[0][0]
    return learner, batch, [alone(made, t) for t in batch.rows]


def gradient_of(made: Assembled, learner: Any, batch: Batch) -> tuple[list[torch.Tensor], float, Step]:
    """The gradient that reaches the optimizer, the rate of that step, and what was logged."""
    seen: list[Any] = []

    def watch(optimizer: Any, *_: object) -> None:
        seen.append([p.grad.clone() for p in learner.parameters.values()])

    hook = learner.optimizer.register_step_pre_hook(watch)
    s = Step(9, made.system.roles[""])
    learner.tell([batch], s)
    hook.remove()
    return seen[0], learner.optimizer.param_groups[0]["lr"], s


@pytest.mark.parametrize("opob", [True, False])
@pytest.mark.parametrize("cap", [8.0, 1.1])
def test_the_gradient_is_that_of_the_paper(opob: bool, cap: float) -> None:
    """sum_i min(w_i, cap) (A_i - b*) grad log pi(tau_i) / |y_i| / B, with everything taken row by row."""
    made = build(
        "vcpo",
        learn__lr=0.02,
        learn__opob=opob,
        learn__clip_high=cap - 1,
        learn__max_grad_norm=1e9,
        credit__lag__steps=2,
    )
    learner, batch, rows = stale(made, 4)
    w = np.exp([r.log_w for r in rows])
    assert np.ptp(w) > 0.05
    advantage = np.array(batch.weight, float)
    group = batch.columns["group"]
    for g in np.unique(group) if opob else []:
        own = group == g
        weight = w[own] ** 2 * np.array([r.norm for r in rows])[own]
        advantage[own] -= (weight * advantage[own]).sum() / (weight.sum() + 1e-8)
    found, _, _ = gradient_of(made, learner, batch)
    factor = -np.minimum(w, cap) * advantage / np.array([r.length for r in rows]) / len(rows)
    wanted = [sum(f * r.gradient[i] for f, r in zip(factor, rows, strict=True)) for i in range(len(found))]
    size = max(float(x.abs().max()) for x in wanted)
    assert size > 1e-4
    for a, b in zip(found, wanted, strict=True):
        assert torch.allclose(a, b, atol=2e-3 * size)
    if cap < 8:
        assert (w > cap).any()


@pytest.mark.parametrize(("power", "base"), [(0.5, 1.0), (1.0, 1.0), (0.0, 1.0), (0.5, 0.9), (0.5, 1e-3)])
def test_the_step_is_scaled_by_the_effective_share_and_set_back(power: float, base: float) -> None:
    made = build("vcpo", learn__lr=0.02, learn__power=power, learn__base=base, credit__lag__steps=2)
    learner, batch, rows = stale(made, 4)
    w = np.exp([r.log_w for r in rows])
    share = w.sum() ** 2 / (len(w) * (w**2).sum())
    assert share < 0.97
    _, rate, s = gradient_of(made, learner, batch)
    assert s.metrics["learn/ess"] == pytest.approx(share, rel=1e-3)
    assert rate == pytest.approx(0.02 * min(1.0, share / base) ** power, rel=1e-3)
    assert s.metrics["learn/rate"] == rate
    assert learner.lr == 0.02
    fresh = Step(10, made.system.roles[""])  # the same rows again: nothing is left of the scaling before
    learner.tell([batch], fresh)
    assert fresh.metrics["learn/rate"] == pytest.approx(0.02 * min(1.0, fresh.metrics["learn/ess"] / base) ** power)


def test_every_minibatch_has_its_own_share_and_whole_groups() -> None:
    made = build("vcpo", learn__minibatches=3, learn__lr=0.02, credit__lag__steps=1)
    learner = made.system.parts["learn"]
    seen: list[list[int]] = []
    view = learner.view

    def watched(prepared: Any, rows: np.ndarray, *rest: Any) -> Tokens:
        if len(rows) > 1:
            seen.append(list(np.bincount(prepared.batch.columns["group"][rows])))
        return view(prepared, rows, *rest)

    learner.view = watched
    steps(made.system, 2)
    assert len(seen) == 3
    assert {n for sizes in seen for n in sizes} == {0, 4}
    assert sum(len(x) for x in learner.ratios) == 8  # of the last minibatch: two groups of six


def test_on_fresh_rows_without_opob_it_is_grpo_without_clipping() -> None:
    """With w = 1 the loss is REINFORCE's; GRPO's first update is the same."""
    ours = build("vcpo", credit__lag__steps=0, learn__opob=False, learn__weight_decay=0.0)
    plain = build("grpo", learn__minibatches=1)
    (a,), (b,) = steps(ours.system, 1), steps(plain.system, 1)
    assert a.metrics["learn/ess"] == pytest.approx(1.0, abs=1e-4)
    assert a.metrics["learn/grad_norm"] == pytest.approx(b.metrics["learn/grad_norm"], rel=1e-3)


def test_a_batch_without_groups_keeps_its_weights() -> None:
    made = build("vcpo", credit__lag__steps=1)
    learner, batch, _ = stale(made)
    s, everyone = Step(3, made.system.roles[""]), np.arange(len(batch.rows))
    prepared = learner.prepare(Batch(batch.rows, batch.weight), s)
    k = learner.view(prepared, everyone, prepared.totals([everyone]), s)
    assert (k.row_sum(k.advantage) / k.length).tolist() == pytest.approx(list(batch.weight), abs=1e-6)


# --- lag -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_rows_are_as_many_updates_old_as_it_says(lag: int) -> None:
    made = build("vcpo", credit__lag__steps=lag, learn__opob=False)
    taken = steps(made.system, 6)
    assert [len(s.batches) for s in taken] == [0] * lag + [1] * (6 - lag)
    sampled = [{t.uid for g in s.groups for t in g.valid} for s in taken]
    for s in taken[lag:]:
        assert {t.uid for t in s.batches[0].rows} <= sampled[s.t - lag]
    # the first rows wait while nothing is learned; from step 2 lag on each is `lag` updates old
    assert [s.metrics["lag"] for s in taken[lag:]] == [min(i, lag) for i in range(6 - lag)]


def test_what_waits_survives() -> None:
    made = build("vcpo", credit__lag__steps=2)
    steps(made.system, 2)
    part = made.system.parts["credit.lag"]
    again = Lag(part.inner, steps=2)
    again.load_state_dict(part.state_dict())
    assert [t.uid for b in again.waiting[0] for t in b.rows] == [t.uid for b in part.waiting[0] for t in b.rows]


# --- switched off --------------------------------------------------------------------------------------------------


def moved(path: str, metric: str) -> tuple[float, float]:
    """A metric of the first update from stale rows, with and without what the recipe does at a path."""
    found = []
    with without("vcpo", path) as ablated:
        for name in ("vcpo", ablated):
            taken = steps(build(name, learn__lr=0.02).system, 3)
            found.append(taken[-1].metrics.get(metric, 0.0))
    return found[0], found[1]


def test_without_lag_rows_are_fresh() -> None:
    on, off = moved("credit", "lag")
    assert on == 1
    assert off == 0
    on, off = moved("credit", "learn/ess")
    assert on < off
    assert off == pytest.approx(1.0, abs=1e-4)


def test_without_scaling_the_rate_is_whole() -> None:
    made = {power: steps(build("vcpo", learn__lr=0.02, learn__power=power).system, 3)[-1] for power in (0.5, 0.0)}
    assert made[0.0].metrics["learn/rate"] == 0.02
    assert made[0.5].metrics["learn/rate"] < 0.02


def test_without_opob_the_estimate_varies_more() -> None:
    """sum_i w_i^2 |grad log pi(tau_i)|^2 A_i^2, which the baseline is to make small: of the same rows and policy."""
    made = build("vcpo", learn__lr=0.02, credit__lag__steps=2)
    learner, batch, rows = stale(made, 4)
    s, everyone = Step(9, made.system.roles[""]), np.arange(len(batch.rows))
    prepared = learner.prepare(batch, s)
    weight = np.array([np.exp(2 * r.log_w) * r.norm for r in rows])
    spread = {}
    for learner.opob in (True, False):
        k = learner.view(prepared, everyone, prepared.totals([everyone]), s)
        spread[learner.opob] = float(weight @ (k.row_sum(k.advantage) / k.length).numpy() ** 2)
    assert 0 < spread[True] < 0.99 * spread[False]


def test_without_truncation_heavy_rows_count_in_full() -> None:
    """Rows above the cap with an advantage pull as much harder as their ratio is above it."""
    made = build("vcpo", learn__lr=0.02, learn__opob=False, credit__lag__steps=2)
    learner, batch, rows = stale(made, 4)
    heavy = int(np.argmax([r.log_w * (a != 0) for r, a in zip(rows, batch.weight, strict=True)]))
    w = float(np.exp(rows[heavy].log_w))
    assert w > 1.1
    one = batch.take(np.arange(len(rows)) == heavy)
    learner.max_grad_norm, learner.lr, size = 1e9, 1e-12, {}
    for learner.clip_high in (0.05, 1e9):
        found, _, _ = gradient_of(made, learner, one)
        size[learner.clip_high] = float(torch.stack([g.square().sum() for g in found]).sum().sqrt())
    assert size[1e9] / size[0.05] == pytest.approx(w / 1.05, rel=1e-2)


# --- what it refuses -----------------------------------------------------------------------------------------------


def test_it_says_what_is_out_of_range() -> None:
    with pytest.raises(UserError, match=r"credit\.lag\.steps"):
        build("vcpo", credit__lag__steps=-1)
    for settings in ({"learn__power": -1.0}, {"learn__base": 0.0}):
        with pytest.raises(UserError, match=r"learn\.power"):
            build("vcpo", **settings)
    assert VarianceControlled.TINY["lr"] == 3e-4
