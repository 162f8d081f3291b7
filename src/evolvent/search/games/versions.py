"""The collection: an archive whose candidates are all lineages so far, and what is known of each version in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evolvent.core.errors import UserError
from evolvent.core.records import Change
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import Archive
from evolvent.search.candidate import PROGRAM, Candidate
from evolvent.tasks.worlds.grid_games.world import (
    GridGames,
    collection,
    new_and_working,
    played,
    read_collection,
)


def games_of(role: Role) -> GridGames:
    """The role's task, which has to be one of grid games: `UserError` otherwise."""
    if isinstance(role.task, GridGames):
        return role.task
    raise UserError(
        f"this recipe writes games in lineages, and {role.task.name} has none; give --task program:grid-games:8"
    )


@dataclass
class Versions(Archive):
    """Keep: the version that a call saves goes to the end of its lineage. Candidate number 0 has the seed games.

    The value is the world's, on its split `train`; no reward is. The notes of a candidate are `lineage`, `generation`,
    `reward`, the place of the `parent` in the lineage, and the `iterations` of the call. Metrics, on levels of the
    split `gate`, which nothing else reads: `runs`, whether the version that was saved runs, and `brought`, how many new
    working mechanics its lineage has that it had not.
    """

    def __call__(self, s: Step) -> list[Change]:
        """One candidate for the call."""
        task = games_of(s.role)
        if not self.history:
            self._add(Candidate(0, {PROGRAM: task.seed_program}, task.evaluate([task.seed_program])[0], step=s.t))
        made = [t for g in s.groups for t in g.valid if t.info.get("saved")]
        for t in made:
            lineage, latest = t.problem.data["lineage"], self.history[-1]
            texts = read_collection(latest.text)
            before = [*texts[lineage]]
            texts[lineage] = [*before, t.info["program"]]
            text = collection(texts)
            notes = {
                "lineage": lineage,
                "generation": len(before),
                "reward": t.rewards["value"].value,
                "parent": before.index(t.problem.data["before"]),
                "iterations": [x.info["record"] for g in s.groups for x in g.valid if "record" in x.info],
            }
            uid = len(self.history)
            [evaluation] = task.evaluate([text])
            self._add(Candidate(uid, {PROGRAM: text}, evaluation, (latest.uid,), t.info["operator"], s.t, notes=notes))
            seen = [len(new_and_working(v, "gate", task.effort)) for v in (before, texts[lineage])]
            s.log("runs", played(t.info["program"], "gate", task.effort).runs)
            s.log("brought", seen[1] - seen[0])
        if (best := self.best) is not None:
            s.log("best", best.value)
        return []

    def lineage(self, task: GridGames, name: str) -> list[str]:
        """The versions of a lineage, the seed game first."""
        return read_collection(self.history[-1].text)[name] if self.history else [seeds_of(task, name)]

    def rewards(self, name: str) -> list[float]:
        """The rewards of the versions of a lineage, without the seed game."""
        return [c.notes["reward"] for c in self.history if c.notes.get("lineage") == name]

    def records(self, name: str) -> list[dict[str, Any]]:
        """What is known of all iterations in a lineage, the oldest first."""
        mine = [c.notes["iterations"] for c in self.history if c.notes.get("lineage") == name]
        return [record for iterations in mine for record in iterations]

    def _add(self, made: Candidate) -> None:
        self.history.append(made)
        self.members = self.admit(made, self.members)
        for parent in made.parents:
            self.children[parent] += 1


def seeds_of(task: GridGames, name: str) -> str:
    """The seed game of a lineage."""
    return read_collection(task.seed_program)[name][0]


def versions_of(role: Role) -> Versions:
    """The archive of a role. `UserError` if it is of another kind."""
    for part in role.parts.values():
        if isinstance(part, Versions):
            return part
    raise UserError("this recipe writes games in lineages; put evolvent.search.games.versions:Versions at keep")
