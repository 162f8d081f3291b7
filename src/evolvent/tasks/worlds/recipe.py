"""Worlds whose programs are recipes of small models: they learn in the sandbox, and what they learned is judged here.

    value = mean over training seeds of what the answers are worth: the share of right ones, or minus bits

A program never sees the right answers to the questions that it is asked. Time and size are limited by the world. What
counts as a parameter is every number that training hands to answering, 32 bits each; so that a program's own text is
no place for more of them, it is short.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from evolvent.guard.sandbox import Call, Limits
from evolvent.tasks.base import Split
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM, World
from evolvent.tasks.worlds.learning import packed
from evolvent.tasks.worlds.plain import refusal

HARNESS = Path(__file__).with_name("learning.py").read_text()
LONGEST = 16_000  # characters of a program
OUTPUT = 16 << 20  # bytes that may come back: 96 numbers for each of a thousand questions, five times, are 9 MB


@dataclass(frozen=True)
class Mark:
    """How answers are marked.

    name      of the metric
    of        what `predict` gave, and what was right -> the metric; None for what are no answers
    wants     what `predict` has to give, with {} for the number of questions
    worth     what one of the metric is worth: -1 where less is better
    """

    name: str
    of: Callable[[Any, Int[np.ndarray, " questions"]], float | None]
    wants: str
    worth: float = 1.0


SEEDS: dict[Split, range] = {"train": range(3), "gate": range(3, 6), "test": range(6, 11)}  # of training


def recipe_world(
    name: str,
    goal: str,
    seed: str,
    components: tuple[str, ...],
    lesson: Sequence[np.ndarray],
    questions: Mapping[Split, np.ndarray],
    answers: Mapping[Split, Int[np.ndarray, " questions"]],
    *,
    seconds: float,
    most: int,
    mark: Mark,
    known: tuple[tuple[float, str, str], ...] = (),
) -> World:
    """The world in which programs learn from `lesson`, arrays of small whole numbers, and answer the `questions`.

    Its instances are training seeds, `train-0` and so on. `seconds` of the processor are what training may take, and
    answering again; `most` parameters are allowed.
    """
    given = [packed(part) for part in lesson]
    asked = {split: packed(part) for split, part in questions.items()}

    def call(text: str, names: Sequence[str]) -> Call:
        files = {PROGRAM: text, "learning.py": HARNESS}
        if reason := refusal(text) or too_long(text):
            return Call(files, "learning", "refused", (reason,), seed=0)
        jobs = [(number, asked[split]) for split, number in map(read_name, names)]
        return Call(files, "learning", "learn", (given, jobs, seconds, most), seed=0)

    def judge(value: Any, names: Sequence[str]) -> Evaluation:
        if not isinstance(value, dict) or value.get("status") != "ok":
            told = value if isinstance(value, dict) else {}
            return invalid(str(told.get("reason", "it gave back no answers")), str(told.get("status", "invalid")))
        found = value.get("found")
        if not isinstance(found, list) or len(found) != len(names):
            return invalid("it gave back no answers")
        marks, sizes = {}, []
        for name, one in zip(names, found, strict=True):
            right = answers[read_name(name)[0]]
            got = mark.of(one.get("answers"), right) if isinstance(one, dict) else None
            if got is None:
                return invalid(f"predict must return {mark.wants.format(len(right))}")
            size = parameters(one.get("weights"))
            if size is None or size > most:
                return invalid(f"the weights must be at most {most} finite numbers")
            marks[name] = got
            sizes.append(size)
        mean = sum(marks.values()) / len(marks)
        values = {name: mark.worth * got for name, got in marks.items()}
        return over_instances(values, {mark.name: mean, "parameters": sum(sizes) / len(sizes)})

    return World(
        name=f"program:{name}",
        goal=f"{goal} A program has at most {LONGEST:,} characters.",
        seed=seed,
        call=call,
        judge=judge,
        instances={split: tuple(f"{split}-{number}" for number in numbers) for split, numbers in SEEDS.items()},
        limits=Limits(seconds=20 * seconds * max(map(len, SEEDS.values())), output=OUTPUT),  # on the clock
        components=components,
        known=known,
    )


def too_long(program: str) -> str:
    """Why a program is too long; empty if it is not."""
    size = len(program)
    return f"it has {size:,} characters, at most {LONGEST:,} are allowed" if size > LONGEST else ""


def read_name(name: str) -> tuple[Split, int]:
    """Split and training seed of an instance."""
    split, _, number = name.partition("-")
    return split, int(number)  # type: ignore[return-value]


def right_share(said: Any, right: Int[np.ndarray, " questions"]) -> float | None:
    """The share of right answers; None where there is not one whole number for each question."""
    if not isinstance(said, list) or len(said) != len(right):
        return None
    if not all(isinstance(x, int) and not isinstance(x, bool) and abs(x) < 2**31 for x in said):
        return None
    return float(np.mean(np.array(said) == right))


LABELS = Mark("accuracy", right_share, "{} whole numbers, one for each question")


def parameters(weights: Any) -> int | None:
    """How many numbers were learned; None for what is not base64 of finite float32 numbers."""
    if not isinstance(weights, str):
        return None
    try:
        numbers = np.frombuffer(base64.b64decode(weights, validate=True), np.float32)
    except ValueError:
        return None
    return len(numbers) if math.isfinite(float(np.abs(numbers).sum(dtype=float))) else None
