"""ARRoL: what each mechanism moves when it is switched off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.recipes.recipe_runs import build, steps, without

from evolvent.bench.metrics import parts_needed
from evolvent.bench.probes import find_probe
from evolvent.core.step import Step
from evolvent.learn.head import Head
from evolvent.recipes import all_recipes
from evolvent.rollout.prune import Prune

NOW = {"rollout__control__stride": 1, "rollout__control__warmup": 0, "propose__n": 16}


def test_pruning_halves_what_is_finished_and_saves_tokens() -> None:
    with without("arrol", "rollout.control") as ablated:
        on = build("arrol", **NOW)
        off = build(ablated, propose__n=16)
        (a,), (b,) = steps(on.system, 1), steps(off.system, 1)
        assert b.metrics["trajectories"] == 6 * 16
        assert 0.35 < a.metrics["trajectories"] / b.metrics["trajectories"] < 0.65
        assert on.system.ledger.of("sampled") < 0.85 * off.system.ledger.of("sampled")
        assert on.system.ledger.of("verifier_calls") < 0.7 * off.system.ledger.of("verifier_calls")
        uids = {t.uid: t for g in b.groups for t in g.trajectories}
        for t in [t for g in a.groups for t in g.trajectories]:  # those that stay are as they would have been
            assert (t.tokens == uids[t.uid].tokens).all()


def test_the_head_learns_from_all_that_it_saw_and_that_was_finished() -> None:
    made = build("arrol", **NOW)
    head: Head = made.system.parts["rollout.control.quality"]
    before = head.state_dict()["layers"]
    taken = steps(made.system, 3)
    rows = [t for s in taken for g in s.groups for t in g.valid if "head" in t.info]
    right = sum(t.outcome == 1 for t in rows)
    assert head.calibration.counts.sum(1).tolist() == [len(rows) - right, right]
    assert 0 < right < len(rows) < 3 * 96
    assert all(not np.array_equal(before[n], w) for n, w in head.state_dict()["layers"].items())


def test_a_head_that_knows_balances_groups_and_chance_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches keep their tokens, so that an unpruned run says what will come of each."""
    whole = build("arrol", **{**NOW, "rollout__control__warmup": 9, "propose__problems": 48})
    (s,) = steps(whole.system, 1)
    fate = {t.uid: t.outcome for g in s.groups for t in g.trajectories if "quality" in t.info}
    monkeypatch.setattr(Head, "__call__", lambda self, branches, s: np.array([fate[b.uid] for b in branches]))
    balance = {}
    for lam in (0.5, 0.0):
        made = build("arrol", **NOW, rollout__control__lam=lam, propose__problems=48)
        (s,) = steps(made.system, 1)
        assert 0.35 < s.metrics["trajectories"] / (48 * 16) < 0.65
        balance[lam] = s.metrics["balance"]
    assert balance[0.5] > 1.1 * balance[0.0] > 0


def test_nobody_is_dropped_in_the_warm_up() -> None:
    taken = steps(build("arrol", **{**NOW, "rollout__control__warmup": 2}).system, 3)
    assert [s.metrics["trajectories"] == 96 for s in taken] == [True, True, False]


def test_look_aheads_and_probes_see_everyone() -> None:
    made = build("arrol", **NOW)
    steps(made.system, 2)
    role = made.system.roles[""]
    s = Step(9, role, role.actors(Step(9, role)), label="probe")
    requests = next(role.slots["propose"](s))
    assert all(len(g.trajectories) == 16 for g in role.slots["rollout"](requests, s))


def test_the_values_of_the_paper() -> None:
    made = build("arrol")
    part: Any = made.system.parts["rollout.control"]
    paper = {".".join(s.path[1:]): s.paper for s in made.built[""].settings}
    assert isinstance(part, Prune)
    assert isinstance(part.quality, Head)
    assert (paper["propose.n"], paper["rollout.control.stride"], paper["rollout.control.warmup"]) == (16, 512, 20)
    assert (part.kappa, part.rho, part.lam, part.low, part.high, part.quality.bins) == (0.5, 0.5, 0.5, 0.1, 0.9, 128)


def test_the_claims_measure_what_there_is() -> None:
    claim = all_recipes()["arrol"].mechanism
    assert claim is not None
    _, probes = parts_needed([c.metric for c in claim.components])
    assert [find_probe(name).__name__ for name in probes] == ["vote_gain"]
