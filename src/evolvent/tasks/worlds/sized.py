"""Worlds of a size n: the seed program's `run(n, seed)` gives the data that is judged, for each n by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Call, Limits
from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.program import PROGRAM, World

Known = Mapping[int, tuple[tuple[float, str, str], ...]]  # n -> (value, who, when), ...


def read_size(name: str, text: str, least: int, most: int, what: str) -> int:
    """The size of a world. `UserError` for what is no number in range."""
    if not text.isdecimal() or not least <= int(text) <= most:
        raise UserError(f"{name}:{text}: the number of {what} goes from {least} to {most}")
    return int(text)


def sized(
    name: str,
    n: int,
    goal: str,
    seed: str,
    judge: Callable[[Any, int], Evaluation],
    components: tuple[str, ...],
    known: Known,
    seconds: float,
) -> World:
    """The world of size n: `goal` says {n} where it does, `judge` decides on what `run(n, 0)` gave."""
    return World(
        name=f"program:{name}:{n}",
        goal=goal.format(n=n),
        seed=seed,
        call=lambda text, names: Call({PROGRAM: text}, "program", "run", (n, 0), seed=0),
        judge=lambda value, names: judge(value, n),
        limits=Limits(seconds=seconds),
        components=components,
        preload=("numpy", "scipy.optimize"),
        known=known.get(n, ()),
    )
