"""Tasks whose answer is a program: evaluated in the sandbox, as often as a search asks.

    program:circle-packing:26           a world that ships with the package
    program:EVALUATOR.py:PROGRAM.py     the user's own: `evaluate(program_path)`, as OpenEvolve's, and a seed program

What runs is never trusted. In a world of the package the candidate gives back data, and the verifier works here, on
what came back; a user's own evaluator runs beside the candidate, both of them in the sandbox.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evolvent.core import places
from evolvent.core.errors import UserError, unknown
from evolvent.core.records import Problem
from evolvent.guard.sandbox import Call, Limits, Outcome, Sandbox
from evolvent.tasks import returned
from evolvent.tasks.base import Demo, Split, key_of, one_user
from evolvent.tasks.beside import beside, left_behind, source
from evolvent.tasks.evaluation import Evaluation, invalid, read_result, sound
from evolvent.tasks.misplaced import refuse_async
from evolvent.tasks.worlds import WORLDS

PROGRAM = "program.py"
ENTRY = "evolvent_entry"  # in the sandbox the name of the module `returned`, which calls the evaluator
EVALUATOR = "evaluator_file"  # the module of an evaluator whose own name can be none, as that of eval.v2.py
UNSAFE = "EVOLVENT_UNSAFE_NO_SANDBOX"  # what --unsafe-no-sandbox sets
FILES = re.compile(r"(.+\.py):(.+\.py)")
STAGES = ("stage1", "stage2", "stage3")  # of an evaluator: OpenEvolve's evaluate_stage1 and so on
BEYOND = (ArithmeticError, ValueError, RecursionError)  # what a verifier raises of data that it cannot reckon with
SHARED = re.compile(r"\[Errno 13\] Permission denied(?!: )|Permission denied: '/(?:psm_|dev/shm)")  # of no file's name
NO_SHARED = (
    "multiprocessing's semaphores, queues and pools, and shared memory, need bubblewrap (apt install bubblewrap): "
    "behind sandlock there is no /dev/shm"
)
EXAMPLE = "evolvent run random-search --task program:evaluator.py:program.py"


@dataclass(frozen=True)
class World:
    """What programs are written for.

    name      as on the command line
    goal      what a program is to do, for whoever writes one
    seed      the program that a search begins with
    call      how a program is run: its text, and names of instances or stages -> the call
    judge     what came back, if the run was in order, and the same names -> the verdict
    check     a second call, made of what the first one gave and the names; the judge gets what both gave, as a pair
    improve   how a program changes a program, where they can: (its text, the text of the one that changes it, entry,
              names of instances, seed) -> a call that gives {"source", "note"}
    logs      what a program makes of instances, for a diagnosis: its text, names -> a call that gives a list of dicts
    instances what a value is the mean over, by split; none: the world is one whole, and names are always empty
    stages    groups of names, the cheapest first, for recipes that stop early with what is bad
    proxies   cheap instances that are no part of the value, for recipes that look at these first; the usual one first
    components  statements and expressions that operators may build from
    preload   modules that the sandbox has ready
    known     best known values: (value, who, when)
    remedy    a verdict -> what to do about its feedback, if there is something to say
    """

    name: str
    goal: str
    seed: str
    call: Callable[[str, Sequence[str]], Call]
    judge: Callable[[Any, Sequence[str]], Evaluation]
    instances: Mapping[Split, tuple[str, ...]] = field(default_factory=dict)
    stages: tuple[tuple[str, ...], ...] = ()
    proxies: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    components: tuple[str, ...] = ()
    preload: tuple[str, ...] = ("numpy",)
    folders: tuple[Path, ...] = ()
    known: tuple[tuple[float, str, str], ...] = ()
    check: Callable[[Any, Sequence[str]], Call] | None = None
    improve: Callable[[str, str, str, Sequence[str], int], Call] | None = None
    logs: Callable[[str, Sequence[str]], Call] | None = None
    remedy: Callable[[Evaluation], str] | None = None


class ProgramTask:
    """One world as a task. Its only problem is the world; its splits are empty of anything to learn by heart."""

    open_ended = True

    def __init__(self, world: World, workers: int = 1) -> None:
        self.world, self.workers = world, workers
        self.name, self.categories = world.name, (world.name,)
        self.seed_program, self.components = world.seed, world.components
        self.max_tokens = 16_384
        self.cpu_seconds = 0.0  # that evaluations have taken so far in the sandbox
        self.notes: tuple[str, ...] = ()  # what a user should know before a search begins

    @cached_property
    def sandbox(self) -> Sandbox:
        """Where programs run. `UserError` where there is none that works, unless the user trusts what runs."""
        return Sandbox(self.workers, self.world.preload, self.world.folders, unsafe=os.environ.get(UNSAFE) == "1")

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """The world, as a problem."""
        key = key_of("program", [self.world.name, self.world.seed])
        return Problem(key, one_user(self.world.goal), {}, self.name, self.name)

    def gold(self, problem: Problem) -> Demo | None:
        """No program is known to be right."""
        return None

    def instances(self, split: Split) -> tuple[str, ...]:
        """Names of the instances of a split; none where the world is one whole."""
        return tuple(self.world.instances.get(split, ()))

    def evaluate(self, programs: Sequence[str], names: Sequence[Sequence[str]] | None = None) -> list[Evaluation]:
        """Verdicts, in the order of the programs. What cannot be read as Python is not run.

        `names` has for each program the instances or the stage that it is evaluated on; without, all of `train`.
        """
        asked = [tuple(self.instances("train")) for _ in programs] if names is None else [tuple(n) for n in names]
        verdicts: list[Evaluation | None] = [unreadable(program) for program in programs]
        todo = [i for i, verdict in enumerate(verdicts) if verdict is None]
        calls = [self.world.call(programs[i], asked[i]) for i in todo]
        outcomes = self.run(calls)
        if self.world.check is not None:
            outcomes = self._checked(self.world.check, outcomes, [asked[i] for i in todo])
        for i, outcome in zip(todo, outcomes, strict=True):
            self.cpu_seconds += outcome.cpu
            verdicts[i] = self._told(self._verdict(outcome, asked[i]))
        return [v for v in verdicts if v is not None]

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """The outcomes of calls, within the world's limits. One that was lost, as with a sandbox that was ended from
        outside, is made once more, in a new one."""
        outcomes = self.sandbox.run(calls, self.world.limits) if calls else []
        lost = [i for i, outcome in enumerate(outcomes) if outcome.status == "lost"]
        again = self.sandbox.run([calls[i] for i in lost], self.world.limits) if lost else []
        for i, outcome in zip(lost, again, strict=True):
            outcomes[i] = outcome
        return outcomes

    def _checked(
        self, check: Callable[[Any, Sequence[str]], Call], outcomes: Sequence[Outcome], names: Sequence[Sequence[str]]
    ) -> list[Outcome]:
        """Outcomes with what the second call gave beside what the first one gave."""
        found = list(outcomes)
        good = [i for i, outcome in enumerate(found) if outcome.status == "ok"]
        second = self.sandbox.run([check(found[i].value, names[i]) for i in good], self.world.limits) if good else []
        for i, outcome in zip(good, second, strict=True):
            found[i] = replace(outcome, value=(found[i].value, outcome.value), cpu=found[i].cpu + outcome.cpu)
        return found

    def _told(self, verdict: Evaluation) -> Evaluation:
        """The verdict with what the world says of its feedback."""
        more = self.world.remedy(verdict) if self.world.remedy else ""
        return replace(verdict, feedback=f"{verdict.feedback}; {more}") if more else verdict

    def _verdict(self, outcome: Outcome, names: Sequence[str]) -> Evaluation:
        if outcome.status != "ok":
            return invalid(outcome.error or outcome.status, outcome.status)
        try:
            with np.errstate(all="ignore"):  # what is not finite is told in words
                return sound(self.world.judge(outcome.value, names))
        except BEYOND as reason:
            return beyond(reason)


def beyond(reason: Exception) -> Evaluation:
    """The verdict on what a program gave back, where the verifier's own reckoning fails of it, as with 1e308."""
    return invalid(f"the verifier could not reckon with what came back ({type(reason).__name__}: {reason})")


