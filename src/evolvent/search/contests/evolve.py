"""The evolution agent without a model: it reads failures and the best agents, and puts pieces together.

Pieces are sentences of instructions and parts of the analysis, those of the agents at hand and those of the library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers
from evolvent.core.records import Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.contests.failures import read_failures, tally
from evolvent.search.contests.iterations import REVISED
from evolvent.search.loop import begin_groups, written
from evolvent.tasks.worlds.sql.agents import Agent, Component, components, read_agent
from evolvent.tasks.worlds.sql.world import sql_of


@dataclass
class Evolve:
    """Roll out: a new agent has the pieces of the first parent, of the others' each that it lacks with probability
    `take` (cross-pollination), and up to `changes` changes: a new piece of the library, or with probability `drop` one
    less. With `read` a new piece is one that may have to do with a failure of the first parent, of a kind that is drawn
    by how often it occurs; without, any piece. With probability `both` a part of the analysis comes with a sentence
    that may have to do with the same, or the other way round: what is reported is of use only to who is told to use it.

    A revision gives up each piece that the agent was born with, and its parent lacks, with probability `regret`, and
    has one change. A combination that was there before is made anew, up to `tries` times. Metrics: `crossed` (pieces
    that came of other parents), `added`, `dropped`.
    """

    take: float = 0.5
    changes: int = 5
    drop: float = 0.15
    read: bool = True
    both: float = 0.6
    regret: float = 0.5
    tries: int = 20

    def setup(self, role: Role) -> None:
        """A world of agents that write SQL, and shares."""
        sql_of(role.task)
        if not all(0 <= share <= 1 for share in (self.take, self.drop, self.both, self.regret)):
            raise UserError("rollout.mutate.take, .drop, .both and .regret are probabilities, from 0 to 1")
        if self.changes < 1 or self.tries < 1:
            raise UserError("rollout.mutate.changes and .tries must be at least 1")

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; those without a parent are the seed program, resumed ones stay as they are."""
        archive = archive_of(s.role)
        groups, unwritten = begin_groups(requests, s)
        seen = {read_agent(c.text).pieces for c in archive.history} if any(r.uses for r in requests) else set()
        for place, request, group in unwritten:
            parents = archive.named(request)
            agents = [read_agent(c.text) for c in parents]
            failed = tally(read_failures(parents[0].evaluation.feedback)) if self.read else {}
            base = request.problem.data.get(REVISED)
            first = None if base is None else read_agent(archive.history[base].text)
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                rng = s.rng("evolve", place, i)
                for _ in range(self.tries):
                    child, counts = self._child(agents, first, failed, rng)
                    if child.pieces not in seen:
                        break
                group.trajectories.append(written(uid, request, child.text(), "revise" if first else "evolve"))
                for name, number in counts.items():
                    s.log(name, number)
        return groups

    def _child(
        self, agents: Sequence[Agent], first: Agent | None, failed: Mapping[str, float], rng: np.random.Generator
    ) -> tuple[Agent, dict[str, int]]:
        """A new agent, and how many pieces of which origin it has."""
        own = agents[0]
        sentences, parts, crossed = list(own.sentences), dict(own.parts), 0
        if first is not None:
            born = [p for p in own.pieces if p not in first.pieces]
            gone = {p for p in sorted(born) if rng.random() < self.regret}
            sentences = [x for x in sentences if x not in gone]
            parts = {name: code for name, code in parts.items() if name not in gone}
        else:
            for other in agents[1:]:
                for sentence in other.sentences:
                    if sentence not in sentences and rng.random() < self.take:
                        sentences.append(sentence)
                        crossed += 1
                for name, code in other.parts.items():
                    if name not in parts and rng.random() < self.take:
                        parts[name] = code
                        crossed += 1
        added = dropped = 0
        for _ in range(1 if first is not None else int(rng.integers(1, self.changes + 1))):
            names = [*sentences, *parts]
            if len(names) > 2 and rng.random() < self.drop:
                name = names[int(rng.integers(len(names)))]
                if name in parts and len(parts) > 1:
                    del parts[name]
                    dropped += 1
                elif name in sentences and len(sentences) > 1:
                    sentences.remove(name)
                    dropped += 1
                continue
            for piece in self._new({*sentences, *parts}, failed, rng):
                added += 1
                if piece.role == "sentence":
                    sentences.append(piece.code)
                else:
                    parts[piece.name] = piece.code
        about = f"{len(parts)} parts of analysis ({', '.join(parts)}), {len(sentences)} sentences."
        return Agent(about, tuple(sentences), parts), {"crossed": crossed, "added": added, "dropped": dropped}

    def _new(self, there: set[str], failed: Mapping[str, float], rng: np.random.Generator) -> list[Component]:
        """A piece of the library that is not there yet, perhaps with one of the other role."""
        left = [c for c in components().values() if c.name not in there and c.code not in there]
        kinds = [kind for kind in sorted(failed) if any(kind in c.serves for c in left)]
        if kinds:
            weights = np.array([failed[kind] for kind in kinds])
            kind = kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]
            left = [c for c in left if kind in c.serves]
        if not left:
            return []
        one = left[int(rng.integers(len(left)))]
        mates = [c for c in left if c.role != one.role]
        if mates and rng.random() < self.both:
            return [one, mates[int(rng.integers(len(mates)))]]
        return [one]
