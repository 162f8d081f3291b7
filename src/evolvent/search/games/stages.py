"""Roll-outs that write versions of games in stages, without a model; what they write is validated and repaired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.games.build import first, refined, repaired
from evolvent.search.games.memory import begun
from evolvent.search.games.plan import plan_of
from evolvent.search.games.planner import at_random
from evolvent.search.games.validate import Verdict, validated
from evolvent.search.games.versions import games_of
from evolvent.search.loop import written
from evolvent.tasks.worlds.grid_games.language import GameError

STAGES = ("skeleton", "feature", "visual", "refinement")


@dataclass
class ByRules:
    """Roll out: the version that a request's plan asks for, by rules: the first iteration of a call has the stages
    skeleton, feature and visual, later ones are refinements of what is there.

    repairs  how often a version that does not run is mended, and played again; 0 switches repair off
    adds     mechanics by chance where nobody has planned
    """

    repairs: int = 2
    adds: int = 2

    def setup(self, role: Role) -> None:
        """A task of grid games, and numbers in range."""
        games_of(role)
        if self.repairs < 0 or self.adds < 1:
            raise UserError(
                f"rollout.mutate.repairs must be at least 0 and .adds at least 1, got {self.repairs} and {self.adds}"
            )

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group of one for each request."""
        groups = []
        for place, request in enumerate(requests):
            made = []
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                job, rng = request.problem.data, s.rng("stages", place, i)
                plan = plan_of(job["plan"])
                if not plan.planned:
                    plan = at_random(begun(), self.adds, rng)
                try:
                    if job["iteration"]:
                        text = refined(job["base"], plan, job["missing"], job["won"], rng)
                    else:
                        text = first(job["base"], plan, rng)
                except GameError:  # the version before cannot be read
                    text = job["base"]

                def mend(verdict: Verdict, number: int, job: Mapping[str, Any] = job, rng: Any = rng) -> str | None:
                    try:
                        return repaired(verdict.text, job["before"], verdict.findings, verdict.report, rng)
                    except GameError:  # nothing of it can be read
                        return str(job["before"])

                verdict, count = validated(text, mend, self.repairs, s)
                t = written(uid, request, verdict.text, STAGES[3] if job["iteration"] else STAGES[2])
                made.append(handed(t, verdict, count))
            groups.append(Group(request.problem, made))
        return groups


def handed(t: Trajectory, verdict: Verdict, repairs: int) -> Trajectory:
    """A trajectory with its version and what the validator says of it."""
    t.info |= {"program": verdict.text, "verdict": verdict, "repairs": repairs}
    return t
