"""Task after task: teams are selected from the pool, evolve for some generations, and the best one goes back to it.

arXiv 2602.06511 (EvoMAS).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers
from evolvent.core.records import Problem, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import Archive, archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.candidate import Candidate
from evolvent.search.loop import again, written
from evolvent.search.teams.edits import Edit, difference
from evolvent.search.teams.experience import Experience
from evolvent.search.teams.judge import QUESTIONS, teams_of
from evolvent.tasks.evaluation import INSTANCE
from evolvent.tasks.worlds.workflow.questions import named
from evolvent.tasks.worlds.workflow.team import read

TASK, CROSS = "task", "cross"  # in notes: the number of the task; in the data of a problem: whether to cross
SHOWN = 12  # members of the pool that a model chooses from


@dataclass
class Tasks:
    """Propose: a task is the questions of one kind. Its first generation has parents among `seeds` teams of the pool,
    later ones among all that were executed at the task; each of the `generations` has `children`, of which a share
    `crossover` has two parents. Then the best one is executed on all other questions, and belongs to the pool.

        SELECT   the best at questions of this kind, as far as is known, whom memory names for such tasks first
        parents  the best of two draws from the best `breeding` of the task, of equals the youngest

    A model chooses seeds itself, from what is known of the pool and from memory, and writes the lesson; otherwise rules
    do. `prompts` is a folder with `teams/select.md` and `teams/consolidate.md` of your own.

    The first step executes the teams that were made by hand. With 0 generations nothing else happens, again and again:
    the best of these is what comes of it. Metrics: `better`, the share of the last generation's children that are
    better at the task than their first parent; `gain`, at the end of a task, of its best over its best seed.
    """

    seeds: int = 3
    generations: int = 5
    children: int = 8
    crossover: float = 0.3
    breeding: int = 4
    memory: Any = Experience
    prompts: str = ""
    number: int = field(default=0, init=False)  # of the task
    generation: int = field(default=0, init=False)
    chosen: list[int] = field(default_factory=list, init=False)  # the seeds of the task

    def setup(self, role: Role) -> None:
        """A task of teams, and numbers that make sense."""
        teams_of(role)
        Prompts(self.prompts).check(["teams/select", "teams/consolidate"])
        if min(self.seeds, self.children, self.breeding) < 1 or self.generations < 0 or not 0 <= self.crossover <= 1:
            raise UserError(
                "propose.seeds, .children and .breeding must be at least 1, .generations at least 0, "
                ".crossover from 0 to 1"
            )

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round: the pool of the beginning, a generation, or the end of a task."""
        archive, task = archive_of(s.role), teams_of(s.role)
        problem = task.draw("train", s.rng("problem"))
        if not archive.history:
            yield self._first(problem, s)
            return
        if not self.generations:
            whole = task.instances("train")
            uids = identifiers(len(archive.history), s.role.seed, *s.path, "again")
            yield [again(c, problem, whole, uid) for c, uid in zip(archive.history, uids, strict=True)]
            return
        names = self.questions(s.role)
        if self.generation:
            self._look_back(archive, names, s)
        if self.generation == self.generations:
            best, kind = self.best(archive, names), self.kind(s.role)
            self._consolidate(archive, best, kind, names, s)
            self.number, self.generation, self.chosen = self.number + 1, 0, []
            rest = tuple(n for n in task.instances("train") if INSTANCE + n not in best.evaluation.metrics)
            if rest:
                uid = identifiers(1, s.role.seed, *s.path, "end")[0]
                yield [again(best, problem, rest, uid)]
                return
            names = self.questions(s.role)
        if not self.generation:
            self.chosen = [c.uid for c in self.select(archive, names, s)]
        self.generation += 1
        yield self._generation(archive, names, problem, s)

    def _first(self, problem: Problem, s: Step) -> list[Request]:
        texts = teams_of(s.role).pool
        uids = identifiers(len(texts), s.role.seed, *s.path, "pool")
        made = [written(uid, Request(problem, 1), text, "seed") for uid, text in zip(uids, texts.values(), strict=True)]
        for t, name in zip(made, texts, strict=True):
            t.info["notes"] = {"name": name}
        return [Request(problem, 1, resume=(t,)) for t in made]

    # --- the task ---

    def kind(self, role: Role) -> str:
        """Which questions the task has."""
        kinds = list(dict.fromkeys(map(teams_of(role).kind, teams_of(role).instances("train"))))
        return kinds[self.number % len(kinds)]

    def questions(self, role: Role) -> list[str]:
        """Their names."""
        task, kind = teams_of(role), self.kind(role)
        return [n for n in task.instances("train") if task.kind(n) == kind]

    def population(self, archive: Archive) -> list[Candidate]:
        """The task's seeds and all their descendants in it."""
        own = [c for c in archive.history if c.notes.get(TASK) == self.number and c.valid]
        return [*(archive.history[uid] for uid in self.chosen), *own]

    def select(self, archive: Archive, names: Sequence[str], s: Step) -> list[Candidate]:
        """The seeds of a task."""
        known = self.memory.best_for(self.kind(s.role))[-1:]
        members = sorted(archive.pool().members, key=lambda c: (c.uid in known, value_on(c, names), c.merit))[::-1]
        if isinstance(s.role.policy, AbsentPolicy):
            return members[: self.seeds]
        shown = members[:SHOWN]
        text = Prompts(self.prompts).render(
            "teams/select",
            kind=self.kind(s.role),
            example=named(names[0], teams_of(s.role).settings.seed).text,
            members=shown,
            known=[f"{value_on(c, names):.3f}" for c in shown],
            nodes=[", ".join(read(c.text).names) for c in shown],
            lessons=self.memory.told(self.kind(s.role)),
            count=self.seeds,
        )
        [t] = ask([text], s.role.task.draw("train", s.rng("problem")), s, "select")
        return picked("" if t.error else t.completion, members)[: self.seeds]

    def best(self, archive: Archive, names: Sequence[str]) -> Candidate:
        """The best of the task; of equals the one that is best at everything, then the first."""
        return max(self.population(archive), key=lambda c: (value_on(c, names), c.evaluation.complete, -c.uid))

    def _generation(self, archive: Archive, names: Sequence[str], problem: Problem, s: Step) -> list[Request]:
        order = sorted(self.population(archive), key=lambda c: (-value_on(c, names), -c.uid))  # of equals the youngest
        parents, requests, crossings = order[: self.breeding], [], 0
        for i in range(self.children):
            rng = s.rng("parents", i)
            cross = len(parents) > 1 and bool(rng.random() < self.crossover)
            first = parents[int(rng.integers(len(parents), size=2).min())]
            used = [first]
            if cross:
                others = [p for p in parents if p.uid != first.uid]
                used.append(others[int(rng.integers(len(others)))])
            crossings += cross
            data = {**problem.data, QUESTIONS: tuple(names), CROSS: cross, TASK: self.number}
            requests.append(Request(replace(problem, data=data), 1, uses=tuple(str(c.uid) for c in used)))
        s.log("crossed", crossings / self.children)
        return requests

    # --- what was learned ---

    def _look_back(self, archive: Archive, names: Sequence[str], s: Step) -> None:
        """Log how many of the latest generation are better than their parents."""
        latest = [c for c in archive.history if c.notes.get(TASK) == self.number and c.step == s.t - 1]
        if latest:
            s.log("better", float(np.mean([gain(c, archive, names) > 0 for c in latest])))

    def _consolidate(self, archive: Archive, best: Candidate, kind: str, names: Sequence[str], s: Step) -> None:
        """The lesson of a task goes to the memory."""
        seeds = max(value_on(archive.history[uid], names) for uid in self.chosen)
        s.log("gain", value_on(best, names) - seeds)
        edits = [
            (c.notes["fault"], Edit(*c.notes["edit"]), max(gain(c, archive, names), -1.0))
            for c in self.population(archive)
            if c.notes.get(TASK) == self.number and c.notes.get("edit")
        ]
        told = lesson(best, archive, names, self.number)
        if not isinstance(s.role.policy, AbsentPolicy):
            told = self._words(best, kind, archive, names, s) or told
        self.memory.add(kind, best.uid, value_on(best, names), told, edits)

    def _words(self, best: Candidate, kind: str, archive: Archive, names: Sequence[str], s: Step) -> str:
        """The lesson, as a model writes it; empty where it could not be asked."""
        own = [c for c in self.population(archive) if c.notes.get(TASK) == self.number]
        tried = [f"{', '.join(changed(c, archive))} ({gain(c, archive, names):+.2f})" for c in own]
        text = Prompts(self.prompts).render(
            "teams/consolidate", kind=kind, best=best, value=value_on(best, names), tried=tried
        )
        [t] = ask([text], s.role.task.draw("train", s.rng("problem")), s, "consolidate")
        return "" if t.error else " ".join(t.completion.split())

    def state_dict(self) -> dict[str, Any]:
        """Where it is; who is who is in the history."""
        return {"number": self.number, "generation": self.generation, "chosen": list(self.chosen)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.number, self.generation, self.chosen = state["number"], state["generation"], list(state["chosen"])


def value_on(candidate: Candidate, names: Sequence[str]) -> float:
    """The mean value on some questions; -inf where one is missing."""
    metrics = candidate.evaluation.metrics
    return float(np.mean([metrics.get(INSTANCE + name, -np.inf) for name in names])) if candidate.valid else -np.inf


NUMBERS = re.compile(r"seeds\W*((?:\d+\W*)+)", re.IGNORECASE)


def picked(answer: str, members: Sequence[Candidate]) -> list[Candidate]:
    """The members that an answer names in its last line of seeds, then the others in their order."""
    lines = NUMBERS.findall(answer)
    uids = [int(n) for n in re.findall(r"\d+", lines[-1])] if lines else []
    first = [c for uid in dict.fromkeys(uids) for c in members if c.uid == uid]
    return [*first, *(c for c in members if c not in first)]


def changed(candidate: Candidate, archive: Archive) -> tuple[str, ...]:
    """The components in which a candidate differs from its first parent."""
    return difference(read(archive.history[candidate.parents[0]].text), read(candidate.text))


def gain(candidate: Candidate, archive: Archive, names: Sequence[str]) -> float:
    """How much better it is at some questions than its first parent."""
    return value_on(candidate, names) - value_on(archive.history[candidate.parents[0]], names)


def lesson(best: Candidate, archive: Archive, names: Sequence[str], number: int) -> str:
    """What was changed on the way to the best one of a task, where it made it better."""
    found, c = list[str](), best
    while c.notes.get(TASK) == number and c.parents:
        if (more := gain(c, archive, names)) > 0:
            found.append(f"{c.operator} (+{more:.2f})")
        c = archive.history[c.parents[0]]
    return "; ".join(found[::-1]) or "no change made it better"
