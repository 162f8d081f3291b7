"""A SIMULATED model that writes programs of `program:landscape`, with known habits: no network, no text understood.

It is told everything through its prompt, like any model: the parts and their implementations from the goal, the program
to be changed and those beside it from the code, advice and failures from the sentences around it. Only how an edit is
chosen looks at the hidden landscape, with the chances that `Habits` states; so what a search should gain from a rule is
known beforehand. It says nothing about language models; evidence from it belongs to `world: simulated`.

An answer depends on the branch's uid, the prompt and the habits alone. A token is a character for the engine's streams;
the ledger counts `CHARACTERS` of them as one, which is about what English and code have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.random import stream
from evolvent.core.records import Trajectory
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.requests import Answer, RequestBranch, RequestTree
from evolvent.engine.simulated_prompt import Prompt, broken, line_of, read_prompt, unusable
from evolvent.engine.text import TextFormat

CHARACTERS = 4  # to a token
LESSONS = 3  # that a summary has at most
NOTES = 20  # things that notes keep
TINY = 1e-12  # of a value: what is more is an improvement
SHARES = ("skill", "breakage", "unusable", "lazy", "inspiration", "lesson", "feedback", "diversity")


@dataclass(frozen=True)
class Habits:
    """How the model writes; all but the counts are chances from 0 to 1.

    skill        that the new implementation of a part is one that makes the program better, where there is one; else
                 it is any other one. Traits of the parent add to it (`Terrain.productivity`)
    breakage     that the program does not run: an implementation that is not there, a lost line, a line cut short
    unusable     that the reply is of no use: prose, a diff that is cut off, one that matches nowhere
    lazy         that the answer is the parent
    inspiration  that an edit takes from a program beside the parent a part that makes it better, if there is one. A
                 crossing takes each part in which they differ with the chance 1/2; with this chance only better ones
    lesson       that an edit follows a sentence of advice (`cache = "lazy"`), and leaves out what sentences with
                 `avoid` name
    feedback     that an edit goes to the part that the evaluator named; and that a failure that is stated (an error, a
                 reply that was of no use) is heeded, so that this reply neither breaks nor is unusable
    diversity    that an edit is drawn anew; else it is the model's favourite for this program, the same each time
    edits        parts that a diff changes
    rewrites     parts that a full rewrite changes
    """

    skill: float = 0.3
    breakage: float = 0.05
    unusable: float = 0.05
    lazy: float = 0.02
    inspiration: float = 0.0
    lesson: float = 0.0
    feedback: float = 0.0
    diversity: float = 1.0
    edits: int = 1
    rewrites: int = 3

    def __post_init__(self) -> None:
        """`UserError` for what is no chance or no count."""
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"simulated: {name} is a chance from 0 to 1, got {getattr(self, name):g}")
        if self.unusable + self.lazy + self.breakage > 1:
            raise UserError("simulated: unusable, lazy and breakage are more than 1 together; lower one of them")
        if self.edits < 1 or self.rewrites < 1:
            raise UserError(f"simulated: edits and rewrites are at least 1, got {self.edits} and {self.rewrites}")


class SimulatedWriter:
    """Rolls out the model. `landscape` is the task: its terrain is what is hidden, its names are read from prompts."""

    offers = frozenset({"append"})

    def __init__(self, landscape: Any, habits: Habits, ledger: Ledger) -> None:
        self.landscape, self.terrain, self.habits, self.ledger = landscape, landscape.terrain, habits, ledger
        self.format = TextFormat("compact")

    def start(
        self, stubs: Sequence[Trajectory], actors: Mapping[str, Actor], sampling: Sampling, limits: Sequence[int]
    ) -> WriterTree:
        """See `engine.base.Engine`."""
        if sampling.entropy or sampling.alternatives or any(a.low is not None for a in actors.values()):
            raise UserError("the simulated model has no entropies, alternatives or low-rank changes")
        return WriterTree(self, stubs, sampling, limits)

    def reply(self, text: str, rng: np.random.Generator) -> str:
        """The answer to a prompt."""
        prompt = read_prompt(text)
        if prompt is None:
            return "I see no machine whose parts I could choose."
        if prompt.wanted == "text":
            return self.advice(prompt, rng)
        fate, changes = self.decide(prompt, rng)
        if fate == "unusable":
            return unusable(prompt, rng)
        lines: dict[str, str | None] = {part: line_of(part, option) for part, option in changes.items()}
        return prompt.answer(broken(lines, rng) if fate == "broken" else lines)

    def decide(self, prompt: Prompt, rng: np.random.Generator) -> tuple[str, dict[str, str]]:
        """What becomes of an answer (`unusable`, `lazy`, `broken` or `sound`), and what it changes."""
        habits, fate = self.habits, rng.random()
        if prompt.failed and rng.random() < habits.feedback:
            fate = 1.0
        if fate < habits.unusable:
            return "unusable", {}
        if fate < habits.unusable + habits.lazy:
            return "lazy", dict(list(prompt.programs[0].items())[:1])
        broken = fate < habits.unusable + habits.lazy + habits.breakage
        return "broken" if broken else "sound", self.changes(prompt, rng)

    # --- what is changed ---

    def changes(self, prompt: Prompt, rng: np.random.Generator) -> dict[str, str]:
        """New implementations, by part: of what cannot be read, if there is any; else a crossing or some edits."""
        now = {**dict.fromkeys(prompt.missing, prompt.options[0]), **prompt.programs[0]}
        if prompt.missing:
            return {part: self.option(prompt, now, part, rng, keep=True) for part in prompt.missing}
        if prompt.wanted == "crossing" and (crossed := self.crossing(prompt, rng)):
            return crossed
        made: dict[str, str] = {}
        count = self.habits.edits if prompt.wanted == "diff" else self.habits.rewrites
        for _ in range(min(count, len(prompt.parts))):
            part, option = self.edit(prompt, {**now, **made}, [p for p in prompt.parts if p not in made], rng)
            made[part] = option
        return made

    def crossing(self, prompt: Prompt, rng: np.random.Generator) -> dict[str, str]:
        """Parts of the first program beside the parent that differs from it; empty if there is none."""
        own = prompt.programs[0]
        other = next((p for p in prompt.programs[1:] if p != own), {})
        differ = {part: option for part, option in other.items() if option != own[part]}
        if differ and rng.random() < self.habits.inspiration:
            differ = {part: o for part, o in differ.items() if self.better(own, part, o)} or differ
        taken = {part: option for part, option in differ.items() if rng.random() < 0.5}
        return taken or dict(list(differ.items())[:1])

    def edit(
        self, prompt: Prompt, now: Mapping[str, str], free: Sequence[str], rng: np.random.Generator
    ) -> tuple[str, str]:
        """One part among the free ones, and its new implementation."""
        habits = self.habits
        advice = [(p, o) for p, o in prompt.advice if p in free and now[p] != o]
        if advice and rng.random() < habits.lesson:
            return advice[int(rng.integers(len(advice)))]
        beside = [(p, o) for other in prompt.programs[1:] for p, o in other.items() if p in free and now[p] != o]
        if beside and rng.random() < habits.inspiration:
            found = [(p, o) for p, o in beside if self.better(now, p, o)]
            if found:
                return found[int(rng.integers(len(found)))]
        if rng.random() >= habits.diversity:
            rng = stream(0, "favourite", *prompt.programs[0].values(), len(free))
        if prompt.weakest in free and rng.random() < habits.feedback:
            part = str(prompt.weakest)
        else:
            part = free[int(rng.integers(len(free)))]
        return part, self.option(prompt, now, part, rng)

    def option(
        self, prompt: Prompt, now: Mapping[str, str], part: str, rng: np.random.Generator, keep: bool = False
    ) -> str:
        """Another implementation of a part; with `keep`, perhaps the one that stands there."""
        choices, place = self.choices(now), self.landscape.places[part]
        skill = min(1.0, self.habits.skill + self.terrain.productivity(choices))
        if rng.random() < skill:
            values = self.terrain.neighbours(choices, place)
            better = np.flatnonzero(values > values[choices[place]] + TINY)
            if len(better):
                return str(self.landscape.options[better[int(rng.integers(len(better)))]])
        others = [o for o in prompt.options if keep or o != now[part]]
        if prompt.avoid and rng.random() < self.habits.lesson:
            others = [o for o in others if (part, o) not in prompt.avoid] or others
        return others[int(rng.integers(len(others)))]

    def better(self, now: Mapping[str, str], part: str, option: str) -> bool:
        """Whether another implementation of a part makes a program better."""
        choices, place = self.choices(now), self.landscape.places[part]
        values = self.terrain.neighbours(choices, place)
        return bool(values[self.landscape.options.index(option)] > values[choices[place]] + TINY)

    def choices(self, now: Mapping[str, str]) -> Int[np.ndarray, " choices"]:
        """A program's choices, as the terrain counts them."""
        return np.array([self.landscape.options.index(now[name]) for name in self.landscape.names])

    # --- what is said ---

    def advice(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """Of programs whose values are stated and differ: up to `LESSONS` parts of the better one that the worse one
        lacks, with the chance `skill` such as make the worse one better. Of one program a plan, as for a rewrite. Of
        notes without a program what they advise, the latest of up to `NOTES` things."""
        if not prompt.programs:
            kept = list(dict.fromkeys(reversed(prompt.advice)))[:NOTES]
            return "\n".join(f'Lesson: {part} = "{option}"' for part, option in reversed(kept)) + "\n"
        known = [(v, p) for v, p in zip(prompt.values, prompt.programs, strict=True) if v is not None]
        known = sorted((k for k in known if len(k[1]) == len(prompt.parts)), key=lambda k: k[0])
        if len(known) > 1 and known[0][0] < known[-1][0]:
            worse, best = known[0][1], known[-1][1]
            differ = [(part, option) for part, option in best.items() if worse[part] != option]
            if rng.random() < self.habits.skill:
                differ = [(part, option) for part, option in differ if self.better(worse, part, option)] or differ
            some = [differ[i] for i in rng.permutation(len(differ))[:LESSONS]]
            return "\n".join(f'Lesson: {part} = "{option}"' for part, option in some) + "\n"
        made = self.changes(prompt, rng)
        return "\n".join(f'Plan: {part} = "{option}"' for part, option in made.items()) + "\n"


class WriterTree(RequestTree):
    """Branches over a `SimulatedWriter`. An advance writes a whole turn, whatever its `k`."""

    def __init__(
        self, engine: SimulatedWriter, stubs: Sequence[Trajectory], sampling: Sampling, limits: Sequence[int]
    ) -> None:
        self.engine = engine
        super().__init__(stubs, sampling, limits)

    def ask(self, branches: Sequence[RequestBranch], limits: Sequence[int]) -> list[Answer]:
        """See `RequestTree.ask`; limits are in the ledger's tokens."""
        return [self._answer(branch, limit) for branch, limit in zip(branches, limits, strict=True)]

    def _answer(self, branch: RequestBranch, limit: int) -> Answer:
        engine = self.engine
        messages = engine.format.messages(branch.tokens)
        text = "\n\n".join(m.content for m in messages)
        reply = engine.reply(text, stream(branch.uid, "write", len(messages)))
        whole = len(reply) <= limit * CHARACTERS
        tokens = np.array(engine.format.encode(reply[: limit * CHARACTERS]), np.int32)
        read, used = math.ceil(branch.length / CHARACTERS), max(1, math.ceil(len(tokens) / CHARACTERS))
        engine.ledger.charge(prefilled=read, sampled=used)
        unknown = np.full(len(tokens), np.nan, np.float32)
        info = {"prompt_tokens": read, "completion_tokens": used}
        return Answer(tokens, unknown, used, "end" if whole else "length", None, info)
