"""The proxy reward of a version of a game: what changed in its mechanics, rather than what a judge thinks of it.

    reward =  0.25 structural mechanic change + 0.20 mechanic realisation + 0.20 relative mechanic novelty
            + 0.15 (creativity - 3) / 7 + 0.10 runtime playability - 0.15 cosmetic only - 0.10 regression
    times 0.25 if playability sanity < 0.6, times 0.5 if the runtime test fails

arXiv 2604.19926, equations 10 and 11; both gates may apply. Its weights and gates are as given there, what is measured
behind each name is said at `Signals`: the report leaves most of it open, and measures pages in a browser. A negative
sum is gated like any other, and so comes nearer to 0. The project's page mentions a code that takes 2 sum - 0.3; that
is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from evolvent.core.errors import UserError
from evolvent.tasks.worlds.grid_games.bot import Report
from evolvent.tasks.worlds.grid_games.differ import Difference, Mechanic, similarity
from evolvent.tasks.worlds.grid_games.language import Game

ENOUGH = 6.0  # mechanics that are new (or twice as many that are changed) are all the structural change there can be
NEGLIGIBLE = 0.05  # structural change below which a version is cosmetic
FAILS = 0.2  # of the validator's score: what a fault costs, and not being winnable
PARTIAL = {"changed": 0.5, "dropped": 0.25}  # of a new mechanic


@dataclass(frozen=True)
class Signals:
    """What the reward is made of, each from 0 to 1.

    structural  (new + changed / 2 + dropped / 4) / 6 mechanics, at most 1, by the differ
    realised    planned mechanics against realised ones (`plan.Realised.share`)
    novel       mean over new and changed mechanics of 1 - similarity to the most similar one known
    creative    (score - 3) / 7, of the judge's score from 1 to 10
    playable    the validator's score: 1, less 0.2 an error, 0.05 a warning, 0.2 a fault, 0.2 if no level can be won
    cosmetic    1 if structural change is below 0.05
    regression  share of what the parent could do that the version cannot: be read, move, be won, be lost, fire rules
    sanity      share of five checks that hold: it starts and has no fault, the player can move on every level, a level
                can be won, not all random plays win, half of the rules fire
    runs        1 if the runtime test was passed: no fault, and a level can be won
    """

    structural: float = 0.0
    realised: float = 0.0
    novel: float = 0.0
    creative: float = 0.0
    playable: float = 0.0
    cosmetic: float = 0.0
    regression: float = 0.0
    sanity: float = 0.0
    runs: float = 0.0


@dataclass
class Weights:
    """Weights and gates, by the names of signals. `sane` is the threshold of sanity, `insane` and `failed` factors."""

    structural: float = 0.25
    realised: float = 0.20
    novel: float = 0.20
    creative: float = 0.15
    playable: float = 0.10
    cosmetic: float = 0.15
    regression: float = 0.10
    sane: float = 0.6
    insane: float = 0.25
    failed: float = 0.5

    def __call__(self, s: Signals) -> float:
        """The reward."""
        total = (
            self.structural * s.structural + self.realised * s.realised + self.novel * s.novel
            + self.creative * s.creative + self.playable * s.playable
            - self.cosmetic * s.cosmetic - self.regression * s.regression
        )  # fmt: skip
        soft, hard = self.insane, self.failed
        return total * (soft if s.sanity < self.sane else 1.0) * (1.0 if s.runs else hard)

    def check(self, system: object) -> None:
        """Weights that are not negative: `UserError`."""
        for f in fields(self):
            if not getattr(self, f.name) >= 0:
                raise UserError(f"judge.weights.{f.name} must be at least 0, got {getattr(self, f.name)}")

    def as_dict(self) -> dict[str, float]:
        """Plain data."""
        return asdict(self)


def structural(found: Difference) -> float:
    """How much of the mechanics has changed."""
    amount = len(found.new) + PARTIAL["changed"] * len(found.changed) + PARTIAL["dropped"] * len(found.dropped)
    return min(1.0, amount / ENOUGH)


def novelty(found: Difference, known: Iterable[Mechanic]) -> float:
    """How unlike all known mechanics those are that are new or changed; 0 where there are none."""
    made = [*found.new, *(b for a, b in found.changed if a != b)]
    pool = list(known)
    each = [1.0 - max((similarity(m, k) for k in pool), default=0.0) for m in made]
    return sum(each) / len(each) if each else 0.0


def creative(score: float) -> float:
    """A judge's score from 1 to 10 as a signal."""
    return min(1.0, max(0.0, (score - 3.0) / 7.0))


def playable(checked: float, report: Report) -> float:
    """The validator's score, of the checker's and the bot's report."""
    return max(0.0, checked - FAILS * (report.fault is not None) - FAILS * (not report.won > 0))


def sanity(game: Game | None, report: Report) -> float:
    """Share of the checks that hold."""
    if game is None or report.problem:
        return 0.0
    starts = report.fault is None and not any(p.at_once for p in report.levels)
    half = 2 * len(report.fired) >= len(game.rules)
    return sum((starts, report.moved, report.won > 0, report.luck < 1.0, half)) / 5


def abilities(game: Game | None, report: Report) -> dict[str, bool]:
    """What a version can do."""
    return {
        "read": game is not None and not report.problem,
        "move": report.moved,
        "win": report.won > 0,
        "lose": report.losable,
        "fire": bool(report.fired),
    }


def regression(before: dict[str, bool], after: dict[str, bool]) -> float:
    """Share of what the parent could do that the version cannot."""
    could = [name for name, able in before.items() if able]
    return sum(not after[name] for name in could) / len(could) if could else 0.0


def surface_score(text: str) -> float:
    """Stands for a model's score where there is none: from 1 to 10, by the amount and the variety of text alone.

        1 + 9 (min(1, different words / 120) + min(1, characters / 4000)) / 2

    It looks at everything that is written, rules included, and at nothing that happens.
    """
    words = {w.strip(".,;:!?'\"[]{}()").lower() for w in text.split()} - {""}
    return 1.0 + 9.0 * (min(1.0, len(words) / 120) + min(1.0, len(text) / 4000)) / 2
