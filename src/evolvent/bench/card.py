"""The card of a seed model: what it can do, measured on the gate split, and what its answers rest on.

Accuracies are percentages: greedy, sampled at temperature 1, and the share of problems that at least one of 16
samples solves. For the roles the same problems are asked again with an input exchanged or taken away: an answer that
does not get worse never used it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evolvent.bench.evaluate import CHUNK
from evolvent.core.errors import VerifierError
from evolvent.core.ledger import Ledger
from evolvent.core.random import stream
from evolvent.core.records import Group, Problem, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.local import LocalEngine
from evolvent.judge.verify import verify
from evolvent.models.policy import Policy
from evolvent.models.pretrain import replace
from evolvent.rollout.sample import Sample
from evolvent.tasks.base import Task, distinct
from evolvent.tasks.countdown import Countdown, solutions
from evolvent.tasks.reasoning_gym.compact import WORDINGS
from evolvent.tasks.registry import load_task
from evolvent.tasks.roles import ROLES, Judge, Propose, missing, shuffled
from evolvent.tasks.roles import Role as RoleTask
from evolvent.tasks.roles.hint import prefix
from evolvent.tasks.roles.propose import distinctness

LEVELS: dict[str, tuple[str, ...]] = {
    "countdown": ("2x20", "2x50", "2x99", "3x12", "3x20", "3x50", "4x12", "4x20", "5x12"),
    "arith": (
        "2x1",
        "3x1",
        "4x1",
        "1x3",
        "2x2",
        "3x2",
        "4x2",
        "2x1-mul",
        "2x1-mul-chain",
        "2x2-chain",
        "3x2-chain",
        "3x3-chain",
        "4x4-chain",
    ),
    "calc": ("1x2", "2x2", "2x3", "2x4", "3x3", "3x4", "3x6"),
    **{f"rg/{name}": tuple(words.shapes) for name, words in WORDINGS.items()},
}
ROLE_LEVELS: dict[str, tuple[str, ...]] = {
    "judge": ("3x12", "3x20", "4x12"),
    "revise": ("3x20", "4x12", "4x20"),
    "hint": ("3x20", "4x12", "4x20"),
    "memory": ("recall-2", "recall-3", "recall-4", "sum-2", "sum-3", "sum-4", "case-2-3x20", "case-3-4x12"),
    "propose": ("arith:2x1", "arith:2x2", "countdown:3x12", "countdown:3x20"),
}
PREFIXES = ("3x20", "4x12", "4x20")  # countdown levels for hints as text that is already written
SAMPLES = 16
COOLER = (0.7, 0.45)  # proposals are asked for at these temperatures too: valid more often, distinct less
ASKED = {  # what a role has to show at a level
    "judge": "75-95 % balanced accuracy",
    "propose": "at least 90 % valid and 80 % distinct",
    **dict.fromkeys(
        ("revise", "hint", "memory", "prefix"), "right inputs at least 20 points above shuffled or missing ones"
    ),
}


@dataclass
class Bench:
    """What measures: a policy on the local engine, and how many problems of each level it is asked."""

    policy: Policy
    problems: int = 256
    seed: int = 0

    def draw(self, task: Task) -> list[Problem]:
        """Different problems of the gate split, the same for all models; fewer where the level has fewer."""
        return distinct(task, "gate", self.problems, seed=1)

    def ask(self, task: Task, requests: Sequence[Request], temperature: float = 0.0) -> list[Group]:
        """Judged answers."""
        ledger = Ledger()
        role = Role("card", task, self.policy, LocalEngine(self.policy, ledger), ledger, self.seed)
        groups: list[Group] = []
        size = max(1, CHUNK // max(r.n for r in requests))
        for start in range(0, len(requests), size):
            s = Step(start, role, [role.policy_actor()], label=f"card/{temperature}")
            groups += Sample(temperature=temperature)(requests[start : start + size], s)
        rows = [t for g in groups for t in g.trajectories]
        for row, score in zip(rows, verify(task, rows, ledger), strict=True):
            if isinstance(score, VerifierError):
                raise score
            row.reward("outcome", score.outcome)
            row.info["answer"] = score.answer
        return groups

    def greedy(self, task: Task, problems: Sequence[Problem], hints: Sequence[str] = ()) -> np.ndarray:
        """Outcomes of greedy answers, float64 [problems]; with `hints`, to answers that are begun already."""
        begun = hints or [""] * len(problems)
        groups = self.ask(task, [Request(p, 1, hint=h) for p, h in zip(problems, begun, strict=True)])
        return np.array([g.trajectories[0].outcome for g in groups])

    def level(self, task: Task) -> dict[str, Any]:
        """Greedy and sampled accuracy, pass@16, and how long answers are."""
        problems = self.draw(task)
        greedy = self.greedy(task, problems)
        groups = self.ask(task, [Request(p, SAMPLES) for p in problems], 1.0)
        outcome = np.array([[t.outcome for t in g.trajectories] for g in groups])
        found = {
            "problems": len(problems),
            "greedy": percent(greedy),
            "sampled": percent(outcome),
            "gap": round(percent(greedy) - percent(outcome), 1),
            "pass16": percent(outcome.max(1)),
            "length": round(float(np.mean([t.sampled for g in groups for t in g.trajectories])), 1),
        }
        if hasattr(task, "episode"):
            found["tool"] = percent([t.turns > 1 for g in groups for t in g.trajectories])
        return found

    def sensitivity(self, task: RoleTask) -> dict[str, Any]:
        """Greedy accuracy with the right inputs, and with each of them shuffled or missing."""
        problems = self.draw(task)
        found: dict[str, Any] = {"right": percent(self.greedy(task, problems))}
        for part in task.parts:
            rng = stream(self.seed, "card", task.name, part)
            found[f"{part} shuffled"] = percent(self.greedy(task, shuffled(task, problems, part, rng)))
            found[f"{part} missing"] = percent(self.greedy(task, missing(task, problems, part)))
        return found

    def judging(self, task: Judge) -> dict[str, Any]:
        """Accuracy on right and on wrong candidates, their mean, and accuracy for every kind of wrong candidate."""
        problems = self.draw(task)
        outcome = self.greedy(task, problems)
        kinds = np.array([p.data["kind"] for p in problems])
        right = kinds == "right"
        found = {kind: percent(outcome[kinds == kind]) for kind in sorted(set(kinds.tolist()) - {"right"})}
        return {
            "balanced": percent([outcome[right].mean(), outcome[~right].mean()]),
            "right": percent(outcome[right]),
            "wrong": percent(outcome[~right]),
            "kinds": found,
        }

    def proposing(self, task: Propose, temperature: float = 1.0) -> dict[str, float]:
        """Share of proposals that are valid, and share of the valid ones that differ by key."""
        problem = task.problem(task.categories[0])
        group = self.ask(task, [Request(problem, 2 * self.problems)], temperature)[0]
        keys = [t.info["answer"] for t in group.trajectories if t.outcome]
        return {"valid": percent([t.outcome for t in group.trajectories]), "distinct": percent(distinctness(keys))}

    def prefixes(self, level: str) -> dict[str, Any]:
        """Countdown with the first half of a solution as text that the model is taken to have written."""
        task = Countdown((level,))
        problems = self.draw(task)
        halves = [prefix(solutions(tuple(sorted(p.data["numbers"])))[p.data["target"]], 0.5) for p in problems]
        return {
            "right": percent(self.greedy(task, problems, halves)),
            "prefix shuffled": percent(self.greedy(task, problems, halves[1:] + halves[:1])),
            "prefix missing": percent(self.greedy(task, problems)),
        }


def percent(values: Any) -> float:
    """Mean in per cent, one decimal."""
    return round(100 * float(np.mean(values)), 1)


def measure(policy: Policy, problems: int = 256, progress: Callable[[str], None] = lambda name: None) -> dict[str, Any]:
    """Everything on the card of a seed model, as plain data."""
    bench = Bench(policy, problems)
    tasks: dict[str, dict[str, Any]] = {}
    for family, levels in LEVELS.items():
        progress(family)
        tasks[family] = {level: bench.level(load_task(f"{family}:{level}")) for level in levels}
    roles: dict[str, dict[str, Any]] = {}
    for family, levels in ROLE_LEVELS.items():
        progress(family)
        for level in levels:
            task = ROLES[family]((level,))
            if isinstance(task, Judge):
                found = bench.judging(task)
            elif isinstance(task, Propose):
                found = {**bench.proposing(task), "cooler": {str(t): bench.proposing(task, t) for t in COOLER}}
            else:
                found = bench.sensitivity(task)
            roles.setdefault(family, {})[level] = found
    progress("prefix")
    roles["prefix"] = {level: bench.prefixes(level) for level in PREFIXES}
    return {"parameters": policy.size, "problems": problems, "tasks": tasks, "roles": roles}


def room(levels: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[str]]:
    """Levels to learn on (10-40 % sampled, greedy at most 10 points above) and levels out of reach (at most 2 %)."""
    learn = [name for name, x in levels.items() if 10 <= x["sampled"] <= 40 and x["gap"] <= 10]
    return learn, [name for name, x in levels.items() if x["sampled"] <= 2]


def competence(roles: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """For every role the levels at which it does what `ASKED` says; of proposals each with its temperature."""
    good = {}
    for role, levels in roles.items():
        if role == "judge":
            good[role] = [level for level, x in levels.items() if 75 <= x["balanced"] <= 95]
        elif role == "propose":
            good[role] = [
                f"{level} at {temperature}"
                for level, temperature, x in proposals(levels)
                if x["valid"] >= 90 and x["distinct"] >= 80
            ]
        else:
            good[role] = [
                level
                for level, x in levels.items()
                if x["right"] >= 20 + max(value for name, value in x.items() if name != "right")
            ]
    return good


def proposals(levels: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, Mapping[str, float]]]:
    """Each level at each temperature, with what was measured there."""
    return [(level, t, found) for level, x in levels.items() for t, found in (("1", x), *x["cooler"].items())]


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(c) for c in line) + " |" for line in lines) + "\n"


def readme(name: str, card: Mapping[str, Any]) -> str:
    """The card as a page."""
    about = (
        f"A seed model of evolvent: a Llama decoder of {card['parameters']:,} parameters that reads one character at a "
        "time, made by `evolvent pretrain`. Measured on the gate split, in per cent."
    )
    tasks, roles = card["tasks"], card["roles"]
    cells = [(f"{family}:{level}", x) for family, levels in tasks.items() for level, x in levels.items()]
    solved = [[name, x["greedy"], x["sampled"], x["gap"], x["pass16"], x.get("tool", "")] for name, x in cells]
    rooms = [[family, *(", ".join(found) for found in room(levels))] for family, levels in tasks.items()]
    kinds = {level: ", ".join(f"{k} {v}" for k, v in x["kinds"].items()) for level, x in roles["judge"].items()}
    judged = [[level, x["balanced"], x["right"], x["wrong"], kinds[level]] for level, x in roles["judge"].items()]
    proposed = [[level, t, x["valid"], x["distinct"]] for level, t, x in proposals(roles["propose"])]
    competent = [[role, ASKED[role], ", ".join(found)] for role, found in competence(roles).items()]
    rested = [
        [role, level, x["right"], "; ".join(f"{k}: {v}" for k, v in x.items() if k != "right")]
        for role in ("revise", "hint", "memory", "prefix")
        for level, x in roles[role].items()
    ]
    parts = [
        f"# {name}\n\n{about}\n\n## Tasks\n",
        table(["task", "greedy", "sampled", "greedy - sampled", "pass@16", "uses the tool"], solved),
        "Levels to learn on: 10-40 % sampled, greedy at most 10 points above. Out of reach: at most 2 % sampled.\n",
        table(["task", "to learn on", "out of reach"], rooms),
        "## Roles\n",
        table(["role", "what is asked", "levels that meet it"], competent),
        table(["judge", "balanced", "right ones", "wrong ones", "by kind of error"], judged),
        table(["propose", "temperature", "valid", "distinct"], proposed),
        "Greedy accuracy with the right inputs, and with one of them exchanged or taken away:\n",
        table(["role", "level", "right inputs", "otherwise"], rested),
    ]
    return "\n".join(parts)


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write `card.json` and `README.md` into a model folder."""
    replace(folder / "card.json", (json.dumps(card, indent=1) + "\n").encode())
    replace(folder / "README.md", readme(folder.name, card).encode())
