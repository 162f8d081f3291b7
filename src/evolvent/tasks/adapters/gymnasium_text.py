"""A Gymnasium environment whose observations and actions are text, or can be turned into it.

    gym:my_package.mazes:Maze        a class, called without arguments      gym:my_file.py:Maze     in a file
    gym:FrozenLake-v1                a registered id                        gym:my_package:Maze-v0  registered there

Every problem is a seed, and the split of the seed is that of its key: `reset(seed=...)` never sees a training seed in
a test. The first observation ends the prompt, later ones answer the policy's turns.

The environment, or the module that defines it, may hold (looked up by name, nothing needs to be inherited):

    obs_to_text(obs), text_to_action(text)   needed unless observations are text or one number, and actions are text or
                                             the numbers of a Discrete space; ValueError means: this is no action
    instructions                             text before the first observation
    return_range = (low, high)               what a sum of rewards can reach; (0, 1) if not named
    gold()                                   after a reset: the turns that solve it
    max_turns, max_tokens, turn_end          as in every task of several turns

Outcome: an episode that the environment ended (terminated or truncated) is worth its sum of rewards, put on the scale
from `low` (0) to `high` (1). If the last info says `success` or `is_success`, that alone decides. An episode that ended
otherwise, by a text that is no action or by our own limits, is worth 0. The sum of rewards is also there as shaping,
under the name `return`. A sum outside the range is an error, not a reward.

The environment runs in this process. One that hangs hangs the run.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Problem
from evolvent.tasks.adapters.foreign import attribute, brief, guarded, import_module
from evolvent.tasks.base import Attempt, Demo, Piece, Reply, Score, Split, key_of, one_user, split_of

SEEDS = 2**31
MAX_TURNS = 64
TURN_TOKENS = 16  # in an episode, for each turn, where the environment does not name `max_tokens`
MOST_IDLE = 64  # environments kept for reuse


def load(rest: str) -> GymTask:
    """The task of `gym:rest`."""
    name = f"gym:{rest}"
    where, _, member = rest.rpartition(":")
    if member and where and not _registered(member):
        module = import_module(where, name)
        return GymTask(name, attribute(module, member, name))
    if not member:
        raise UserError(f"`{name}` names no environment; use gym:module:Class or a registered id, as in gym:Taxi-v4")
    gymnasium = import_module("gymnasium", name)
    if where:
        import_module(where, name)
    try:
        gymnasium.spec(member)
    except Exception as reason:
        raise UserError(f"{name}: gymnasium has no such environment ({brief(reason)})") from None
    return GymTask(name, lambda: gymnasium.make(member, disable_env_checker=True))


def _registered(name: str) -> bool:
    """Whether a name looks like a registered id (`Maze-v0`) rather than a class."""
    return "-" in name or "/" in name


@dataclass
class Record:
    """What happened in an episode so far. Plain data: it goes into the trajectory's info under `gym`."""

    total: float = 0.0
    turns: int = 0
    terminated: bool = False
    truncated: bool = False
    invalid: bool = False
    success: bool | None = None


