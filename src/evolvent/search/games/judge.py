"""The judge of versions: the signals of the proxy reward, one of which a model gives, and what they make together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from evolvent.core.errors import unknown
from evolvent.core.records import Group, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.asking import Prompts, ask_once
from evolvent.search.games import reward
from evolvent.search.games.memory import begun
from evolvent.search.games.plan import Realised, compared, plan_of
from evolvent.search.games.reward import Signals, Weights
from evolvent.search.games.validate import Verdict
from evolvent.search.games.versions import games_of, versions_of
from evolvent.tasks.worlds.grid_games.differ import Difference, Mechanic, difference, mechanics
from evolvent.tasks.worlds.grid_games.language import Game, GameError
from evolvent.tasks.worlds.grid_games.world import game, played

AGAINST = ("lineage", "archive")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass
class Proxy:
    """Judge: the reward `value` of a version is the proxy reward against its parent (see `reward`).

    against  what mechanics are novel relative to: the `lineage`, or all that the `archive` began with, too
    prompts  folder with a `judge.md` of your own

    The creativity score is the model's; where there is none, or its answer has no number, it is `surface_score`.
    """

    weights: Any = Weights
    against: str = "lineage"
    prompts: str = ""
    evaluates: ClassVar = True  # programs, not answers

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge what the round has made."""
        rows = [t for g in groups for t in g.valid if "verdict" in t.info]
        for t, score in zip(rows, self.scores(rows, s), strict=True):
            signals, realised, found = self.signals(t, score, s)
            t.info |= {"signals": signals, "realised": realised, "difference": found, "score": score}
            t.reward("value", self.weights(signals), "proxy")

    def signals(self, t: Trajectory, score: float, s: Step) -> tuple[Signals, Realised, Difference]:
        """What the reward is made of."""
        job, verdict = t.problem.data, t.info["verdict"]
        before, after = game(job["before"]), verdict.game
        report = played(job["before"], "train", games_of(s.role).effort)
        found = difference(before, after) if after else Difference()
        plan = plan_of(job["plan"])
        realised = compared(plan, before, after, found, verdict.report.fired)
        changed = reward.structural(found)
        made = Signals(
            structural=changed,
            realised=realised.share if plan.planned else 0.0,
            novel=reward.novelty(found, self.known(job["lineage"], s)),
            creative=reward.creative(score),
            playable=reward.playable(verdict.score, verdict.report),
            cosmetic=float(changed < reward.NEGLIGIBLE),
            regression=reward.regression(reward.abilities(before, report), reward.abilities(after, verdict.report)),
            sanity=reward.sanity(after, verdict.report),
            runs=float(verdict.report.runs),
        )
        return made, realised, found

    def known(self, lineage: str, s: Step) -> set[Mechanic]:
        """The mechanics that new ones are compared with."""
        texts = versions_of(s.role).lineage(games_of(s.role), lineage)
        found = {m for one in map(readable, texts) if one for m in mechanics(one)}
        return found | {m for e in begun() for m in e.forms} if self.against == "archive" else found

    def scores(self, rows: Sequence[Trajectory], s: Step) -> list[float]:
        """Scores from 1 to 10."""
        surface = [reward.surface_score(t.info["program"]) for t in rows]
        if isinstance(s.role.policy, AbsentPolicy):
            return surface
        texts = [Prompts(self.prompts).render("games/judge", game=t.info["program"]) for t in rows]
        answers = ask_once(texts, rows[0].problem, s, f"judge-{s.round}") if rows else []
        return [
            min(10.0, max(1.0, float(m[0]))) if a.error is None and (m := NUMBER.search(a.completion)) else own
            for a, own in zip(answers, surface, strict=True)
        ]

    def setup(self, role: Role) -> None:
        """A known name, and a prompt that can be read: `UserError`."""
        if self.against not in AGAINST:
            raise unknown("word", self.against, AGAINST, f"judge.against is {' or '.join(AGAINST)}")
        Prompts(self.prompts).check(("games/judge",))


def readable(text: str) -> Game | None:
    """The game of a text, if it is one."""
    try:
        return game(text)
    except GameError:
        return None


def record(t: Trajectory) -> dict[str, Any]:
    """What is kept of an iteration, as plain data."""
    verdict: Verdict = t.info["verdict"]
    plan, realised = t.problem.data["plan"], t.info["realised"]
    return {
        "planned": [e["name"] for e in plan["add"]],
        "realised": list(realised.add),
        "change": list(plan["change"]),
        "new": [str(m) for m in t.info["difference"].new],
        "dropped": [str(m) for m in t.info["difference"].dropped],
        "signals": asdict(t.info["signals"]),
        "score": t.info["score"],
        "reward": t.rewards["value"].value,
        "repairs": t.info["repairs"],
        "issues": list(verdict.issues),
    }
