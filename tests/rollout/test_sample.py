"""Roll-outs of several turns, with hints and memory, paused and resumed, on a real model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.toys import Digits, plain, random_policy, role_of

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Message, Problem, Request, Trajectory
from evolvent.core.step import Step
from evolvent.engine.base import Tree
from evolvent.rollout.sample import Sample
from evolvent.tasks.base import Demo, Reply, Score, Split, one_user


class Echo(Digits):
    """A task of three turns: a turn that ends in `e` is answered with what it said; an `x` breaks the environment."""

    name, max_tokens, max_turns, turn_end = "echo", 40, 3, "e"

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {}

    def episode(self, problem: Problem) -> Any:
        return EchoEpisode(self.said.setdefault(problem.key, []))


class EchoEpisode:
    def __init__(self, said: list[str]) -> None:
        self.said = said

    def respond(self, turn: str) -> Reply:
        self.said.append(turn)
        if "x" in turn:
            raise VerifierError("broken")
        return Reply("<" + turn[-3:] + ">", note={"turns": 1}) if turn.endswith("e") else Reply("", done=True, calls=0)


def rolled(
    task: Any, requests: list[Request], part: Sample | None = None, seed: int = 0, spread: float = 1.0
) -> tuple[list[Trajectory], Step]:
    role = role_of(random_policy(spread=spread), task, seed)
    s = Step(0, role, [role.policy_actor()])
    groups = (part or Sample())(requests, s)
    return [t for g in groups for t in g.trajectories], s


def problem(text: str = "abc") -> Problem:
    return Problem("00" * 8, one_user(text), {"text": text}, "easy", "digits")


def test_tool_replies_are_in_the_tokens_but_not_in_the_mask() -> None:
    rows, s = rolled(Echo(), [Request(problem(), 64)])
    format = s.role.policy.format
    several = [t for t in rows if t.info.get("calls")]
    assert several, "no episode ever called the tool: the test shows nothing"
    for t in rows:
        assert [seg.kind for seg in t.segments][:2] == ["prompt", "policy"]
        for before, seg in zip(t.segments, t.segments[1:], strict=False):
            text = format.decode(t.tokens[seg.start : seg.stop])
            if seg.kind == "tool":
                said = format.decode(t.tokens[before.start : before.stop])
                assert text == "<" + said[-3:] + ">"
                assert not t.mask[seg.start : seg.stop].any()
        unanswered = t.info.get("calls", 0) - sum(seg.kind == "tool" for seg in t.segments)
        assert 0 <= unanswered <= (t.stop in ("turns", "length"))  # no room for the reply, or for another turn
        assert t.turns <= 3
        got = plain(s.role.policy, t.tokens)
        np.testing.assert_allclose(t.logprob[1:][t.mask[1:]], got[t.mask[1:]], atol=1e-4)
    assert s.role.ledger.of("environment_steps") == sum(t.info.get("calls", 0) for t in rows)


def test_a_broken_environment_is_an_error_of_its_trajectory_alone() -> None:
    rows, _ = rolled(Echo(), [Request(problem(), 64)])
    broken = [t for t in rows if t.error]
    assert broken
    assert all(t.error == "environment: broken" and t.stop == "error" for t in broken)
    assert any(t.error is None for t in rows)


def test_a_turn_that_ends_the_episode_is_the_completion() -> None:
    rows, s = rolled(Echo(), [Request(problem(), 32)])
    for t in rows:
        last = [seg for seg in t.segments if seg.kind == "policy"][-1]
        text = s.role.policy.format.decode(t.tokens[last.start : last.stop])
        assert t.completion == text
        assert t.terminated == (t.stop in ("end", "env"))


def test_a_hint_counts_as_written_and_a_memory_goes_before_the_prompt() -> None:
    request = Request(problem(), 4, memory=(Message("system", "note;"),), hint="12")
    rows, s = rolled(Digits(), [request])
    format = s.role.policy.format
    for t in rows:
        assert format.decode(t.tokens).startswith("note;abc12")
        assert [seg.kind for seg in t.segments[:2]] == ["prompt", "hint"]
        assert t.completion.startswith("12")
        assert not t.mask[: len("note;abc12") + 1].any()
        assert t.problem.key == "00" * 8


class Pause:
    """Pauses every branch after four tokens."""

    stride = 4

    def between(self, tree: Tree, s: Step) -> None:
        for branch in tree.live:
            tree.stop(branch, "paused")


def test_a_paused_episode_goes_on_to_the_same_tokens() -> None:
    whole, _ = rolled(Digits(), [Request(problem(), 6)])
    rows, s = rolled(Digits(), [Request(problem(), 6)], Sample(control=Pause()))
    assert rows == []
    waiting, role = tuple(s.pending), s.role
    assert any(t.stop == "paused" for t in waiting)
    again = Sample()([Request(problem(), 6, resume=waiting)], Step(1, role, [role.policy_actor()]))
    done = {t.uid: t for t in again[0].trajectories}
    assert len(done) == len(whole)
    for t in whole:
        assert (done[t.uid].tokens == t.tokens).all()
        np.testing.assert_allclose(done[t.uid].logprob, t.logprob, atol=1e-5)


class PauseSecond:
    """Pauses the second root after one token, and forks it before that."""

    stride = 1

    def between(self, tree: Tree, s: Step) -> None:
        if len(tree.branches) == 6:
            fork = tree.fork(tree.branches[1])
            tree.stop(tree.branches[1], "paused")
            tree.stop(fork, "enough")


def test_a_group_waits_whole_while_one_of_its_members_is_paused() -> None:
    role = role_of(random_policy(spread=1.0))
    s = Step(0, role, [role.policy_actor()])
    requests = [Request(problem(), 3), Request(problem("xyz"), 3)]
    (other,) = Sample(control=PauseSecond())(requests, s)
    assert other.problem is requests[1].problem
    assert len(other.trajectories) == 3
    (first, paused) = s.pending[0], s.pending[-1]
    assert [t.stop == "paused" for t in s.pending] == [False] * 3 + [True]  # what is over comes first
    assert sum(t.parent == paused.uid for t in s.pending) == 1
    (group,) = Sample()([Request(problem(), 4, resume=tuple(s.pending))], Step(1, role, [role.policy_actor()]))
    assert [t.uid for t in group.trajectories] == [t.uid for t in s.pending]
    assert group.trajectories[0] is first


def test_a_paused_fork_goes_on_as_itself() -> None:
    """Its parent goes on beside it; what is noted of one is not noted of the other."""
    rows, s = rolled(Digits(), [Request(problem(), 2)], Sample(control=Branching()))
    resumed = [replace(t, stop="paused", info={"mine": t.uid}) for t in rows]
    assert any(t.parent for t in resumed)
    again = Step(1, s.role, [s.role.policy_actor()])
    (group,) = Sample(max_tokens=12)([Request(problem(), len(resumed), resume=tuple(resumed))], again)
    assert all(t.info["mine"] == t.uid for t in group.trajectories)


def test_a_resumed_episode_says_which_version_sampled_what() -> None:
    _, s = rolled(Digits(), [Request(problem(), 6)], Sample(control=Pause()))
    role, paused = s.role, tuple(t for t in s.pending if t.stop == "paused")
    for _ in range(3):
        role.policy.bump()
    (group,) = Sample()([Request(problem(), len(paused), resume=paused)], Step(1, role, [role.policy_actor()]))
    for t, before in zip(group.trajectories, paused, strict=True):
        assert t.info["versions"] == [(before.version, len(before.tokens)), (before.version + 3, len(t.tokens))]
    assert "versions" not in before.info


class Note:
    """Writes on every branch how long it was after two tokens, and ends every second one."""

    stride = 2

    def between(self, tree: Tree, s: Step) -> None:
        for branch in tree.live:
            branch.info.setdefault("seen", len(branch.tokens))
            if branch.index % 2:
                tree.stop(branch, "enough")


def test_what_a_controller_notes_is_on_the_trajectory() -> None:
    rows, _ = rolled(Digits(), [Request(problem(), 6)], Sample(control=Note()))
    assert all(t.info["seen"] == int(t.segments[0].stop) + 2 for t in rows if t.sampled > 2)
    assert any("seen" in t.info for t in rows)


def test_what_is_over_among_the_resumed_is_left_as_it_is() -> None:
    rows, s = rolled(Digits(), [Request(problem(), 6)], Sample(control=Note()))
    over, paused = tuple(rows), replace(rows[0], stop="paused")
    role = s.role
    (group,) = Sample()([Request(problem(), 6, resume=over)], Step(1, role, [role.policy_actor()]))
    assert list(group.trajectories) == list(over)
    resume = (*over[:5], paused)
    (group,) = Sample()([Request(problem(), 7, resume=resume)], Step(1, role, [role.policy_actor()]))
    assert [t.uid for t in group.trajectories[:5]] == [t.uid for t in over[:5]]
    assert len(group.trajectories) == 7
    assert group.trajectories[5].uid == paused.uid


class Watch:
    """Notes what it is shown; beside a roll-out's own controller."""

    stride = 3

    def __init__(self) -> None:
        self.owner: list[int] = []
        self.looks = 0

    def begin(self, tree: Tree, requests: Sequence[Request], owner: Sequence[int], s: Step) -> None:
        assert all(not b.mask.any() for b in tree.branches)
        self.owner = list(owner)

    def between(self, tree: Tree, s: Step) -> None:
        self.looks += 1


