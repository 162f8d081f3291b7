"""PIPO: its formulas by hand, the order of its two stages, and what each mechanism moves."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import build, steps, without

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Change, Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.guard.gate import ScoreGate
from evolvent.recipes.policy_gradient.pipo import (
    PolicyImprovement,
    by_group,
    by_token,
    progress,
    unconditional,
    verified,
)

PROBLEM = Problem("key", (), {})


def row(uid: int, score: float = 0.0) -> Trajectory:
    """A judged trajectory with three tokens, of which the policy wrote two."""
    made = Trajectory(uid, PROBLEM, np.arange(3, dtype=np.int32), np.arange(3) > 0, np.zeros(3, np.float32))
    made.reward("outcome", score)
    return made


@pytest.mark.parametrize(
    ("mean", "window", "xi"),
    [
        (0.6, [0.2, 0.4, 0.3, 0.5], (0.6 - 0.35) / np.std([0.2, 0.4, 0.3, 0.5])),
        (0.1, [0.2, 0.4], (0.1 - 0.3) / 0.1),
        (0.6, [0.2], 0.4),  # one entry: not scaled
        (0.6, [0.2, 0.2, 0.2], 0.4),  # no spread: not scaled
        (9.0, [0.0, 2.0], 5.0),  # 8 is cut at 5, the spread is 1
        (-9.0, [0.0, 4.0], -2.5),
    ],
)
def test_progress_by_hand(mean: float, window: list[float], xi: float) -> None:
    assert progress(mean, window) == pytest.approx(xi)


def test_coefficients_by_hand() -> None:
    rows = [row(i) for i in range(7)]
    weight = np.array([1.0, -0.5, -0.5, 2.0, 0.0, 0.0, 0.0], np.float32)
    batch = Batch(rows, weight, columns={"group": np.array([0, 0, 0, 4, 4, 7, 7])})
    wanted = [3 * 1 / 2 * 0.8, -3 * 0.5 / 2 * 0.8, -3 * 0.5 / 2 * 0.8, 2 * 2 / 2 * 0.8, 0, 0, 0]
    assert verified(batch, 0.8) == pytest.approx(wanted, abs=1e-5)
    assert verified(batch, -0.8) == pytest.approx([-w for w in wanted], abs=1e-5)
    assert verified(batch, 50.0) == pytest.approx([10, -10, -10, 10, 0, 0, 0])


def test_token_advantages_count_by_their_mean() -> None:
    weight = [np.array([9.0, 1.0, 3.0], np.float32), np.array([9.0, -2.0, -2.0], np.float32)]
    batch = Batch([row(0), row(1)], weight, columns={"group": np.zeros(2, np.int64)})
    assert verified(batch, 1.0) == pytest.approx([1.0, -1.0], abs=1e-5)


def test_the_form_for_ppo_by_hand() -> None:
    """A of every token times clip(xi, -2, 2), without groups."""
    tokens = Batch([row(0), row(1)], [np.array([9.0, 1.0, 3.0]), np.array([9.0, -2.0, 0.5])])
    for xi, phi in ((1.5, 1.5), (-0.5, -0.5), (4.0, 2.0), (-4.0, -2.0)):
        first, second = by_token(tokens, xi)
        assert list(first) == [9.0 * phi, phi, 3.0 * phi]
        assert list(second) == [9.0 * phi, -2.0 * phi, 0.5 * phi]
    rows = Batch([row(0), row(1)], np.array([1.0, -2.0], np.float32))
    assert list(by_token(rows, 1.5)) == [1.5, -3.0]


@dataclass
class Notebook:
    """A learner that writes down what it is told."""

    told: list[list[tuple[str, float, list[float]]]] = field(default_factory=list)

    def ask(self, s: Step) -> list[Any]:
        return []

    def tell(self, batches: Sequence[Batch], s: Step) -> list[Change]:
        self.told.append([(b.name, b.coefficient, np.asarray(b.weight).round(4).tolist()) for b in batches])
        s.log("learn/loss", 1.0)
        return [Change("learn", len(self.told), len(self.told) + 1)]


def told(part: PolicyImprovement, t: int, score: float, advantage: float) -> Step:
    """One step with one group of two."""
    rows = [row(2 * t, score), row(2 * t + 1, score)]
    batch = Batch(rows, np.array([advantage, -advantage], np.float32), columns={"group": np.zeros(2, np.int64)})
    s = Step(t, role=None, groups=[Group(PROBLEM, rows)], batches=[batch])  # type: ignore[arg-type]
    s.changes = part.tell(s.batches, s)
    return s


def test_the_form_for_ppo_needs_no_groups() -> None:
    inner = Notebook()
    part = PolicyImprovement(inner, form=by_token, window=2, loss_scale_neg=0.5, watch=0)
    for t, (score, advantage) in enumerate([(0.0, 1.0), (1.0, 2.0), (1.0, 3.0), (0.0, 4.0)]):
        rows = [row(2 * t, score), row(2 * t + 1, score)]
        s = Step(t, role=None, groups=[Group(PROBLEM, rows)])  # type: ignore[arg-type]
        part.tell([Batch(rows, np.array([advantage, -advantage], np.float32))], s)
        assert s.metrics.get("pipo/verified", 0) == (t > 1)
    # window (0, 1): xi = 0.5 / 0.5; then (1, 1), no spread: xi = -1, and the update is reversed at half the scale
    assert inner.told[2:] == [
        [("verified", 1.0, [2.0, -2.0])],
        [("fresh", 1.0, [3.0, -3.0])],
        [("verified", 0.5, [-3.0, 3.0])],
        [("fresh", 1.0, [4.0, -4.0])],
    ]
    with pytest.raises(UserError, match="by_token"):
        by_group(Batch([row(0)], np.ones(1, np.float32)), 1.0)


def test_the_old_batch_is_verified_by_the_new_rewards_before_the_new_batch_is_learned() -> None:
    book = Notebook()
    part = PolicyImprovement(book, window=2, loss_scale_neg=0.1, watch=0)
    for t, score in enumerate((0.2, 0.4, 0.5, 0.3)):
        s = told(part, t, score, 1.0 + t)
    # step 2: xi = (0.5 - 0.3) / 0.1 = 2, on step 1's batch; step 3: (0.3 - 0.45) / 0.05 = -3, scaled by 0.1
    assert book.told == [
        [("fresh", 1.0, [1.0, -1.0])],
        [("fresh", 1.0, [2.0, -2.0])],
        [("verified", 1.0, [2.0, -2.0])],
        [("fresh", 1.0, [3.0, -3.0])],
        [("verified", 0.1, [-3.0, 3.0])],
        [("fresh", 1.0, [4.0, -4.0])],
    ]
    assert s.metrics["pipo/xi"] == pytest.approx(-3.0)
    assert s.metrics["pipo/progress"] == pytest.approx(-0.15)
    assert len(s.changes) == 2


def test_without_reversal_a_step_back_is_left_alone() -> None:
    book = Notebook()
    part = PolicyImprovement(book, window=1, watch=0)
    for t, score in enumerate((0.4, 0.3, 0.3, 0.9)):
        told(part, t, score, 1.0)
    assert [b[0][0] for b in book.told] == ["fresh", "fresh", "fresh", "verified", "fresh"]


def test_a_step_without_a_batch_has_nothing_to_verify() -> None:
    book = Notebook()
    part = PolicyImprovement(book, window=1, watch=0)
    told(part, 0, 0.2, 1.0)
    s = Step(1, role=None, groups=[Group(PROBLEM, [row(8, 0.9)])])  # type: ignore[arg-type]
    part.tell([], s)
    assert s.metrics["pipo/verified"] == 1.0
    told(part, 2, 1.0, 1.0)
    assert [[n for n, _, _ in b] for b in book.told] == [["fresh"], ["verified"], [], ["fresh"]]


def test_it_needs_groups() -> None:
    part = PolicyImprovement(Notebook(), window=1, watch=0)
    part.old, part.means = Batch([row(0)], np.ones(1, np.float32)), [0.0]
    with pytest.raises(UserError, match="group of every row"):
        told(part, 1, 1.0, 1.0)
    with pytest.raises(UserError, match=r"policy_improvement\.window"):
        PolicyImprovement(Notebook(), window=0).check(None)


def weights(made: Any) -> list[torch.Tensor]:
    """A copy of all weights."""
    return [w.clone() for w in made.policy.weights().values()]


def test_watching_alone_is_grpo_bit_for_bit() -> None:
    plain, watching = build("grpo"), build("pipo", learn__policy_improvement__loss_scale_pos=0.0)
    steps(plain.system, 4)
    assert "pipo/xi" in steps(watching.system, 4)[-1].metrics
    assert all(torch.equal(a, b) for a, b in zip(weights(plain), weights(watching), strict=True))


def test_the_extra_update_is_the_clipped_surrogate_with_c_for_advantages() -> None:
    """Two steps of PIPO, and the same done by hand with a plain learner."""
    made = build("pipo", learn__policy_improvement__loss_scale_neg=0.5)
    first, second = steps(made.system, 2)
    by_hand = build("grpo")
    (start,) = steps(by_hand.system, 1)
    assert [t.uid for t in start.batches[0].rows] == [t.uid for t in first.batches[0].rows]
    scores = [np.mean([t.score for g in s.groups for t in g.trajectories]) for s in (first, second)]
    xi = scores[1] - scores[0]
    assert xi != 0
    old = start.batches[0]
    extra = Batch(old.rows, verified(old, float(xi)), "verified", 1.0 if xi > 0 else 0.5, old.columns)
    role = by_hand.system.roles[""]
    s = Step(1, role, groups=second.groups, round=second.round)
    role.slots["learn"].tell([extra], s.child(role, [], "verification"))
    between = weights(by_hand)
    role.slots["learn"].tell(second.batches, s)
    assert all(torch.equal(a, b) for a, b in zip(weights(made), weights(by_hand), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(between, weights(by_hand), strict=True))
    assert made.policy.version == 3


def gap(made: Any, batch: Batch) -> float:
    """A-weighted mean log-prob of the rows' tokens, row by row through the whole model."""
    total = 0.0
    for t, weight in zip(batch.rows, batch.weight, strict=True):
        with torch.no_grad():
            tokens = torch.from_numpy(t.tokens[None].astype(np.int64))
            logits = made.policy.model.head(made.policy.model(tokens))[0]
        logprob = torch.log_softmax(logits.float(), -1)[:-1].gather(1, tokens[0, 1:, None])
        total += float(weight) * float(logprob[:, 0].numpy()[t.mask[1:]].mean())
    return total / float(np.abs(np.asarray(batch.weight)).sum())


