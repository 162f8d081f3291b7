"""A SIMULATED model, for tests of the loop and for studies of scale: no network, no text understood.

Its answers are the task's own solutions, right or corrupted. With one skill a category, and difficulties that rise
over the task's categories and vary from problem to problem,

    P(right) = sigmoid((skill[category] - difficulty(problem)) / temperature)

so that what a method should find is known beforehand. Programs of `program:landscape` are written by
`simulated_writer`. Whatever is measured with either says nothing about language models; evidence from it belongs to
`world: simulated`.

    simulated, simulated:skill=1,hardest=5     of problems to be answered: see `Skills`
    simulated:skill=0.5,breakage=0.1           of programs: see `simulated_writer.Habits`
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.random import identifier
from evolvent.core.records import Problem, Trajectory
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.noise import uniform
from evolvent.engine.requests import Answer, RequestBranch, RequestTree
from evolvent.engine.text import FILLER, FixedPolicy, TextFormat
from evolvent.tasks.base import Task
from evolvent.tasks.settings import read_settings

WRONG = 4  # different wrong answers to a problem; each is half as likely as the one before


class SimulatedPolicy(FixedPolicy):
    """Skills by category, in logits.

    easiest, hardest  difficulty of the first and the last category; those between are evenly spaced
    spread            standard deviation of a problem's difficulty within its category
    """

    def __init__(
        self,
        task: Task,
        skill: float | Mapping[str, float] = 0.0,
        easiest: float = -1.0,
        hardest: float = 3.0,
        spread: float = 1.0,
    ) -> None:
        super().__init__("simulated", TextFormat("compact"), None, "a simulated model")
        self.task, self.spread = task, spread
        self.skills = {c: float(skill[c] if isinstance(skill, Mapping) else skill) for c in task.categories}
        steps = np.linspace(easiest, hardest, len(task.categories)) if len(task.categories) > 1 else [easiest]
        self.base = dict(zip(task.categories, map(float, steps), strict=True))

    def category(self, problem: Problem) -> str:
        """As the task lists it; a sum of tasks puts the task's name before it."""
        return problem.category if problem.category in self.skills else f"{problem.task}/{problem.category}"

    def difficulty(self, problem: Problem) -> float:
        """Of one problem, in logits; a function of its category and key."""
        draws = uniform(np.array([identifier(0, problem.key)]), np.arange(1, 13))
        return self.base[self.category(problem)] + self.spread * float(draws.sum() - 6)  # nearly normal

    def bump(self) -> int:  # type: ignore[override]
        """Count a change of the skills; the new version."""
        self.version += 1
        return self.version

    def state_dict(self) -> dict[str, Any]:
        """Skills and version."""
        return {"version": self.version, "weights": {}, "skills": dict(self.skills)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.version, self.skills = state["version"], dict(state["skills"])


class SimulatedEngine:
    """Rolls out a `SimulatedPolicy`. A turn is as long as its text, or where `length` is given, that many tokens on
    average, log-normal with `sigma`; what is beyond the text is filler that reads as nothing. The log-prob of a reply
    stands at its first token."""

    offers = frozenset({"append", "logprobs"})

    def __init__(self, policy: SimulatedPolicy, ledger: Ledger, length: float = 0.0, sigma: float = 0.5) -> None:
        self.policy, self.ledger, self.length, self.sigma = policy, ledger, length, sigma

    def start(
        self, stubs: Sequence[Trajectory], actors: Mapping[str, Actor], sampling: Sampling, limits: Sequence[int]
    ) -> SimulatedTree:
        """See `engine.base.Engine`."""
        if sampling.entropy or sampling.alternatives or any(a.low is not None for a in actors.values()):
            raise UserError("the simulated model has no entropies, alternatives or low-rank changes")
        self.ledger.charge(prefilled=sum(len(s.tokens) for s in stubs))
        return SimulatedTree(self, stubs, sampling, limits)


@dataclass(frozen=True)
class Skills:
    """Settings of a model that answers problems, in logits; see `SimulatedPolicy`."""

    skill: float = 0.0
    easiest: float = -1.0
    hardest: float = 3.0
    spread: float = 1.0


def opened(task: Task, ledger: Ledger, settings: str = "") -> tuple[FixedPolicy, Any]:
    """A simulated model of a task, with settings such as `skill=1,spread=0`."""
    if hasattr(task, "terrain"):
        from evolvent.engine.simulated_writer import Habits, SimulatedWriter

        name = f"simulated:{settings}" if settings else "simulated"
        stand_in = FixedPolicy(name, TextFormat("compact"), None, "a simulated model")
        return stand_in, SimulatedWriter(task, read_settings(Habits, settings, "simulated"), ledger)
    policy = SimulatedPolicy(task, **asdict(read_settings(Skills, settings, "simulated")))
    return policy, SimulatedEngine(policy, ledger)


def __getattr__(name: str) -> Any:
    """`opened:SETTINGS` is `opened` with these settings: how the name of a model hands them on (`engine.SPECIAL`)."""
    if name.startswith("opened:"):
        return partial(opened, settings=name.removeprefix("opened:"))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Known(NamedTuple):
    """What the simulated model knows of a problem: its logit, the turns of a solution, wrong last turns."""

    logit: float
    turns: list[str]
    wrong: list[str]


class SimulatedTree(RequestTree):
    """Branches over a `SimulatedEngine`. An advance writes a whole turn, whatever its `k`."""

    def __init__(
        self, engine: SimulatedEngine, stubs: Sequence[Trajectory], sampling: Sampling, limits: Sequence[int]
    ) -> None:
        self.engine = engine
        self.known: dict[str, Known] = {}
        super().__init__(stubs, sampling, limits)

    def ask(self, branches: Sequence[RequestBranch], limits: Sequence[int]) -> list[Answer]:
        """See `RequestTree.ask`. Whether an episode comes out right is decided by the branch's uid alone."""
        uids = np.array([b.uid for b in branches], np.int64)
        luck, choice = uniform(uids, np.zeros_like(uids)), uniform(uids, np.ones_like(uids))
        sizes = np.zeros(len(branches), int)
        if self.engine.length:
            place, sigma = 2 * np.array([b.length for b in branches]) + 2, self.engine.sigma
            radius = np.sqrt(-2 * np.log1p(-uniform(uids, place)))  # Box-Muller
            normal = radius * np.cos(2 * np.pi * uniform(uids, place + 1))
            sizes = (self.engine.length * np.exp(sigma * normal - sigma**2 / 2)).astype(int)
        made = [self._answer(b, *row) for b, *row in zip(branches, luck, choice, sizes, strict=True)]
        self.engine.ledger.charge(sampled=sum(a.used for a in made))
        return made

    def _answer(self, branch: RequestBranch, luck: float, choice: float, size: int) -> Answer:
        key = self.known.get(branch.problem.key) or self._read(branch.problem)
        temperature = self.sampling.temperature
        chance = sigmoid(key.logit / temperature) if temperature else float(key.logit > 0)
        right = luck < chance
        turn = sum(s.kind == "policy" for s in branch.segments) if branch.length > branch.start else 0
        text, logprob = key.turns[min(turn, len(key.turns) - 1)], 0.0
        if turn == 0:
            logprob = math.log(chance if right else 1 - chance)
        if turn >= len(key.turns) - 1 and not right:
            place = min(int(-math.log2(1 - choice)), len(key.wrong) - 1)
            text = key.wrong[place]
            logprob -= math.log(2) * min(place + 1, len(key.wrong) - 1)
        room = branch.limit - branch.used
        filler = max(0, size - len(text))
        tokens = np.fromiter([FILLER] * filler + [ord(c) for c in text], np.int32, filler + len(text))[:room]
        logprobs = np.zeros(len(tokens), np.float32)
        logprobs[:1] = logprob
        info: dict[str, Any] = {"right": right} | ({"chance": chance} if turn == 0 else {})
        stop = "end" if filler + len(text) <= room else "length"
        return Answer(tokens, logprobs, len(tokens), stop, None, info)

    def _read(self, problem: Problem) -> Known:
        task, policy = self.engine.policy.task, self.engine.policy
        if (gold := task.gold(problem)) is None:
            raise UserError(
                f"the simulated model answers with a task's solutions, and `{task.name}` has none; of programs it "
                "writes those of program:landscape"
            )
        turns = [""]
        for piece in gold:  # pieces of the policy without a tool's reply between them are one turn
            if piece.policy:
                turns[-1] += piece.text
            else:
                turns.append("")
        wrong = [w for w in corrupted(turns[-1]) if task.score(problem, w).outcome < 1][:WRONG]
        logit = policy.skills[policy.category(problem)] - policy.difficulty(problem)
        made = self.known[problem.key] = Known(logit, turns, wrong)
        return made


def corrupted(text: str) -> list[str]:
    """Texts like this one, most of them wrong: another last digit, or a changed end."""
    digits = [m.start() for m in re.finditer(r"\d", text)]
    made = []
    if digits:
        at = digits[-1]
        made = [f"{text[:at]}{(int(text[at]) + k) % 10}{text[at + 1 :]}" for k in range(1, 2 * WRONG)]
    return [*made, text[:-1], text + text[-1:], "?"]


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(-logit)), never quite 0 or 1."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))
