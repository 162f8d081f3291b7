"""The verifier's choice among several answers."""

from __future__ import annotations

from tests.toys import random_policy, role_of

from evolvent.core.records import Request
from evolvent.core.step import Step
from evolvent.judge.best import BestOf
from evolvent.judge.verify import Verify
from evolvent.rollout.sample import Sample


def test_the_chosen_answer_is_right_if_any_is() -> None:
    role = role_of(random_policy(1, 16))
    s = Step(0, role, [role.policy_actor()])
    groups = Sample()([Request(role.task.draw("train", s.rng(i)), 8) for i in range(20)], s)
    groups[0].trajectories[0].error = "environment: down"
    for t in groups[1].trajectories:
        t.error = "environment: down"
    BestOf(Verify())(groups, s)
    assert groups[1].info["answer"] is None
    kept = [g for g in groups if g.valid]
    for g in kept:
        assert g.info["answer"] in g.valid
        assert g.info["answer"].outcome == max(t.outcome for t in g.valid)
    solved = sum(any(t.outcome for t in g.valid) for g in kept) / len(kept)
    assert s.metrics["answered"] == solved
    assert solved > 0
    assert solved > sum(t.outcome for g in kept for t in g.valid) / sum(len(g.valid) for g in kept)
