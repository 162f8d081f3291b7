"""What the audit tries on a verifier: right answers, and answers that a policy would try because they cost nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.errors import EngineError, VerifierError
from evolvent.core.records import Problem
from evolvent.tasks.base import Attempt, Demo, Score, Task, score_all

GARBAGE = ("zzz", "qwrt plk", "#@!?", "...", "xkcd" * 12)
NOTHING = ("", " ", "\n\n")
LONG = 20_000  # characters of the long answers
COLUMNS = 4  # of a problem without a gold answer: as many of its values are tried
FULL = 1 - 1e-9


@dataclass
class Sheet:
    """Problems and what the verifier said of each answer that was tried on them."""

    task: Any
    problems: list[Problem]
    golds: list[Demo | None]
    tried: list[tuple[int, str, Attempt, str]] = field(default_factory=list)  # problem, kind, attempt, text
    scores: list[Score | VerifierError] = field(default_factory=list)

    def try_all(self, made: Iterator[tuple[int, str, Sequence[str]]]) -> None:
        """Play and judge answers (problem, kind, turns) in one batch."""
        for place, kind, turns in made:
            try:
                attempt = play(self.task, self.problems[place], turns)
            except (VerifierError, EngineError) as reason:
                self.tried.append((place, kind, Attempt(self.problems[place], turns[-1]), turns[-1]))
                self.scores.append(VerifierError(str(reason)))
            else:
                self.tried.append((place, kind, attempt, turns[-1]))
                self.scores.append(_later)
        waiting = [i for i, score in enumerate(self.scores) if score is _later]
        for i, score in zip(waiting, score_all(self.task, [self.tried[i][2] for i in waiting]), strict=True):
            self.scores[i] = score

    def of(self, kind: str) -> list[tuple[int, Attempt, Score]]:
        """Problem, attempt and score of the answers of a kind, without those that failed."""
        found = zip(self.tried, self.scores, strict=True)
        return [(t[0], t[2], s) for t, s in found if t[1] == kind and isinstance(s, Score)]

    def full(self, kind: str) -> list[tuple[int, Attempt, Score]]:
        """Those that earned full marks."""
        return [row for row in self.of(kind) if row[2].outcome >= FULL]


_later = Score(math.nan)


def play(task: Any, problem: Problem, turns: Sequence[str]) -> Attempt:
    """The attempt of a policy that writes these turns; it ends earlier if the environment ends the episode."""
    make = getattr(task, "episode", None)
    episode = make(problem) if make else None
    info: dict[str, Any] = {}
    if episode is None:
        return Attempt(problem, turns[-1], info)
    last = ""
    for turn in turns[: max(1, getattr(task, "max_turns", 1))]:
        reply, last = episode.respond(turn), turn
        for name, value in (reply.note or {}).items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            info[name] = info.get(name, 0) + value if number else value
        if reply.done:
            break
    return Attempt(problem, last, info)


def turns_of(demo: Demo) -> list[str]:
    """The policy's turns of a demonstration: its pieces joined up to each reply."""
    turns: list[str] = []
    open_turn = False
    for piece in demo:
        if not piece.policy:
            open_turn = False
        elif open_turn:
            turns[-1] += piece.text
        else:
            turns.append(piece.text)
            open_turn = True
    return turns


def find_golds(task: Task, sample: Sequence[Problem]) -> tuple[list[Demo | None], str]:
    """The solutions, and what failed where one could not be had."""
    golds, error = [], ""
    for problem in sample:
        try:
            golds.append(task.gold(problem))
        except VerifierError as reason:
            golds.append(None)
            error = error or str(reason)
    return golds, error


def answers(sheet: Sheet, rng: np.random.Generator) -> Iterator[tuple[int, str, Sequence[str]]]:
    """Right answers, and answers that deserve nothing."""
    golds = [turns_of(demo) if demo else None for demo in sheet.golds]
    known = [i for i, gold in enumerate(golds) if gold]
    for i, problem in enumerate(sheet.problems):
        own = golds[i]
        if own:
            yield i, "gold", own
        elif not hasattr(sheet.task, "episode"):  # what the verifier compares with may be among the problem's values
            for value in list(problem.data.values())[:COLUMNS]:
                if isinstance(value, str | int | float):
                    yield i, "column", [str(value)]
        yield i, "garbage", [GARBAGE[i % len(GARBAGE)]]
        yield i, "nothing", [NOTHING[i % len(NOTHING)]]
        prompt = "".join(m.content for m in problem.prompt if m.role == "user")
        yield i, "echo", [prompt]
        if i < 2:
            yield i, "long garbage", ["z" * LONG]
        for j in rng.permutation(known)[:6]:
            other = golds[j]
            if other and other != own:
                yield i, "other", other


def wrong_answers(sheet: Sheet) -> dict[int, list[str]]:
    """For each problem the other problems' answers that are wrong for it."""
    found: dict[int, list[str]] = {}
    for place, attempt, score in sheet.of("other"):
        if score.outcome < FULL:
            found.setdefault(place, []).append(attempt.completion)
    return found


def combined(sheet: Sheet, wrong: dict[int, list[str]]) -> Iterator[tuple[int, str, Sequence[str]]]:
    """The right answer among wrong ones, in ways in which it is not the final answer. Single turns only."""
    full = {place for place, _, _ in sheet.full("gold")}
    for i, demo in enumerate(sheet.golds):
        turns = turns_of(demo) if demo else []
        if i not in full or len(turns) != 1 or not wrong.get(i):
            continue
        own, others = turns[0], wrong[i]
        for separator in (" or ", ", ", "\n"):
            yield i, "followed", [own + separator + others[0]]
        yield i, "followed", [own + others[0]]
        for separator in (" or ", "\n"):
            yield i, "many", [separator.join([*others[:3], own, *reversed(others[:3])])]
        if i < 2:
            yield i, "long gold", [(own + " ") * (LONG // (len(own) + 1) + 1) + others[0]]