def test_how_far_the_second_look_went_along_is_measured() -> None:
    made = build("pipo", learn__policy_improvement__loss_scale_neg=0.5, learn__policy_improvement__watch=10_000)
    (first,) = steps(made.system, 1)
    before = gap(made, first.batches[0])
    inner = made.system.parts["learn.policy_improvement"].inner
    after: list[float] = []
    tell = inner.tell

    def watched(batches: Sequence[Batch], s: Step) -> list[Change]:
        changes = tell(batches, s)
        after.append(gap(made, first.batches[0]))
        return changes

    inner.tell = watched
    (second,) = steps(made.system, 1)
    xi = second.metrics["pipo/xi"]
    assert abs(after[0] - before) > 1e-3
    assert second.metrics["pipo/along"] == pytest.approx(np.sign(xi) * (after[0] - before), abs=1e-5)


def test_a_second_look_without_verification_goes_on_whatever_came_of_it() -> None:
    book = Notebook()
    part = PolicyImprovement(book, unconditional, window=1, watch=0)
    for t, score in enumerate((0.4, 0.3, 0.9)):
        told(part, t, score, 1.0)
    assert [b[0] for b in book.told][1::2] == [("verified", 1.0, [1.0, -1.0])] * 2


def test_dropping_it_leaves_one_update_a_step() -> None:
    on = build("pipo", learn__policy_improvement__loss_scale_neg=0.1)
    steps(on.system, 4)
    with without("pipo", "learn") as ablated:
        off = build(ablated)
        steps(off.system, 4)
    assert off.system.ledger.of("trained") < on.system.ledger.of("trained")
    assert off.system.ledger.of("sampled") == pytest.approx(on.system.ledger.of("sampled"), rel=0.2)
    assert on.policy.version > off.policy.version


