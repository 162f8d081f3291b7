"""The world `structures`: a book with one reasoning structure for each of several tasks of reasoning-gym.

    program:structures            12 tasks, 20 problems of each in a split
    program:structures:problems=40

A book is a Python text that assigns STRUCTURES a dict: task -> JSON-like dict of keyed steps. It is read, not run. An
instance is a task, its value the share of the problems that are answered rightly when the task's structure is filled
in for them; reasoning-gym's answers and our strict verifiers decide. Without a model a scripted solver fills them in,
and carries out each step on the text (`operations.py`); what is found holds for it. Splits share no problem.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar

from evolvent.core.errors import UserError, VerifierError
from evolvent.guard.sandbox import Call
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM, ProgramTask, World
from evolvent.tasks.settings import read_settings
from evolvent.tasks.worlds.structures.operations import ALONE, fill

TASKS = (
    "word_sorting", "number_filtering", "letter_counting", "spell_backward", "word_sequence_reversal", "chain_sum",
    "basic_arithmetic", "gcd", "lcm", "products", "count_bits", "count_primes",
)  # fmt: skip
FIRST = {"train": 0, "gate": 10_000, "test": 20_000, "examples": 1_000_000}  # seeds of reasoning-gym's items
GOAL = "Write for each task a structure of keyed steps that leads to the answer when it is filled in for a problem."

Structure = Mapping[str, str]
Solve = Callable[[Structure, Sequence[str]], list[str | None]]  # a structure, questions -> answers


@dataclass(frozen=True)
class Settings:
    """How many problems of each task a split has."""

    problems: int = 20

    def __post_init__(self) -> None:
        if not 1 <= self.problems <= 1000:
            raise UserError(f"structures: problems goes from 1 to 1000, got {self.problems}")


@cache
def _source(task: str) -> Any:
    from evolvent.tasks.reasoning_gym.source import Source

    return Source.of_level(task, "default")


@lru_cache(maxsize=8192)
def problem(task: str, split: str, number: int) -> Mapping[str, Any]:
    """reasoning-gym's item with this number of a split, or of the unlabelled `examples`."""
    found: Mapping[str, Any] = _source(task).item(FIRST[split] + number)
    return found


def text_of(structures: Mapping[str, Structure]) -> str:
    """The book with these structures."""
    lines = ["STRUCTURES = {\n"]
    for task, structure in structures.items():
        lines += [f"    {task!r}: {{\n", *(f"        {k!r}: {v!r},\n" for k, v in structure.items()), "    },\n"]
    return "".join(lines) + "}\n"


def structures_of(text: str) -> dict[str, dict[str, str]]:
    """The structures of a book. ValueError for what is in another form, SyntaxError for what is no Python."""
    match ast.parse(text).body:
        case [ast.Assign([ast.Name("STRUCTURES")], value)]:
            found = ast.literal_eval(value)
        case _:
            raise ValueError("there must be STRUCTURES = {...}, and nothing else")
    plain = isinstance(found, dict) and all(
        isinstance(v, dict) and all(isinstance(x, str) for pair in v.items() for x in pair) for v in found.values()
    )
    if not plain:
        raise ValueError("STRUCTURES must have for each task a dict of texts")
    return dict(found)


def scripted(structure: Structure, questions: Sequence[str]) -> list[str | None]:
    """The answers of the scripted solver."""
    return [fill(structure, question).answer for question in questions]


class Structures(ProgramTask):
    """The world as a task. `solve` fills structures in: by default the scripted solver."""

    scripted_agent: ClassVar = True  # evidence says so: rules act where a model would

    sandbox: Any = None  # nothing runs
    solve: Solve = staticmethod(scripted)

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        super().__init__(
            World(
                name=name,
                goal=GOAL,
                seed=text_of({task: {f"step {i}": step for i, step in enumerate(ALONE, 1)} for task in TASKS}),
                call=lambda text, names: Call({PROGRAM: text}, "program", "STRUCTURES"),
                judge=lambda value, names: invalid("nothing is run here"),
                instances={
                    "train": TASKS,
                    "gate": tuple(f"gate/{task}" for task in TASKS),
                    "test": tuple(f"test/{task}" for task in TASKS),
                },
            )
        )

    def evaluate(self, programs: Sequence[str], names: Sequence[Sequence[str]] | None = None) -> list[Evaluation]:
        """Verdicts, in the order of the books."""
        asked = [self.instances("train")] * len(programs) if names is None else names
        return [self._worth(text, tuple(own)) for text, own in zip(programs, asked, strict=True)]

    def _worth(self, text: str, names: tuple[str, ...]) -> Evaluation:
        from evolvent.tasks.reasoning_gym.verify import is_right

        try:
            book = structures_of(text)
        except (SyntaxError, RecursionError, MemoryError) as reason:
            return invalid(f"{type(reason).__name__}: {reason}", "unreadable")
        except ValueError as reason:
            return invalid(str(reason))
        values = {}
        for name in names:
            split, _, task = name.rpartition("/")
            items = [problem(task, split or "train", i) for i in range(self.settings.problems)]
            try:
                given = self.solve(book.get(task, {}), [item["question"] for item in items])
            except VerifierError as reason:
                return invalid(str(reason), "lost")
            right = [a is not None and is_right(task, dict(item), a) for a, item in zip(given, items, strict=True)]
            values[name] = sum(right) / len(right)
        return over_instances(values)


def world(settings: str = "") -> Structures:
    """The task with these settings. `UserError` for those that there are not."""
    return Structures(
        read_settings(Settings, settings, "structures"), "program:structures" + (f":{settings}" if settings else "")
    )
