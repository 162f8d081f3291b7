"""APRIL: who is started, when the step stops, what waits and goes on, and who sampled which token."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import build, steps

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.rollout.partial import Partial, off_policy
from evolvent.run.assemble import Assembled

TASK = "arith:1x1,1x1-chain"  # short answers and long ones
WANTED, N = 6, 4  # groups of a step, and their size, in these tests


def april(over: float = 2.0, **settings: Any) -> tuple[Assembled, Partial]:
    """A system, and its part."""
    made = build("april", TASK, rollout__partial__over=over, gate__every=1000, **settings)
    return made, made.system.parts["rollout.partial"]


def members(groups: list[Group]) -> dict[int, Trajectory]:
    """Trajectories by uid."""
    return {t.uid: t for g in groups for t in g.trajectories}


def sampled(groups: list[Group]) -> int:
    """Tokens."""
    return sum(t.sampled for t in members(groups).values())


def unhindered() -> tuple[list[Group], list[int]]:
    """The groups of an April step's start, rolled out to their ends, and the decode step at which each is complete."""
    made, part = april()
    role = made.system.roles[""]
    s = Step(0, role, [role.policy_actor()])
    groups = part.inner(part.under_way(next(role.propose(s)), s), s)
    return groups, [max(t.sampled for t in g.trajectories) for g in groups]


def test_the_step_stops_with_its_nth_finisher() -> None:
    whole, times = unhindered()
    assert len(whole) == 2 * WANTED
    assert len({g.problem.key for g in whole[WANTED:]} - {g.problem.key for g in whole[:WANTED]}) > 1  # other problems
    stop = sorted(times)[WANTED - 1]
    made, part = april()
    (s,) = steps(made.system, 1)
    assert made.system.ledger.of("decode_steps") == stop < max(times)
    complete = [g for g, time in zip(whole, times, strict=True) if time <= stop]
    assert list(members(s.groups)) == list(members(complete[:WANTED]))
    assert [len(g.trajectories) for g in part.waiting] == [N] * WANTED
    tokens = sum(min(t.sampled, stop) for t in members(whole).values())
    assert sampled(s.groups) + sampled(part.waiting) == tokens
    assert s.metrics["idle"] == pytest.approx(1 - tokens / (stop * 2 * WANTED * N))


def test_a_step_that_waits_for_everyone_takes_longer_and_is_the_parents() -> None:
    _, times = unhindered()
    made, part = april(over=1.0)
    taken = steps(made.system, 2)
    assert part.waiting == []
    assert max(t.sampled for t in members(taken[0].groups).values()) == max(times[:WANTED])
    assert all(s.metrics["resumed"] == s.metrics["off_policy"] == 0 for s in taken)
    parent = steps(build("grpo", TASK, gate__every=1000).system, 2)
    for mine, theirs in zip(taken, parent, strict=True):
        shared = [k for k in theirs.metrics if not k.startswith("seconds/")]
        assert [mine.metrics[k] for k in shared] == [theirs.metrics[k] for k in shared]
    early, _ = april()
    assert [len(s.groups) for s in steps(early.system, 2)] == [WANTED] * 2
    assert early.system.ledger.of("decode_steps") < made.system.ledger.of("decode_steps")


def test_nothing_is_thrown_away_and_the_oldest_goes_first() -> None:
    made, part = april()
    trained = 0
    for _ in range(5):
        before = copy.deepcopy(part.waiting)
        (s,) = steps(made.system, 1)
        trained += sampled(s.groups)
        assert trained + sampled(part.waiting) == made.system.ledger.of("sampled")
        after = members(s.groups) | members(part.waiting)
        for uid, t in members(before).items():
            size = len(t.tokens)
            assert (after[uid].tokens[:size] == t.tokens).all()
            assert (after[uid].logprob[:size] == t.logprob).all()
        old = [set(members([g])) for g in before]
        done = [set(members([g])) & set(members(before)) for g in s.groups]
        first = [i for i, g in enumerate(done) if g]
        assert first == list(range(len(first)))  # those that waited come before the fresh ones
        assert all(g in old for g in done if g)  # and with the group that they were in
        assert all(len(g.trajectories) == N for g in s.groups)
    forgetful, part = april()
    trained = 0
    for _ in range(5):
        (s,) = steps(forgetful.system, 1)
        trained += sampled(s.groups)
        part.waiting = []
    assert trained < forgetful.system.ledger.of("sampled")
    assert s.metrics["resumed"] == s.metrics["off_policy"] == 0


def score(model: torch.nn.Module, policy: Any, t: Trajectory) -> np.ndarray:
    """Log-probs of a row under some weights, float32 [T]."""
    kept, policy.model = policy.model, model
    mask = torch.from_numpy(t.mask[None])
    tokens = torch.from_numpy(t.tokens[None]).long()
    with torch.no_grad():
        chosen = torch.log_softmax(policy.logits(tokens, mask), -1).gather(1, tokens[mask][:, None])[:, 0]
    policy.model = kept
    return torch.zeros(len(t.tokens)).masked_scatter(mask[0], chosen).numpy()


def test_each_token_keeps_the_log_prob_of_the_version_that_sampled_it() -> None:
    made, _ = april()
    models, mixed, drift = {}, 0, 0.0
    for _ in range(5):
        now = made.policy.version
        models[now] = copy.deepcopy(made.policy.model)
        (s,) = steps(made.system, 1)
        stale = rows = 0
        for t in members(s.groups).values():
            edge = 0
            for version, stop in t.info.get("versions", [(t.version, len(t.tokens))]):
                part = slice(edge, stop)
                assert score(models[version], made.policy, t)[part] == pytest.approx(t.logprob[part], abs=1e-4)
                if version != now:
                    ratio = np.exp(score(models[now], made.policy, t)[part] - t.logprob[part])[t.mask[part]]
                    drift = max([drift, *np.abs(ratio - 1)])
                    stale += int(t.mask[part].sum())
                edge = stop
            mixed += len({version for version, _ in t.info.get("versions", [])}) > 1
            rows += t.sampled
        assert s.metrics["off_policy"] == pytest.approx(stale / rows)
        assert s.metrics["resumed"] == np.mean(["versions" in t.info for t in members(s.groups).values()])
    assert mixed > 0
    assert drift > 0.01  # the ratio of stale tokens is not 1


def test_tokens_of_other_versions() -> None:
    mask = np.array([0, 0, 1, 1, 1, 0, 1, 1], bool)
    t = Trajectory(0, Problem("key", (), {}), np.zeros(8, np.int32), mask, np.zeros(8, np.float32), version=7)
    assert (off_policy(t, 7), off_policy(t, 8)) == (0, 5)
    t.info["versions"] = [(3, 3), (5, 7), (7, 8)]
    assert [off_policy(t, v) for v in (3, 5, 7, 9)] == [4, 2, 4, 5]


def test_it_says_where_it_cannot_work() -> None:
    with pytest.raises(UserError, match="at least 1"):
        april(over=0.5)
    with pytest.raises(UserError, match="population"):
        steps(build("april+eggroll", learn__population=4).system, 1)


def test_nothing_waits_where_another_asks() -> None:
    made, part = april()
    role = made.system.roles[""]
    s = Step(0, role, [role.policy_actor()])
    groups = role.act(next(role.propose(s)), s)
    assert len(groups) == WANTED
    assert part.waiting == []
    assert not any(t.stop == "paused" for t in members(groups).values())


def test_trees_are_refused() -> None:
    with pytest.raises(UserError, match="Lookahead.*leave one of the two out"):
        build("april+latr")
