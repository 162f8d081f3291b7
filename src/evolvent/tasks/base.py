"""What a task is: problems in three splits that share no key, and a verifier.

A task is any object with the members of `Task`. Problems are found by drawing and hashing: the split of a problem is
a function of its key, so train, gate and test cannot overlap, whatever seeds are used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.random import stream
from evolvent.core.records import Message, Problem

Split = Literal["train", "gate", "test"]
SPLITS: tuple[Split, ...] = ("train", "gate", "test")
SHARES = {"train": 70, "gate": 10, "test": 20}  # per cent of the key space


@dataclass(frozen=True, slots=True)
class Score:
    """A verifier's verdict: `outcome` in [0, 1] is strict success; `shaping` are named part credits, which count
    only where a recipe asks for them; `answer` is what was extracted and judged (None: nothing was found)."""

    outcome: float
    answer: str | None = None
    shaping: dict[str, float] = field(default_factory=dict)


class Piece(NamedTuple):
    """A part of a demonstration. `policy` says who writes it, `weight` how much a supervised loss counts it."""

    text: str
    policy: bool = True
    weight: float = 1.0


Demo = list[Piece]  # a worked solution, turn by turn; tool replies are pieces with policy=False


class Reply(NamedTuple):
    """What an environment answers to a turn: text to append (empty when `done`), or the end of the episode.

    `calls` counts the tool or environment steps that this turn cost; `note` goes into the trajectory's `info` (numbers
    are added up over the turns, anything else replaces what was there). `truncated`: the environment cut the episode
    at a limit of its own, rather than having come to its end.
    """

    text: str
    done: bool = False
    calls: int = 1
    note: dict[str, Any] | None = None
    truncated: bool = False


class Attempt(NamedTuple):
    """What is judged: a problem, the policy's last turn, and the trajectory's `info`, with the environment's notes."""

    problem: Problem
    completion: str
    info: Mapping[str, Any] = MappingProxyType({})


class Tools(NamedTuple):
    """Tools of a task: `schemas` as JSON schemas of functions (the form of OpenAI's API), for models with a tool
    format of their own; `text` tells all others how to call them, and goes below the last message of the prompt."""

    schemas: tuple[dict[str, Any], ...]
    text: str


class Episode(Protocol):
    """The environment's side of one multi-turn episode. Raise `VerifierError` if the environment itself fails.

    A task with a method `tools(problem) -> Tools | None` has episodes that also `call(name, arguments) -> Reply`: one
    call that a model made in its own tool format. Turns without such calls go to `respond`.
    """

    def respond(self, turn: str) -> Reply: ...


@runtime_checkable
class Task(Protocol):
    """Problems and a verifier. Every member is asked for by its name only; nothing needs to be inherited.

    name        as on the command line, with levels: `countdown:3x20`
    categories  the levels or types that `draw` can be asked for, easiest first
    max_tokens  how long a solution may get, all turns together, in characters (the models count their own tokens)

    Optional members: `episode(problem) -> Episode`, `max_turns`, `turn_end` (a task of several turns);
    `score_many(attempts) -> list[Score | VerifierError]`, asked instead of `score` where there is one;
    `listed(split) -> list[Problem]`, all problems of a finite task; `open_ended = True` where one good answer is good
    for every problem, as when something is to be made up.
    """

    name: str
    categories: tuple[str, ...]

    @property
    def max_tokens(self) -> int: ...

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A random problem of the split, of one category if given."""
        ...

    def score(self, problem: Problem, completion: str) -> Score:
        """Judge a completion. Raise `VerifierError` if judging itself fails; a wrong answer is never an error."""
        ...

    def gold(self, problem: Problem) -> Demo | None:
        """A correct solution, written as a model should write it; None where none is known."""
        ...


def key_of(family: str, data: Any) -> str:
    """Key of a problem: hash of the task family and the data that makes the problem what it is."""
    text = json.dumps([family, data], sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def split_of(key: str) -> Split:
    """The split that a key belongs to; a fixed function of the key alone."""
    place = int(key[:8], 16) % 100
    if place < SHARES["train"]:
        return "train"
    return "gate" if place < SHARES["train"] + SHARES["gate"] else "test"


def one_user(text: str) -> tuple[Message, ...]:
    """A prompt of a single user message."""
    return (Message("user", text),)


def score_all(task: Any, attempts: Sequence[Attempt]) -> list[Score | VerifierError]:
    """Scores of attempts by the task's `score_many` if it has one, else one by one; failures stand in their places."""
    return task.score_many(attempts) if hasattr(task, "score_many") else [_score(task, a) for a in attempts]


def _score(task: Task, attempt: Attempt) -> Score | VerifierError:
    try:
        return task.score(attempt.problem, attempt.completion)
    except VerifierError as reason:
        return reason


def distinct(
    task: Task, split: Split, count: int, seed: int = 0, categories: Sequence[str] | None = None
) -> list[Problem]:
    """Up to `count` different problems of a split, in a fixed order, the categories in turn.

    Where problems are drawn, a category whose draws repeat loses its turn, so one with few problems has fewer here.
    Fewer come back when the task runs out: all that it lists, or what it drew before 50 repeats in a row.
    """
    wanted = list(categories or task.categories)
    rng = stream(seed, "problems", task.name, split)
    if hasattr(task, "listed"):
        return _spread(task.listed(split), wanted, count, rng)
    found: dict[str, Problem] = {}
    misses = 0
    while len(found) < count and misses < 50 * len(wanted):
        problem = task.draw(split, rng, wanted[(len(found) + misses) % len(wanted)])
        if problem.key in found:
            misses += 1
        else:
            found[problem.key] = problem
            misses = 0
    return list(found.values())


def _spread(
    problems: Sequence[Problem], categories: Sequence[str], count: int, rng: np.random.Generator
) -> list[Problem]:
    """Up to `count` of a finite task's problems in random order, one of each category after the other."""
    shuffled = [problems[i] for i in rng.permutation(len(problems))]
    rows = zip_longest(*([p for p in shuffled if p.category == c] for c in categories))
    return [p for row in rows for p in row if p is not None][:count]


def check_levels(family: str, levels: Iterable[str], parse: Any, examples: str) -> tuple[str, ...]:
    """Levels as a tuple, each accepted by `parse` (which raises ValueError); the error names what would be right."""
    levels = tuple(levels)
    for level in levels:
        try:
            parse(level)
        except ValueError as reason:
            raise UserError(
                f"task `{family}` has no level `{level}`{f' ({reason})' if str(reason) else ''}; try {examples}"
            ) from None
    return levels