def unreadable(program: str) -> Evaluation | None:
    """The verdict on a text that is no Python program."""
    try:
        ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
        return invalid(f"{type(reason).__name__}: {reason}", "unreadable")
    return None


def load(rest: str) -> ProgramTask:
    """`WORLD:SIZE` or `EVALUATOR.py:PROGRAM.py`. `UserError` for what is not there or not of that kind."""
    name, _, size = rest.partition(":")
    if name in WORLDS:
        make = places.at(WORLDS[name][0])
        made = make(size) if size else make()
        return made if isinstance(made, ProgramTask) else ProgramTask(made)
    match = FILES.fullmatch(rest)
    if not match:
        raise unknown("world", name, WORLDS, f"for files of your own write for example {EXAMPLE}")
    evaluator, program = Path(match[1]), Path(match[2])
    for path in (evaluator, program):
        if not path.is_file():
            raise UserError(f"there is no file {path}; a program task needs an evaluator and a seed program: {EXAMPLE}")
    code, seed = source(evaluator), source(program)
    for path, text in ((evaluator, code), (program, seed)):
        refuse_unreadable(path, text)
    refuse_marks(program, seed)
    functions = names_of(code)
    refuse_async(evaluator)
    if "evaluate" not in functions:
        raise UserError(f"{evaluator} has no function evaluate(program_path); it should return a dict of numbers")
    module = evaluator.stem if evaluator.stem.isidentifier() and evaluator.name != PROGRAM else EVALUATOR
    notes: list[str] = []
    more = beside(evaluator.parent, [code, seed], program, notes.append)
    files: dict[str, str | bytes] = {name: text for name, text in more.items() if name != evaluator.name}
    files |= {f"{module}.py": code, f"{ENTRY}.py": Path(returned.__file__).read_text(encoding="utf-8")}
    seconds = time_limit(code)

    def remedy(verdict: Evaluation) -> str:
        if verdict.status == "timeout":
            return f"it had {seconds:g} s, and a line TIMEOUT = {2 * seconds:g} in {evaluator.name} gives it more"
        if SHARED.search(verdict.feedback) and getattr(task.sandbox, "kind", "") == "sandlock":
            return NO_SHARED
        return left_behind(evaluator.parent, {*files, PROGRAM}, verdict.feedback)

    python = [text for name, text in files.items() if name.endswith(".py") and isinstance(text, str)]
    task = ProgramTask(
        World(
            f"program:{rest}",
            f"Improve the program. {evaluator.name} evaluates it:\n\n{code}",
            seed,
            lambda text, names: Call(
                {**files, PROGRAM: text}, ENTRY, "call", (module, "_".join(["evaluate", *names]), PROGRAM)
            ),
            lambda value, names: read_result(value),
            remedy=remedy,
            stages=tuple((name,) for name in STAGES if f"evaluate_{name}" in functions),
            limits=Limits(seconds=seconds),
            preload=preloaded("\n".join([seed, *python])),
        )
    )
    task.notes = tuple(dict.fromkeys(notes))
    return task


