"""Worlds whose programs are recipes of small models: they learn in the sandbox, and what they learned is judged here.

    value = mean over training seeds of the share of right answers

A program never sees the right answers to the questions that it is asked. Time and size are limited by the world. What
counts as a parameter is every number that training hands to answering, 32 bits each.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
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
        if reason := refusal(text):
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
        shares, sizes = {}, []
        for name, one in zip(names, found, strict=True):
            right = answers[read_name(name)[0]]
            share = right_share(one.get("answers"), right) if isinstance(one, dict) else None
            if share is None:
                return invalid(f"predict must return {len(right)} whole numbers, one for each question")
            size = parameters(one.get("weights"))
            if size is None or size > most:
                return invalid(f"the weights must be at most {most} finite numbers")
            shares[name] = share
            sizes.append(size)
        accuracy = sum(shares.values()) / len(shares)
        return over_instances(shares, {"accuracy": accuracy, "parameters": sum(sizes) / len(sizes)})

    return World(
        name=f"program:{name}",
        goal=goal,
        seed=seed,
        call=call,
        judge=judge,
        instances={split: tuple(f"{split}-{number}" for number in numbers) for split, numbers in SEEDS.items()},
        limits=Limits(seconds=20 * seconds * max(map(len, SEEDS.values())), output=4 << 20),  # on the clock
        components=components,
        known=known,
    )


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


def parameters(weights: Any) -> int | None:
    """How many numbers were learned; None for what is not base64 of finite float32 numbers."""
    if not isinstance(weights, str):
        return None
    try:
        numbers = np.frombuffer(base64.b64decode(weights, validate=True), np.float32)
    except ValueError:
        return None
    return len(numbers) if math.isfinite(float(np.abs(numbers).sum(dtype=float))) else None
