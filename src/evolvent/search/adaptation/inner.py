"""What an adaptation policy is worth: inner runs, each of several episodes of one game with guidance in between."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evolvent.core.errors import UserError, VerifierError, unknown
from evolvent.core.records import Group, Message, Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.rollout.sample import Sample
from evolvent.search.archive import archive_of
from evolvent.search.asking import answers, ask_once
from evolvent.search.loop import Evaluate
from evolvent.tasks.base import key_of
from evolvent.tasks.worlds.text_games.notes import LINES
from evolvent.tasks.worlds.text_games.world import STARTS, Run, TextGames, meta_prompt, text_of

LEARN = re.compile(r"<learn>(.*?)</learn>", re.DOTALL)
LATEST = "The guidance that it had:\n{}\n\nThe log:\n{}"


def games_of(role: Role) -> TextGames:
    """The role's task, which has to be one of games: `UserError` otherwise."""
    if isinstance(role.task, TextGames):
        return role.task
    raise UserError(
        f"this recipe evolves what is said between episodes of a game, and {role.task.name} has no games; "
        "give --task program:text-games"
    )


@dataclass
class InnerLoop(Evaluate):
    """Judge: as `Evaluate`; an evaluation of the budget is one inner run.

    start  the strategy section to begin with: empty, or `reflexion`, a fixed policy that says what went wrong, what
           was wasted, what went well and what to do next

    With a model it plays the episodes and writes the guidance; each sees its whole log. Metric `gain`: of the best
    candidate so far, the last episode's share of points less the first one's, mean over the games to learn from.
    """

    start: str = ""
    asks_model: ClassVar = True

    def setup(self, role: Role) -> None:
        """A task of games, which gets to know the start and who plays."""
        if self.start not in STARTS:
            raise unknown("start", self.start, STARTS, "judge.start is empty, or reflexion")
        task = games_of(role)
        task.seed_program = text_of(STARTS[self.start])
        if not isinstance(role.policy, AbsentPolicy):
            task.play = Played(role)
        super().setup(role)

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate what the round has made."""
        super().__call__(groups, s)
        best = archive_of(s.role).best
        if best is not None:
            m = best.evaluation.metrics
            names = [name.removeprefix("first/") for name in m if name.startswith("first/")]
            s.log("gain", float(np.mean([m[f"last/{name}"] - m[f"first/{name}"] for name in names])))


def observed(role: Role, strategy: Sequence[str], names: Sequence[str]) -> list[Run]:
    """Inner runs to be looked at, which the budget pays for."""
    before = time.process_time()
    runs = games_of(role).play(strategy, names)
    role.ledger.charge(verifier_calls=len(names), verifier_seconds=time.process_time() - before)
    return runs


class Played:
    """Inner runs of a role's model, as actor and as adaptation policy; all games of a call go side by side."""

    def __init__(self, role: Role) -> None:
        self.role = role

    def __call__(self, strategy: Sequence[str], names: Sequence[str]) -> list[Run]:
        """An inner run of each game. `VerifierError` where an answer is missing."""
        task, label = games_of(self.role), "inner/" + key_of("inner", [list(strategy), list(names)])
        s = Step(0, self.role, [self.role.policy_actor()], label=label)
        guidance, runs = [""] * len(names), [Run((), (), ())] * len(names)
        for k in range(task.settings.episodes):
            episodes = [Request(task.game(n, g), 1) for n, g in zip(names, guidance, strict=True)]
            played = [_good(t).info.get("played", (0.0, "")) for t in answers(episodes, s, f"play-{k}", Sample())]
            runs = [
                Run((*r.scores, p[0]), (*r.logs, p[1]), (*r.guidance, g))
                for r, p, g in zip(runs, played, guidance, strict=True)
            ]
            if k + 1 < task.settings.episodes:
                guidance = self._advice(strategy, runs, s, k)
        return runs

    def _advice(self, strategy: Sequence[str], runs: Sequence[Run], s: Step, k: int) -> list[str]:
        """What the adaptation policy says to each game's latest episode, the lines that an actor reads."""
        told = [LATEST.format(r.guidance[-1] or "none", r.logs[-1]) for r in runs]
        found: list[str] = []
        for i, text in enumerate(told):
            problem = Problem(key_of("advice", text), (Message("user", text),), {}, "advice", s.role.task.name)
            [t] = ask_once([meta_prompt(strategy)], problem, s, f"advise-{k}-{i}")
            lines = "\n".join(LEARN.findall(_good(t).completion)).splitlines()
            found.append("\n".join([line for line in lines if line.strip()][:LINES]))
        return found


def _good(t: Trajectory) -> Trajectory:
    if t.error is not None:
        raise VerifierError(f"inner run: {t.error}")
    return t


__all__ = ["InnerLoop", "Played", "games_of", "observed"]
