"""LATR on real steps: what branches, what is pruned, how much of a group is of the tree, and when the tree is left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.recipes.recipe_runs import build, steps

from evolvent.core.records import Trajectory
from evolvent.core.step import Step
from evolvent.recipes.rollout.latr import alike, eta, wavers

EASY: dict[str, Any] = {
    "rollout__branch__least": 0.02,
    "rollout__branch__gap": 0.9,
}  # a small model wavers little
STAY: dict[str, Any] = {
    "rollout__most": 99,
    "rollout__full": 9.0,
}  # in the tree, to the end of all answers
KEEP: dict[str, Any] = {"rollout__prune__edits": 0.0}
SHARES = {0: 1.0, 10: 0.75, 20: 0.5, 80: 0.25, 200: 0.0}  # of the authors' countdown script


def step(composition: str = "latr", task: str = "arith:1x1", **settings: Any) -> Step:
    """The first step, of groups of eight."""
    (taken,) = steps(build(composition, task, propose__n=8, **settings).system, 1)
    return taken


def everybody(s: Step) -> list[Trajectory]:
    return [t for g in s.groups for t in g.trajectories]


def test_share_follows_the_schedule() -> None:
    at = [(0, 8), (9, 8), (10, 6), (19, 6), (20, 4), (79, 4), (80, 2), (199, 2), (200, 0), (999, 0)]
    assert [round(8 * eta(t, steps=SHARES)) for t, _ in at] == [k for _, k in at]


def test_only_a_likely_and_close_second_opens_a_branch() -> None:
    for p, opens in [((0.4, 0.3), True), ((0.5, 0.3), False), ((0.3, 0.24), False), ((0.34, 0.33), True)]:
        assert wavers(np.array(p), least=0.25, gap=0.15).tolist() == [False, opens]
    assert wavers(np.array([0.36, 0.32, 0.3]), least=0.25, gap=0.05).tolist() == [False, True, False]


def distance(a: Sequence[int], b: Sequence[int]) -> int:
    """Levenshtein's recursion, as it is defined."""

    @cache
    def of(i: int, j: int) -> int:
        if not min(i, j):
            return max(i, j)
        return min(of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return of(len(a), len(b))


def test_alike_is_the_edit_distance_below_a_share_of_the_window() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 9))
        a, b = (rng.integers(0, 3, size).tolist() for _ in range(2))
        assert alike(a, b, edits=0.4) == (distance(a, b) < 0.4 * size)
    assert alike([1, 2, 3, 4, 5], [2, 3, 4, 5, 1], edits=0.41)  # shifted by one: two edits, not five
    assert not alike([1, 2, 3, 4, 5], [2, 3, 4, 5, 1], edits=0.4)


def test_values_are_those_of_the_paper() -> None:
    control = build("latr").system.parts["rollout"]
    assert (control.looks, control.most, control.full, control.decay) == ((20, 30, 50), 512, 0.98, 0.05)
    p = np.array([0.40, 0.26])
    assert control.branch(p).tolist() == [False, True]
    assert not control.branch(p - 0.02)[1]
    assert control.prune([1, 2, 3], [1, 2, 4])
    assert not control.prune([1, 2], [1, 3])
    assert [control.share(t) for t in SHARES] == list(SHARES.values())


def test_in_the_tree_a_token_is_the_best_or_the_second_that_opened_the_branch() -> None:
    s = step(**EASY, **STAY, **KEEP)
    by = {t.uid: t for t in everybody(s)}
    forked = [t for t in by.values() if t.fork_at is not None]
    assert len(forked) == s.metrics["tree/forks"] > 5
    assert all(sum(t.parent is None for t in g.trajectories) >= 1 for g in s.groups)
    for t in by.values():
        assert t.alternatives is not None
        for at in np.flatnonzero(t.mask).tolist():
            first, second = t.alternatives[0][at]
            p = np.exp(t.alternatives[1][at])
            if at == t.fork_at:
                assert t.tokens[at] == second
                assert p[1] > 0.02
                assert p[0] - p[1] < 0.9
                assert t.logprob[at] == pytest.approx(math.log(p[1]), abs=1e-4)
            elif t.fork_at is None or at > t.fork_at:
                assert t.tokens[at] == first
        if t.fork_at is not None:
            assert t.parent is not None
            assert by[t.parent].tokens[: t.fork_at].tolist() == t.tokens[: t.fork_at].tolist()
            assert by[t.parent].tokens[t.fork_at] == t.alternatives[0][t.fork_at][0]


def test_the_likelier_open_first_and_a_group_stays_whole() -> None:
    few = step(rollout__share__steps={0: 0.25}, **EASY, **STAY, **KEEP)
    assert {len(g.trajectories) for g in few.groups} == {8}
    for g in few.groups:
        assert sum(t.fork_at is not None for t in g.trajectories) <= 1  # k = 2: the root and one more


def test_without_wavering_nothing_branches() -> None:
    assert step(**EASY).metrics["tree/forks"] > 0
    assert step(rollout__branch__least=1.0).metrics["tree/forks"] == 0


def test_what_stays_alike_is_pruned_with_its_descendants() -> None:
    """Looked at two tokens after the fork, some of them back at their parents' text."""

    def grown(edits: float) -> Step:
        looks: dict[str, Any] = {"rollout__looks": (2,), "rollout__prune__edits": edits}
        return step(task="arith:2x2-chain", **EASY, **STAY, **looks)

    def back(s: Step) -> int:
        """Branches that were less than two edits from their parent's when they were looked at."""
        by = {t.uid: t for t in everybody(s)}
        found = 0
        for t in by.values():
            if t.fork_at is not None and t.parent is not None:
                own, parent = (x.tokens[t.fork_at :].tolist() for x in (t, by[t.parent]))  # no parent was dropped
                found += min(len(own), len(parent)) > 2 and distance(own[:2], parent[:2]) < 2
        return found

    free, strict = grown(0.0), grown(1.0)
    assert free.metrics["tree/pruned"] == 0 < strict.metrics["tree/pruned"] < 1
    assert back(free) > 0 == back(strict)


def test_a_share_of_nothing_is_plain_sampling() -> None:
    none = step(rollout__share__steps={0: 0.0})
    assert [t.tokens.tolist() for t in everybody(none)] == [t.tokens.tolist() for t in everybody(step("grpo"))]


def test_the_tree_is_left_after_the_most_tokens() -> None:
    """Greedy up to the exit, sampled after it, copies of the root where branches are missing."""

    def greedy(s: Step) -> list[list[bool]]:
        found = []
        for t in everybody(s):
            assert t.alternatives is not None
            found.append((t.tokens == t.alternatives[0][:, 0])[t.mask].tolist())
        return found

    one = greedy(step(rollout__most=1, rollout__branch__least=1.0))
    assert all(row[0] for row in one)
    assert not all(all(row) for row in one)
    assert all(all(row) for row in greedy(step(**STAY, rollout__branch__least=1.0)))


def test_branches_bring_more_answers_than_copies_of_the_root() -> None:
    def answers(s: Step) -> float:
        return float(np.mean([len({t.completion for t in g.trajectories}) for g in s.groups]))

    assert answers(step(**EASY, **STAY)) > 2 > 1 == answers(step(rollout__branch__least=1.0, **STAY))
