"""Roll-outs that write versions of games in stages, by a model; what it writes is validated, and repaired by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.asking import Prompts, ask_once
from evolvent.search.games.plan import plan_of
from evolvent.search.games.speak import object_of
from evolvent.search.games.stages import STAGES, handed
from evolvent.search.games.validate import Verdict, validated
from evolvent.search.games.versions import games_of
from evolvent.tasks.worlds.grid_games import language
from evolvent.tasks.worlds.grid_games.language import GameError, game_of, text_of


@dataclass
class ByModel:
    """Roll out: a model writes the version that a request's plan asks for, stage by stage: skeleton, feature, visual
    in the first iteration of a call, one refinement in later ones. The plan goes before each of them.

    An answer that holds no game leaves what there was before that stage. Where every stage failed with an error, so
    does the version; that is no finding about a game.

    repairs  how often a version that does not run is mended, and played again
    prompts  folder with `games/skeleton.md`, `feature.md`, `visual.md`, `refinement.md` and `repair.md` of your own
    """

    repairs: int = 2
    prompts: str = ""

    def setup(self, role: Role) -> None:
        """A task of grid games, a number in range, and prompts that can be read: `UserError`."""
        games_of(role)
        if self.repairs < 0:
            raise UserError(f"rollout.write.repairs must be at least 0, got {self.repairs}")
        Prompts(self.prompts).check([f"games/{stage}" for stage in (*STAGES, "repair")])

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group of one for each request."""
        return [Group(request.problem, [self.version(request, place, s)]) for place, request in enumerate(requests)]

    def version(self, request: Request, place: int, s: Step) -> Trajectory:
        """One version."""
        job = request.problem.data
        text, answers = job["base"], list[Trajectory]()
        stages = STAGES[3:] if job["iteration"] else STAGES[:3]
        for stage in stages:
            text = self.ask(stage, text, job, request, f"{stage}-{s.round}-{place}", answers, s)
        last = answers[-1]
        if all(a.error is not None for a in answers):
            return last

        def mend(verdict: Verdict, number: int) -> str | None:
            label = f"repair-{s.round}-{place}-{number}"
            return self.ask("repair", verdict.text, job, request, label, answers, s, verdict.issues)

        verdict, count = validated(text, mend, self.repairs, s)
        last.error = None
        last.info["operator"] = stages[-1]
        return handed(last, verdict, count)

    def ask(
        self,
        stage: str,
        text: str,
        job: Any,
        request: Request,
        label: str,
        answers: list[Trajectory],
        s: Step,
        issues: Sequence[str] = (),
    ) -> str:
        """What a stage makes of a text."""
        prompt = Prompts(self.prompts).render(
            f"games/{stage}", game=text, plan=plan_of(job["plan"]), issues=issues or job["issues"],
            missing=job["missing"], language=language.__doc__,
        )  # fmt: skip
        [t] = ask_once([prompt], request.problem, s, label)
        answers.append(t)
        if t.error is not None:
            return text
        try:
            data = object_of(t.completion)
            game_of(data)
            return text_of(data)
        except GameError:
            return text
