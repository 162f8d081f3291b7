"""The head: what it reads, that it learns verdicts, its state, and where it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import build
from tests.toys import random_policy, role_of

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.learn.head import Head
from evolvent.lineage import pack
from evolvent.rollout.prune import Prune
from evolvent.rollout.sample import Sample
from evolvent.tasks.base import one_user

PROBLEM = Problem("00" * 8, one_user("abc"), {"text": "abc"}, "easy", "digits")
WIDTH = 16


def made(seed: int = 0, **fields: Any) -> tuple[Head, Role]:
    """A head for a small random model."""
    role = role_of(random_policy(1, WIDTH, seed=seed), seed=seed)
    part = Head(**fields)
    part.setup(role)
    return part, role


def finished(uid: int, outcome: float | None, **info: Any) -> Trajectory:
    row = Trajectory(uid, PROBLEM, np.zeros(2, np.int32), np.ones(2, bool), np.zeros(2, np.float32), info=info)
    if outcome is not None:
        row.reward("outcome", outcome)
    return row


def step(role: Role, t: int, count: int = 64) -> Step:
    """A step whose states tell by their first number what came of them."""
    rng = np.random.default_rng(t)
    right = rng.integers(0, 2, count)
    states = rng.normal(0, 1, (count, WIDTH)).astype(np.float32)
    states[:, 0] = 4.0 * right - 2.0
    rows = [finished(i, float(y), state=states[i], head=0.25 + 0.5 * y) for i, y in enumerate(right.tolist())]
    return Step(t, role, groups=[Group(PROBLEM, rows)])


def test_it_learns_verdicts_and_counts_them() -> None:
    part, role = made(lr=0.01)
    for t in range(25):
        part.observe(step(role, t))
    fresh = step(role, 99).groups[0].trajectories
    right = np.array([t.outcome == 1 for t in fresh])
    score = part.logits(np.stack([t.info["state"] for t in fresh])).detach().numpy()
    assert score[right].min() > 0 > score[~right].max()
    counts = part.calibration.counts
    assert counts[0, 32] + counts[1, 96] == counts.sum() == 25 * 64  # scores of 1/4 and 3/4


def test_one_update_by_hand() -> None:
    """Adam's first step moves each weight by the learning rate against the sign of its gradient."""
    part, role = made(lr=0.01)
    s = step(role, 0, count=40)  # fewer than two batches of 32: one update
    rows = s.groups[0].trajectories
    states = torch.from_numpy(np.stack([t.info["state"] for t in rows]))
    before = [p.detach().clone().requires_grad_() for p in part.layers.parameters()]
    first, bias, last, end = before
    score = torch.sigmoid(torch.relu(states @ first.T + bias) @ last.T + end)[:, 0]
    right = torch.tensor([t.outcome for t in rows])
    (-(right * score.log() + (1 - right) * (1 - score).log()).mean()).backward()
    part.observe(s)
    for was, now in zip(before, part.layers.parameters(), strict=True):
        assert was.grad is not None
        moves = was.grad.abs() > 1e-5
        assert moves.any()
        assert torch.allclose((now - was)[moves], -0.01 * was.grad.sign()[moves], atol=1e-4)


def test_only_what_it_has_seen_and_what_did_not_fail_is_learned() -> None:
    part, role = made()
    bad = finished(1, 1.0, state=np.ones(WIDTH, np.float32), head=0.5)
    bad.error = "verifier: down"
    before = part.state_dict()
    part.observe(Step(0, role, groups=[Group(PROBLEM, [finished(0, 1.0), bad])]))
    assert part.calibration.counts.sum() == 0
    assert all(torch.equal(w, before["layers"][n]) for n, w in part.layers.state_dict().items())


def test_it_reads_the_state_that_the_next_token_is_drawn_from() -> None:
    part, role = made()
    part.calibration.counts[1] = 3.0  # whatever the score, right
    s = Step(0, role, [role.policy_actor()])
    (group,) = Sample(control=Prune(part, stride=2))([Request(PROBLEM, 16)], s)
    seen = [t for t in group.trajectories if "state" in t.info]
    assert len(seen) > 8
    for t in seen:
        end = t.segments[0].stop + 2
        with torch.no_grad():
            plain = role.policy.model(torch.from_numpy(t.tokens[:end].astype(np.int64))[None])[0, -1]
            score = torch.sigmoid(part.layers(plain))
        np.testing.assert_allclose(t.info["state"], plain.numpy(), atol=1e-4)
        assert t.info["head"] == pytest.approx(float(score), abs=1e-4)
        assert t.info["quality"] > 0.75


def test_its_state_survives_a_file(tmp_path: Path) -> None:
    whole, role = made()
    first, _ = made()
    second, _ = made(seed=1)
    for t in range(4):
        whole.observe(step(role, t))
    for t in range(2):
        first.observe(step(role, t))
    pack.save(tmp_path / "state", first.state_dict())
    second.load_state_dict(pack.load(tmp_path / "state"))
    for t in range(2, 4):
        second.observe(step(role, t))
    for one, other in zip(whole.layers.parameters(), second.layers.parameters(), strict=True):
        assert torch.equal(one, other)
    assert (whole.calibration.counts == second.calibration.counts).all()


def test_a_saved_state_does_not_move_on() -> None:
    part, role = made()
    saved = part.state_dict()
    before = saved["layers"]["0.weight"].clone()
    part.observe(step(role, 0))
    assert torch.equal(saved["layers"]["0.weight"], before)
    assert saved["counts"].sum() == 0


def test_its_start_depends_on_the_seed_and_draws_nothing_from_torch() -> None:
    role = role_of(random_policy(1, WIDTH))
    before = torch.random.get_rng_state()
    parts = [Head(), Head(), Head()]
    for part, seed in zip(parts, (0, 0, 1), strict=True):
        role.seed = seed
        part.setup(role)
    assert torch.equal(before, torch.random.get_rng_state())
    one, same, other = (part.layers[0].weight for part in parts)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("judge", ["ttrl", "evol-rl"])
def test_votes_give_nothing_to_learn(judge: str) -> None:
    for composition in (f"arrol+{judge}", f"{judge}+arrol"):
        with pytest.raises(UserError, match=r"a majority vote gives none; drop one of the two recipes") as refused:
            build(composition, propose__n=8)
        assert "\n" not in str(refused.value)


def test_a_judge_without_a_verdict_is_refused_when_it_has_judged() -> None:
    part, role = made()
    rows = [finished(0, None, state=np.ones(WIDTH, np.float32), head=0.5)]
    with pytest.raises(UserError, match="the judge gives none"):
        part.observe(Step(0, role, groups=[Group(PROBLEM, rows)]))
