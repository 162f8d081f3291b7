"""A SIMULATED world: programs are choices in a rugged landscape that is known to us, for tests and studies of scale.

    program:landscape                      24 parts of 4 options each, k = 2
    program:landscape:kind=stones,seed=3   see `terrain.Terrain` for the settings

A program assigns one of a few named implementations to each part. It is ordinary Python, but nothing is run: the judge
reads it as data, in the one form that `read` takes, so that an evaluation costs well below a millisecond and needs no
sandbox. What is found here says nothing about real programs.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int

from evolvent.core.random import stream
from evolvent.guard.sandbox import Call
from evolvent.tasks.evaluation import Evaluation, invalid
from evolvent.tasks.program import PROGRAM, ProgramTask, World
from evolvent.tasks.settings import read_settings
from evolvent.tasks.worlds.terrain import Terrain

NAMES = (
    "parser", "cache", "queue", "router", "buffer", "index", "filter", "loader", "merger", "sampler", "scaler",
    "shuffle", "encoder", "decoder", "packer", "timer", "lookup", "branch", "window", "kernel", "stride",
    "padding", "anchor", "gate", "memory", "planner", "ranker", "search", "solver", "splitter", "tracker",
    "voter", "warmup", "writer", "reader", "hasher",
)  # fmt: skip
OPTIONS = ("fixed", "lazy", "eager", "sparse", "dense", "greedy", "cyclic", "nested", "sorted", "random")
GOAL = """machine() assigns an implementation to each part of a machine. Choose so that the value is as large as
possible; what a part adds may depend on others. Nothing else may stand in the program.
Parts: {parts}
Implementations of each part: {options}"""
HEAD = '"""A machine, part by part."""\n\n\n# EVOLVE-BLOCK-START\ndef machine():\n'
RETURN = "    return locals()"
TAIL = f"{RETURN}\n# EVOLVE-BLOCK-END\n"
NO_ARGUMENTS = ast.dump(ast.parse("lambda: 0", mode="eval").body.args)  # type: ignore[attr-defined]


class Landscape(ProgramTask):
    """The world of a terrain as a task. Whoever writes programs does not see `terrain`; the simulated model does."""

    sandbox: Any = None  # nothing runs
    simulated: ClassVar = True  # evidence says so

    def __init__(self, terrain: Terrain, name: str = "program:landscape") -> None:
        self.terrain = terrain
        self.names = tuple(part_name(i) for i in range(terrain.parts + terrain.traits))
        self.options = OPTIONS[: terrain.options]
        self.lines = list(self.names)  # as they stand in programs, traits among the others
        stream(terrain.seed, "landscape", "lines").shuffle(self.lines)
        super().__init__(
            World(
                name=name,
                goal=GOAL.format(
                    parts=", ".join(self.lines),
                    options=", ".join(self.options),
                ),
                seed=self.text(terrain.first),
                call=lambda text, *names: Call({PROGRAM: text}, "program", "machine"),
                judge=lambda value, *names: self.judge(value),
                components=tuple(f'{part} = "{option}"' for part in self.names for option in self.options),
            )
        )

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Of the parts among the terrain's choices."""
        return {name: i for i, name in enumerate(self.names)}

    def text(self, choices: Int[np.ndarray, " choices"]) -> str:
        """The program that makes these choices."""
        body = (f'    {name} = "{self.options[choices[self.places[name]]]}"\n' for name in self.lines)
        return HEAD + "".join(body) + TAIL

    def choices(self, text: str) -> Int[np.ndarray, " choices"]:
        """Of a program. Raises ValueError with what is wrong."""
        return self.chosen(read(text))

    def chosen(self, made: Mapping[str, Any]) -> Int[np.ndarray, " choices"]:
        """What a program made, as choices. Raises ValueError with what is wrong."""
        if missing := [name for name in self.lines if name not in made]:
            raise ValueError(f"no implementation of {missing[0]}")
        for name, option in made.items():
            if name not in self.places:
                raise ValueError(f"there is no part {name}")
            if option not in self.options:
                raise ValueError(f"{name} has no implementation {option!r:.40}, only {', '.join(self.options)}")
        return np.array([self.options.index(made[name]) for name in self.names])

    def judge(self, made: Any) -> Evaluation:
        """The verdict on what a program made: names of parts and of their implementations."""
        try:
            return self.verdict(self.chosen(made if isinstance(made, Mapping) else {}))
        except ValueError as reason:
            return invalid(str(reason))

    def verdict(self, choices: Int[np.ndarray, " choices"]) -> Evaluation:
        """On choices, which are always valid."""
        terrain, metrics = self.terrain, {}
        value = terrain.value(choices)
        if trials := terrain.trials:
            rng = stream(terrain.seed, "landscape", "trials", *choices.tolist())
            successes = int(rng.binomial(trials, min(value, 1.0)))
            value, metrics = successes / trials, {"successes": float(successes), "failures": float(trials - successes)}
        weakest = terrain.weakest(choices) if terrain.hint else None
        feedback = "" if weakest is None else f"The part that adds least: {self.names[weakest]}"
        return Evaluation(value, metrics, feedback)

    def evaluate(self, programs: Sequence[str], names: Sequence[Sequence[str]] | None = None) -> list[Evaluation]:
        """Verdicts, in the order of the programs. The world is one whole: `names` says nothing."""
        return [self.reading(program) for program in programs]

    def reading(self, program: str) -> Evaluation:
        """The verdict on a text."""
        try:
            return self.judge(read(program))
        except (SyntaxError, RecursionError, MemoryError) as reason:
            return invalid(f"{type(reason).__name__}: {reason}", "unreadable")
        except ValueError as reason:  # read, but in another form
            return invalid(str(reason))

    def true_value(self, program: str) -> float:
        """The value without the noise of trials, for studies. Raises ValueError for a program that is not valid."""
        return self.terrain.value(self.choices(program))


def part_name(number: int) -> str:
    """A name for each part."""
    again, place = divmod(number, len(NAMES))
    return NAMES[place] + (f"_{again + 1}" if again else "")


def read(text: str) -> dict[str, str]:
    """What `machine()` would return, read from the text: names and texts that it assigns to them.

    The one form that is taken: a docstring or none, and one function `machine()` of assignments `name = "text"` that
    ends in `return locals()`. ValueError for anything else, SyntaxError for what is no Python.
    """
    body = [node for node in ast.parse(text).body if not is_text(node)]
    function = body[0] if body else None
    if len(body) != 1 or not isinstance(function, ast.FunctionDef) or function.name != "machine":
        raise ValueError("the program must be one function machine() and nothing else")
    if ast.dump(function.args) != NO_ARGUMENTS or function.decorator_list or getattr(function, "type_params", None):
        raise ValueError("machine() takes no arguments, and no decorators")
    made, last = {}, None
    for node in function.body:
        if last is not None:
            raise ValueError(f"line {node.lineno} comes after the return")
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(option))):
                made[name] = option
            case ast.Return(value=ast.Call(func=ast.Name(id="locals"), args=[], keywords=[])):
                last = node
            case _ if not is_text(node):
                raise ValueError(f'line {node.lineno} must be an assignment such as cache = "lazy"')
    if last is None:
        raise ValueError("machine() must end in return locals()")
    return made


def is_text(node: ast.stmt) -> bool:
    """A text that stands by itself: a docstring, or as good as one."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def world(settings: str = "") -> Landscape:
    """The task of a landscape with these settings. `UserError` for those that there are not."""
    terrain = read_settings(Terrain, settings, "landscape")
    return Landscape(terrain, "program:landscape" + (f":{settings}" if settings else ""))
