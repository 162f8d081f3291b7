"""What the seed models are trained on: tasks, levels, shares. Data, in the form of Python.

Levels grow over the run: what is easy comes first and stays in small doses, what is hard comes in later. The hardest
levels are never shown, so that there is something left to learn.
"""

from __future__ import annotations

from evolvent.core.records import Problem
from evolvent.models.pretrain import Entry
from evolvent.tasks.arith import Arith
from evolvent.tasks.base import Demo, Piece, Task
from evolvent.tasks.calc import Calc
from evolvent.tasks.countdown import Countdown
from evolvent.tasks.reasoning_gym import COMPACT, ReasoningGym
from evolvent.tasks.roles import Hint, Judge, Memory, Propose, Revise

Share = tuple[tuple[float, float], ...]


def steady(share: float) -> Share:
    """The same from start to end."""
    return ((0.0, share), (1.0, share))


def first(share: float, rest: float = 0.2) -> Share:
    """From the start; after a third of the run only the `rest` of it."""
    return ((0.0, share), (0.15, share), (0.35, rest * share), (1.0, rest * share))


def later(share: float, begin: float = 0.1) -> Share:
    """Nothing before `begin`, in full after another fifth of the run."""
    return ((0.0, 0.0), (begin, 0.0), (begin + 0.2, share), (1.0, share))


def direct(problem: Problem) -> Demo:
    """Calc without its tool: the number at once, which for most expressions is more than a small model can do."""
    return [Piece(f"={problem.data['answer']}")]


TOOL = 0.35  # share of the calc demonstrations that use the tool


def seed_mixture() -> list[Entry]:
    """The mixture of `tiny` and `small`."""
    entries: list[Entry] = []

    def add(task: Task, share: Share) -> None:
        entries.append(Entry(task.name, task, task.categories[0], share))

    for level, share in {
        "2x20": first(1.5), "3x12": steady(1.0), "3x20": later(0.4, 0.05), "4x12": later(0.7),
    }.items():  # fmt: skip
        add(Countdown((level,)), share)
    for level, share in {
        "1x1": first(0.5, 0.1), "1x2": first(0.5, 0.1), "2x1": steady(0.7), "2x2": later(1.0, 0.05), "3x1": later(0.7),
        "2x2-chain": steady(0.5), "3x2-chain": later(0.5), "2x1-mul-chain": later(0.5),
    }.items():  # fmt: skip
        add(Arith((level,)), share)
    for level, share in {"1x1": first(0.5), "1x2": steady(0.5), "2x2": later(0.5), "2x3": later(1.0)}.items():
        task = Calc((level,))
        entries.append(Entry(task.name, task, level, tuple((x, y * TOOL) for x, y in share)))
        without = tuple((x, y * (1 - TOOL)) for x, y in share)
        entries.append(Entry(f"{task.name}/direct", task, level, without, direct))
    for level, share in {"3x12": steady(1.5), "3x20": later(2.0, 0.05), "4x12": later(1.2)}.items():
        add(Judge((level,)), share)
    for level, share in {"arith:2x1": steady(0.3), "arith:2x2": steady(0.3), "countdown:3x12": steady(1.0),
                         "countdown:3x20": later(1.0, 0.05)}.items():  # fmt: skip
        add(Propose((level,)), share)
    for level, share in {"3x20": steady(0.7), "4x12": later(0.7), "4x20": later(0.7)}.items():
        add(Revise((level,)), share)
        add(Hint((level,)), share)
    for level, share in {
        "recall-2": first(0.7), "recall-3": steady(0.3), "recall-4": steady(0.3), "sum-2": steady(0.3),
        "sum-3": steady(0.3), "sum-4": steady(0.3), "case-2-3x20": steady(0.5), "case-3-4x12": later(0.5),
    }.items():  # fmt: skip
        add(Memory((level,)), share)
    for name in COMPACT:
        for level, share in {"1": first(1.0, 0.5), "2": later(0.7), "3": later(0.4, 0.3)}.items():
            add(ReasoningGym(name, (level,)), share)
    return entries
