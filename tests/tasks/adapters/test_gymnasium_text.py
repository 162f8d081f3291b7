"""Gymnasium environments as tasks of several turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.spaces import Discrete

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.random import stream
from evolvent.tasks.adapters.gymnasium_text import GymTask
from evolvent.tasks.base import SPLITS, Attempt, Score, distinct
from evolvent.tasks.registry import load_task

CORRIDOR = f"gym:{Path(__file__).parents[3] / 'examples' / 'tasks' / 'corridor.py'}:Corridor"


class Walk:
    """Not derived from anything: two rewards on the way, five steps at most, numbers as actions."""

    action_space = Discrete(3)
    return_range = (-1.0, 2.0)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.seed, self.steps = seed, 0
        return f"at {seed} ", {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action == 2 and self.seed is None:
            raise AssertionError
        self.steps += 1
        reward = {0: -0.2, 1: 1.0, 2: 0.0}[action]
        return f"step {self.steps} ", reward, self.steps == 2 and action == 1, self.steps == 5, {}


def play(task: GymTask, turns: list[str]) -> tuple[list[Any], Score | VerifierError]:
    problem = task.draw("train", stream(0))
    episode = task.episode(problem)
    replies = [episode.respond(turn) for turn in turns]
    (score,) = task.score_many([Attempt(problem, turns[-1], replies[-1].note)])
    return replies, score


def test_rewards_add_up_and_are_put_on_the_scale_of_the_range() -> None:
    replies, score = play(GymTask("w", Walk), ["1", "1"])
    assert [(r.text, r.done, r.truncated) for r in replies] == [("step 1 ", False, False), ("", True, False)]
    assert isinstance(score, Score)
    assert score.outcome == pytest.approx(1.0)  # (2 - -1) / 3
    assert score.shaping == {"return": 2.0}
    _, score = play(GymTask("w", Walk), ["0", "1"])
    assert isinstance(score, Score)
    assert score.outcome == pytest.approx((0.8 + 1) / 3)


def test_truncated_is_kept_apart_from_terminated() -> None:
    replies, score = play(GymTask("w", Walk), ["0"] * 5)
    assert (replies[-1].done, replies[-1].truncated) == (True, True)
    assert isinstance(score, Score)
    assert score.outcome == pytest.approx(0.0)  # -1 in all, the lowest of the range


def test_an_episode_that_the_environment_did_not_end_is_worth_nothing() -> None:
    task = GymTask("w", Walk)
    _, unfinished = play(task, ["1"])
    assert isinstance(unfinished, Score)
    assert (unfinished.outcome, unfinished.shaping["return"]) == (0.0, 1.0)
    assert task.score(task.draw("train", stream(0)), "1").outcome == 0


@pytest.mark.parametrize("turn", ["three", "3", "-1", "", "1 2"])
def test_a_text_that_is_no_action_ends_the_episode_without_a_step(turn: str) -> None:
    replies, score = play(GymTask("w", Walk), ["1", turn])
    assert (replies[-1].done, replies[-1].calls, replies[-1].truncated) == (True, 0, False)
    assert isinstance(score, Score)
    assert score.outcome == 0


def test_success_in_the_info_decides() -> None:
    class Told(Walk):
        def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return (*super().step(action)[:4], {"is_success": action == 0})

    _, score = play(GymTask("w", Told), ["1", "1"])
    assert isinstance(score, Score)
    assert score.outcome == 0


def test_a_return_outside_the_range_is_an_error_and_no_reward() -> None:
    class Rich(Walk):
        action_space = Discrete(1)
        return_range = (0.0, 1.0)

        def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return "x", 7.0, True, False, {}

    with pytest.raises(UserError, match="brought 7 in all, outside 0 to 1; name the range"):
        GymTask("w", Rich)
    Rich.return_range = (0.0, 7.0)
    task = GymTask("w", Rich)
    task.high = 5.0
    _, score = play(task, ["0"])
    assert isinstance(score, VerifierError)


def test_seeds_of_different_splits_never_meet() -> None:
    task = GymTask("w", Walk)
    seeds = {split: {p.data["seed"] for p in distinct(task, split, 200)} for split in SPLITS}
    assert all(len(found) == 200 for found in seeds.values())
    assert not (seeds["train"] & seeds["test"])
    assert not (seeds["train"] & seeds["gate"])
    assert not (seeds["gate"] & seeds["test"])
    assert task.draw("test", stream(5)) == task.draw("test", stream(5))


def test_the_first_observation_ends_the_prompt() -> None:
    class Told(Walk):
        instructions = "Walk. "

    problem = GymTask("w", Told).draw("train", stream(0))
    assert problem.prompt[0].content == f"Walk. at {problem.data['seed']} "


def test_an_environment_that_fails_is_an_error() -> None:
    class Broken(Walk):
        action_space = None

        def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # type: ignore[override]
            raise KeyError("door")

    with pytest.raises(VerifierError, match="step failed in turn 1: KeyError: 'door'"):
        play(GymTask("w", Broken), ["1"])


def test_a_reset_that_does_not_follow_its_seed_is_an_error() -> None:
    class Drifting(Walk):
        resets, steady = 0, 0

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            Drifting.resets += 1
            super().reset(seed=seed)
            return f"{max(Drifting.resets, Drifting.steady)}", {}

    with pytest.raises(UserError, match="gave another observation than before"):
        GymTask("w", Drifting)
    Drifting.resets, Drifting.steady = 0, 3
    task = GymTask("w", Drifting)  # two resets; drawing is the third
    with pytest.raises(VerifierError, match="gave another observation than before"):
        task.episode(task.draw("train", stream(0)))


def test_environments_are_used_again_and_not_by_two_episodes_at_once() -> None:
    made: list[Walk] = []

    def make() -> Walk:
        made.append(Walk())
        return made[-1]

    task = GymTask("w", make)
    problem = task.draw("train", stream(0))
    for _ in range(5):
        task.episode(problem).respond("1")
    assert len(made) == 1
    both = [task.episode(problem), task.episode(problem)]
    assert both[0].made is not both[1].made
    assert len(made) == 2


def test_the_example_is_solved_by_its_gold() -> None:
    task = load_task(CORRIDOR)
    assert isinstance(task, GymTask)
    assert (task.max_turns, task.turn_end) == (12, ";")
    problem = task.draw("test", stream(1))
    demo = task.gold(problem)
    assert demo is not None
    episode = task.episode(problem)
    reply = [episode.respond(piece.text) for piece in demo if piece.policy][-1]
    (score,) = task.score_many([Attempt(problem, "", reply.note)])
    assert isinstance(score, Score)
    assert score.outcome == 1
    assert reply.done


def test_a_registered_environment_and_its_time_limit() -> None:
    task = load_task("gym:FrozenLake-v1")
    assert isinstance(task, GymTask)
    assert task.max_turns == gymnasium.spec("FrozenLake-v1").max_episode_steps
    episode = task.episode(task.draw("train", stream(0)))
    assert episode.respond("0").text.isdecimal()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("gym:", "names no environment"),
        ("gym:Nope-v3", "gymnasium has no such environment"),
        ("gym:no_such_module:Env", "needs the module `no_such_module`"),
        ("gym:no_such_file.py:Env", "there is no file no_such_file.py"),
        (CORRIDOR.replace(":Corridor", ":Coridor"), "did you mean Corridor"),
        ("gym:CartPole-v1", r"an observation is a ndarray, not text; give .* obs_to_text"),
        ("gym:Taxi-v4", "outside 0 to 1; name the range"),
    ],
)
def test_what_is_refused(spec: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_task(spec)