def test_controllers_act_side_by_side_and_know_whose_branches_they_see() -> None:
    own, added = Watch(), Watch()
    role = role_of(random_policy())
    s = Step(0, role, [role.policy_actor()], controls=[added])
    Sample(control=own)([Request(problem(), 3), Request(problem(), 2)], s)
    assert own.owner == added.owner == [0, 0, 0, 1, 1]  # by `branch.root`
    assert own.looks == added.looks > 0


class Prune:
    """Prunes every second branch after two tokens."""

    stride = 2

    def between(self, tree: Tree, s: Step) -> None:
        for branch in tree.live[::2]:
            tree.stop(branch, "pruned")


def test_pruned_branches_leave_no_trajectory() -> None:
    rows, _ = rolled(Digits(), [Request(problem(), 8)], Sample(control=Prune()))
    assert 0 < len(rows) < 8


class Branching:
    """Forks every root once, after three tokens."""

    stride = 3

    def between(self, tree: Tree, s: Step) -> None:
        for branch in [b for b in tree.live if b.parent is None and all(o.parent != b.uid for o in tree.branches)]:
            tree.fork(branch, uid=branch.uid ^ 1)


def test_forks_belong_to_the_group_of_their_root_and_replay_the_environment() -> None:
    task = Echo()
    rows, _ = rolled(task, [Request(problem(), 16), Request(problem("xyz"), 16)], Sample(control=Branching()), seed=3)
    forks = [t for t in rows if t.parent is not None]
    assert forks
    by_uid = {t.uid: t for t in rows}
    for t in forks:
        parent = by_uid[t.parent or 0]
        assert t.problem.prompt == parent.problem.prompt
        assert (t.tokens[: t.fork_at] == parent.tokens[: t.fork_at]).all()