class GymTask:
    """The task of an environment; `make` gives a new one."""

    categories = ("all",)

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        """Makes an environment, resets it and plays an episode of random actions; `UserError` for what fails."""
        self.name, self.make = name, make
        self.idle: list[Any] = []
        try:
            first = make()
        except Exception as reason:
            raise UserError(f"{name} cannot be made ({brief(reason)})") from reason
        if hasattr(first, "num_envs"):
            raise UserError(f"{name} is a vector of environments; name the single one")
        bare = getattr(first, "unwrapped", first)
        self.hooks = [first, bare, sys.modules.get(type(bare).__module__)]
        self.instructions = str(self.hook("instructions") or "")
        self.low, self.high = self._range()
        limit = getattr(getattr(first, "spec", None), "max_episode_steps", None)
        self.max_turns = int(self.hook("max_turns") or limit or MAX_TURNS)
        self.max_tokens = int(self.hook("max_tokens") or self.max_turns * TURN_TOKENS)
        self.turn_end = self.hook("turn_end")
        self.idle.append(first)
        try:
            self._try_out(first)
        except VerifierError as reason:
            raise UserError(str(reason)) from None

    def hook(self, name: str) -> Any:
        """A member of the environment, or else of the module that defines it, or None."""
        return next((getattr(place, name) for place in self.hooks if hasattr(place, name)), None)

    def _range(self) -> tuple[float, float]:
        found = self.hook("return_range") or (0.0, 1.0)
        low, high = map(float, found)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise UserError(f"{self.name}: return_range is {found}; it should be (lowest, highest) sum of rewards")
        return low, high

    def _try_out(self, made: Any) -> None:
        observation, _ = self.reset(made, 0)
        if self.reset(made, 0)[0] != observation:
            raise VerifierError(self.drifts(0))
        if not self.instructions + observation:
            raise UserError(f"{self.name}: the first observation is empty, and there are no `instructions`")
        space: Any = getattr(made, "action_space", None)
        if not hasattr(space, "n") or self.hook("text_to_action"):
            return
        rng, record = np.random.default_rng(0), Record()
        start = int(getattr(space, "start", 0))
        while not (record.terminated or record.truncated) and record.turns < self.max_turns:
            self.step(made, str(start + int(rng.integers(space.n))), record)
        self.outcome(record)

    def reset(self, made: Any, seed: int) -> tuple[str, Mapping[str, Any]]:
        """The first observation as text, and info."""
        with guarded(f"{self.name}: reset(seed={seed}) failed"):
            observation, info = made.reset(seed=seed)
            return self.text(observation), info

    def drifts(self, seed: int) -> str:
        """What to say of an environment that does not begin as it did before."""
        return (
            f"{self.name}: reset(seed={seed}) gave another observation than before; all that is random in the "
            "environment must come from that seed"
        )

    def text(self, observation: Any) -> str:
        """An observation as text."""
        if convert := self.hook("obs_to_text"):
            observation = convert(observation)
        if isinstance(observation, int | np.integer):
            return str(int(observation))
        if not isinstance(observation, str):
            raise VerifierError(
                f"{self.name}: an observation is a {type(observation).__name__}, not text; "
                "give the environment or its module a function obs_to_text(obs)"
            )
        return observation

    def action(self, made: Any, text: str) -> Any:
        """The action of a turn. `ValueError` if the text is none."""
        text = text.strip().removesuffix(self.turn_end or "\0").strip()
        if convert := self.hook("text_to_action"):
            return convert(text)
        space: Any = getattr(made, "action_space", None)
        if not hasattr(space, "n"):
            return text
        start = int(getattr(space, "start", 0))
        number = int(text) if text.isdecimal() else -1
        if not start <= number < start + int(space.n):
            raise ValueError(f"not an action from {start} to {start + int(space.n) - 1}")
        return number

    def step(self, made: Any, turn: str, record: Record) -> str:
        """Carry a turn out; the text that answers it. `record` is brought up to date."""
        record.turns += 1
        try:
            action = self.action(made, turn)
        except ValueError:
            record.invalid = True
            return ""
        except Exception as reason:
            raise VerifierError(f"{self.name}: text_to_action failed: {brief(reason)}") from reason
        with guarded(f"{self.name}: step failed in turn {record.turns}"):
            observation, reward, terminated, truncated, info = made.step(action)
            record.total += float(reward)
            record.terminated, record.truncated = bool(terminated), bool(truncated)
            for name in ("success", "is_success"):
                if isinstance(info, Mapping) and name in info:
                    record.success = bool(info[name])
            return self.text(observation)

    def outcome(self, record: Record) -> float:
        """The outcome of an episode from 0 to 1; see the top of this file. `VerifierError` out of range."""
        if not (record.terminated or record.truncated):
            return 0.0
        if record.success is not None:
            return float(record.success)
        share = (record.total - self.low) / (self.high - self.low)
        if not -1e-6 <= share <= 1 + 1e-6:
            raise VerifierError(
                f"{self.name}: an episode brought {record.total:g} in all, outside {self.low:g} to {self.high:g}; "
                "name the range on the environment, as in return_range = (-100, 10)"
            )
        return min(max(share, 0.0), 1.0)

    def borrow(self) -> Any:
        """An environment, a used one if there is one."""
        with guarded(f"{self.name} cannot be made"):
            return self.idle.pop() if self.idle else self.make()

    def give_back(self, made: Any) -> None:
        """Keep an environment for the next episode."""
        if len(self.idle) < MOST_IDLE:
            self.idle.append(made)
        elif hasattr(made, "close"):
            made.close()

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A random seed of the split, and the observation that it starts with."""
        while split_of(key := key_of(self.name, seed := int(rng.integers(SEEDS)))) != split:
            pass
        made = self.borrow()
        observation, _ = self.reset(made, seed)
        self.give_back(made)
        data = {"seed": seed, "observation": observation}
        return Problem(key, one_user(self.instructions + observation), data, "all", self.name)

    def episode(self, problem: Problem) -> GymEpisode:
        """The environment's side of an episode."""
        return GymEpisode(self, problem)

    def score(self, problem: Problem, completion: str) -> Score:
        """0: without an episode nothing has happened. See `score_many`."""
        return Score(0.0)

    def score_many(self, attempts: Sequence[Attempt]) -> list[Score | VerifierError]:
        """The outcome of each episode, from what its environment noted."""
        scores: list[Score | VerifierError] = []
        for attempt in attempts:
            record = Record(**attempt.info.get("gym", {}))
            try:
                scores.append(Score(self.outcome(record), None, {"return": record.total}))
            except VerifierError as reason:
                scores.append(reason)
        return scores

    def gold(self, problem: Problem) -> Demo | None:
        """The turns of the environment's `gold()` with the observations between them; None if it has none."""
        episode = self.episode(problem)
        find = getattr(episode.made, "gold", None) or getattr(getattr(episode.made, "unwrapped", None), "gold", None)
        if find is None:
            return None
        with guarded(f"{self.name}: gold() failed"):
            turns = find()
        demo: Demo = []
        for turn in turns:
            demo.append(Piece(str(turn)))
            reply = episode.respond(str(turn))
            if reply.done:
                break
            demo.append(Piece(reply.text, policy=False))
        return demo


class GymEpisode:
    """One episode in a borrowed environment, which goes back when the episode is dropped."""

    def __init__(self, task: GymTask, problem: Problem) -> None:
        self.task, self.made, self.record = task, task.borrow(), Record()
        weakref.finalize(self, task.give_back, self.made)
        observation, _ = task.reset(self.made, problem.data["seed"])
        if observation != problem.data["observation"]:
            raise VerifierError(task.drifts(problem.data["seed"]))

    def respond(self, turn: str) -> Reply:
        """Step the environment."""
        record = self.record
        text = self.task.step(self.made, turn, record)
        done = record.terminated or record.truncated or record.invalid
        cut = record.truncated and not record.terminated
        return Reply("" if done else text, done, int(not record.invalid), {"gym": asdict(record)}, cut)
