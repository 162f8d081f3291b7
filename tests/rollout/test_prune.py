"""Pruning: chances to stay by hand, who is looked at and when, and what becomes of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.toys import random_policy, role_of

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.base import Branch, Tree
from evolvent.rollout.prune import Prune
from evolvent.rollout.sample import Sample
from evolvent.tasks.base import one_user

PROBLEMS = [
    Problem(f"{i:016x}", one_user(text), {"text": text}, "easy", "digits") for i, text in enumerate(("ab", "c"))
]


def even(branches: Sequence[Branch], s: Step) -> np.ndarray:
    """Nobody is more likely than another to end right."""
    return np.full(len(branches), 0.5)


@dataclass
class Told:
    """A quality that was told what becomes of each; it notes whom it was asked about, and their length."""

    fate: dict[int, float]
    asked: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, branches: Sequence[Branch], s: Step) -> np.ndarray:
        self.asked += [(b.uid, int(b.mask.sum())) for b in branches]
        return np.array([self.fate.get(b.uid, 0.5) for b in branches])


@dataclass
class Pause:
    """Pauses everything after `at` tokens."""

    at: int
    stride: int = 1

    def between(self, tree: Tree, s: Step) -> None:
        for branch in tree.live:
            if branch.mask.sum() >= self.at:
                tree.stop(branch, "paused")


def role() -> Role:
    return role_of(random_policy(1, 16))


def rolled(part: Prune | None, n: int = 64, label: str = "", t: int = 0, **more: Any) -> tuple[list[Group], Step]:
    """Groups of two problems."""
    own = role()
    s = Step(t, own, [own.policy_actor()], label=label, **more)
    return Sample(control=part)([Request(p, n) for p in PROBLEMS], s), s


def survival(q: list[float], **fields: float) -> np.ndarray:
    return Prune(even, **fields).survival(np.array(q))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("q", "p"),
    [
        # mean 0.6 > rho: 0.5 (0.5 - q) = 0.15, -0.1, -0.2, of mean -0.05, so that delta is 0.05
        ([0.2, 0.7, 0.9], [0.7, 0.45, 0.35]),
        ([0.8, 0.3, 0.1], [0.7, 0.45, 0.35]),  # its mirror image: mean 0.4 < rho, the sign of lambda is turned
        ([0.9, 0.9], [0.5, 0.5]),
        ([0.3], [0.5]),
    ],
)
def test_survival_by_hand(q: list[float], p: list[float]) -> None:
    assert survival(q) == pytest.approx(p)


def test_clipped_survival_still_keeps_kappa_on_average() -> None:
    """lambda = 2: terms of 1, 1, -0.6, -1, -1, -1. Two are clipped; delta = 0.7 makes the others sum to 1.2."""
    assert survival([0.0, 0.0, 0.8, 1.0, 1.0, 1.0], lam=2.0) == pytest.approx([0.9, 0.9, 0.6, 0.2, 0.2, 0.2])
    assert survival([0.0, 1.0, 1.0, 1.0], lam=3.0, kappa=0.3) == pytest.approx([0.9, 0.1, 0.1, 0.1])
    assert survival([0.0, 1.0, 1.0, 1.0], lam=500.0, kappa=0.3) == pytest.approx([0.9, 0.1, 0.1, 0.1])
    assert survival(np.linspace(0, 1, 9).tolist(), kappa=0.3).mean() == pytest.approx(0.3)
    assert survival([0.0, 1.0, 1.0], kappa=0.9) == pytest.approx([0.9, 0.9, 0.9])


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9])
def test_the_share_of_right_answers_moves_towards_rho(share: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = np.clip(rng.normal(share, 0.2, 16), 0, 1)
        p = Prune(even).survival(q)
        before, after = abs(q.mean() - 0.5), abs(p @ q / p.sum() - 0.5)
        assert after < before or before < 0.05
        printed = np.clip(0.5 + 0.5 * (0.5 - q), 0.1, 0.9)  # the sign as printed, without delta
        if q.mean() < 0.45:
            assert abs(printed @ q / printed.sum() - 0.5) > before


def test_everyone_is_looked_at_once_at_the_detection_length() -> None:
    part = Prune(Told({}), stride=3, warmup=1)
    groups, _ = rolled(part)
    rows = {t.uid: t for g in groups for t in g.trajectories}
    asked = [uid for uid, _ in part.quality.asked]  # type: ignore[attr-defined]
    assert len(asked) == len(set(asked))
    assert {u for u, t in rows.items() if t.sampled > 3} <= set(asked) <= {u for u, t in rows.items() if t.sampled >= 3}
    assert {size for _, size in part.quality.asked} == {3}  # type: ignore[attr-defined]
    assert all((uid in asked) == ("quality" in t.info) for uid, t in rows.items())


def test_about_kappa_stay_and_are_as_they_would_have_been() -> None:
    whole, unpruned = rolled(None)
    some, pruned = rolled(Prune(even, stride=2, kappa=0.3, warmup=0))
    rows = {t.uid: t for g in whole for t in g.trajectories}
    stayed = [t for g in some for t in g.trajectories]
    early = sum(t.sampled < 2 for t in rows.values())
    assert len(rows) == 128
    assert 0.2 < (len(stayed) - early) / (128 - early) < 0.4
    assert all((t.tokens == rows[t.uid].tokens).all() for t in stayed)
    assert pruned.role.ledger.of("sampled") < 0.7 * unpruned.role.ledger.of("sampled")


def test_who_stays_depends_on_the_own_group() -> None:
    """All of the first group are likely to be right, and of the second half are: each group keeps half."""
    whole, _ = rolled(None)
    first, second = ([t.uid for t in g.trajectories] for g in whole)
    fate = dict.fromkeys(first, 0.9) | {uid: float(i % 2) for i, uid in enumerate(second)}
    groups, _ = rolled(Prune(Told(fate), stride=1, warmup=0, lam=2.0, rho=0.1))
    counts = [len(g.trajectories) for g in groups]
    assert all(20 < c < 44 for c in counts)
    kept = [fate[t.uid] for t in groups[1].trajectories]
    assert np.mean(kept) < 0.3  # mean q = 1/2 is above rho


def test_quality_balances_groups_and_chance_does_not() -> None:
    whole, _ = rolled(None)
    rng = np.random.default_rng(0)
    fate = {t.uid: float(rng.random() < 0.25) for g in whole for t in g.trajectories}
    balance = {}
    for lam in (0.5, 0.0):
        part = Prune(Told(fate), stride=1, warmup=0, lam=lam)
        groups, s = rolled(part)
        for t in (t for g in groups for t in g.trajectories):
            t.reward("outcome", fate[t.uid])
        part.observe(s := Step(0, s.role, groups=groups))
        shares = [np.mean([t.outcome for t in g.valid]) for g in groups]
        assert s.metrics["balance"] == pytest.approx(np.mean([r * (1 - r) for r in shares]))
        balance[lam] = s.metrics["balance"]
    assert balance[0.5] > 1.1 * balance[0.0] > 0


@pytest.mark.parametrize(("t", "label", "dropped"), [(1, "", False), (2, "", True), (2, "probe", False)])
def test_nobody_is_dropped_in_the_warm_up_or_in_probes(t: int, label: str, dropped: bool) -> None:
    groups, _ = rolled(Prune(even, stride=1, warmup=2), t=t, label=label)
    rows = [t for g in groups for t in g.trajectories]
    assert (len(rows) < 128) == dropped
    assert any("quality" in t.info for t in rows)


def test_what_was_looked_at_before_a_pause_is_not_looked_at_again() -> None:
    told = Told({})
    part = Prune(told, stride=2, warmup=0)
    _, first = rolled(part, controls=[Pause(3)])
    seen = {uid for uid, _ in told.asked}
    paused = [t for t in first.pending if t.stop == "paused"]
    assert paused
    assert {t.uid for t in paused} <= seen
    told.asked.clear()
    requests = [Request(p, 64, resume=tuple(t for t in first.pending if t.problem is p)) for p in PROBLEMS]
    groups = Sample(control=part)(requests, Step(1, first.role, [first.role.policy_actor()]))
    assert not seen & {uid for uid, _ in told.asked}
    assert {t.uid for t in paused} <= {t.uid for g in groups for t in g.trajectories}  # all of them stay


def test_states_are_asked_for_where_quality_reads_them() -> None:
    def reader(branches: Sequence[Branch], s: Step) -> np.ndarray:
        assert all(b.hidden is not None and b.hidden.shape == (16,) for b in branches)
        return np.full(len(branches), 0.5)

    reader.needs = ("hidden",)  # type: ignore[attr-defined]
    assert not Prune(even).hidden
    assert Prune(reader).hidden
    groups, _ = rolled(Prune(reader, stride=1))
    assert any("quality" in t.info for g in groups for t in g.trajectories)


@pytest.mark.parametrize("bad", [{"kappa": 0.95}, {"kappa": 0.05}, {"low": -0.1}, {"high": 1.2}])
def test_a_rate_out_of_reach_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UserError, match="kappa"):
        Prune(even, **bad).check(None)  # type: ignore[arg-type]