def test_it_composes_with_noise_and_other_learners() -> None:
    for names in ("pipo+label-noise", "pipo+gspo", "pipo+mc-grpo", "pipo+nft", "spear+pipo"):
        taken = steps(build(names).system, 3)
        assert "pipo/xi" in taken[-1].metrics
    noisy = steps(build("grpo+label-noise", judge__flip_labels__share=1.0).system, 1)[0]
    assert all(t.score == 1 - t.outcome for g in noisy.groups for t in g.trajectories)


class Refuse(ScoreGate):
    """A gate that finds every step worse than the first."""

    def worse(self, now: np.ndarray, before: np.ndarray) -> bool:
        """Always."""
        return True


@pytest.mark.parametrize("name", ["pipo", "spear"])
def test_a_gate_takes_the_wrapped_learner_back_too(name: str) -> None:
    """After a refusal weights, optimizer and window are what they were."""
    made = build(name, gate=Refuse, gate__every=1)
    steps(made.system, 1)
    parts = {p: part for p, part in made.system.parts.items() if p.startswith("learn") and hasattr(part, "state_dict")}
    before = [copy.deepcopy(part.state_dict()) for part in parts.values()], weights(made)
    (s,) = steps(made.system, 1)
    assert s.metrics["gate/accepted"] == 0.0
    assert all(torch.equal(a, b) for a, b in zip(before[1], weights(made), strict=True))
    for saved, part in zip(before[0], parts.values(), strict=True):
        now = part.state_dict()
        assert {k: saved[k] for k in ("updates", "means") if k in saved} == {
            k: now[k] for k in ("updates", "means") if k in now
        }
    assert made.policy.version > s.actors[0].version