def test_several_actors_are_dealt_in_turn() -> None:
    from evolvent.engine.base import Actor, Noise

    role = role_of(random_policy())
    actors = [Actor(f"m{i}", 0, Noise(i, 1, 0.1, 1)) for i in range(4)]
    groups = Sample()([Request(problem(), 6), Request(problem("xyz"), 6)], Step(0, role, actors))
    assert [t.actor for g in groups for t in g.trajectories] == [f"m{i % 4}" for i in range(12)]


@pytest.mark.parametrize("split", ["train", "gate", "test"])
def test_the_toy_task_keeps_its_splits(split: Split) -> None:
    rng = np.random.default_rng(0)
    keys = {Digits().draw(split, rng).key for _ in range(50)}
    others = {Digits().draw(o, rng).key for o in ("train", "gate", "test") if o != split for _ in range(50)}
    assert not keys & others


def test_scores_and_demos_are_typed() -> None:
    demo: Demo = Digits().gold(problem())
    assert Digits().score(problem(), demo[0].text) == Score(1.0, "12345678", {"share": 1.0})


def test_too_large_a_roll_out_says_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*args: Any, **options: Any) -> Tree:
        raise MemoryError

    monkeypatch.setattr("evolvent.engine.local.LocalEngine.start", start)
    with pytest.raises(UserError, match="out of memory in `rollout`: lower propose.problems"):
        rolled(Digits(), [Request(Problem("k", one_user("1:"), {}), 1)])