def refuse_unreadable(path: Path, text: str) -> None:
    """`UserError` with file and line for a text that is no Python program."""
    try:
        ast.parse(text)
    except SyntaxError as reason:
        line, where = (reason.text or "").strip(), f" line {reason.lineno}" if reason.lineno else ""
        raise UserError(f"{path}{where} is not Python: {reason.msg}" + (f" (`{line[:80]}`)" if line else "")) from None
    except (ValueError, RecursionError, MemoryError) as reason:
        raise UserError(f"{path} is not Python: {type(reason).__name__}: {reason}") from None


def refuse_marks(path: Path, text: str) -> None:
    """`UserError` with file and line for a seed program whose EVOLVE-BLOCK marks do not nest."""
    from evolvent.search.variation.blocks import blocks  # here: searches import tasks

    try:
        blocks(text)
    except UserError as reason:
        raise UserError(f"{path} {reason}") from None


def names_of(code: str) -> set[str]:
    """What a module defines or imports at its top level."""
    found = set()
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def time_limit(code: str) -> float:
    """Seconds that an evaluation may take: what the evaluator says by `TIMEOUT = 10`, or a minute. `UserError` if it is
    no positive number."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.Assign) and [t.id for t in node.targets if isinstance(t, ast.Name)] == ["TIMEOUT"]:
            value = node.value.value if isinstance(node.value, ast.Constant) else None
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
                raise UserError(
                    f"the evaluator says {ast.unparse(node)}; it must be a number of seconds, such as TIMEOUT = 10"
                )
            return float(value)
    return 60.0


def preloaded(code: str) -> tuple[str, ...]:
    """Of the larger libraries those that the code imports: worth having ready."""
    return tuple(name for name in ("numpy", "scipy.optimize") if re.search(rf"\b{name.partition('.')[0]}\b", code))
