"""The runtime validator: the checker and the bot look at a version, and what they find is mended, up to n times."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from evolvent.core.step import Step
from evolvent.search.games.versions import games_of
from evolvent.tasks.worlds.grid_games import check
from evolvent.tasks.worlds.grid_games.bot import Report
from evolvent.tasks.worlds.grid_games.language import Game, GameError
from evolvent.tasks.worlds.grid_games.world import checked, game, played


@dataclass(frozen=True)
class Verdict:
    """What the validator says of a text: its game (None if nobody can read it), findings, and the bot's report."""

    text: str
    game: Game | None
    findings: tuple[check.Finding, ...]
    report: Report

    @property
    def score(self) -> float:
        """The checker's; 0 for what nobody can read."""
        return check.score(list(self.findings)) if self.game else 0.0

    @property
    def issues(self) -> tuple[str, ...]:
        """Everything that is wrong, for whoever mends it."""
        found = [f.text for f in self.findings] or ([self.report.problem] if self.report.problem else [])
        if (fault := self.report.fault) is not None:
            found.append(f"rules[{fault.rule}]: {fault.what}" if fault.rule >= 0 else fault.what)
        elif self.game and not self.report.problem and not self.report.won:
            at_once = any(p.at_once for p in self.report.levels)
            found.append("it is over before anybody has moved" if at_once else "the bot finds no way to win any level")
        return tuple(found)


def looked_at(text: str, s: Step) -> Verdict:
    """Have a version checked and played on its own levels; one evaluation of the budget."""
    before = time.process_time()
    report = played(text, "train", games_of(s.role).effort)
    try:
        one, findings = game(text), checked(text)
    except GameError:
        one, findings = None, ()
    s.role.ledger.charge(verifier_calls=1, verifier_seconds=time.process_time() - before)
    return Verdict(text, one, findings, report)


Mend = Callable[[Verdict, int], str | None]


def validated(text: str, mend: Mend, most: int, s: Step) -> tuple[Verdict, int]:
    """What the validator says in the end, and how many repairs there were; `mend` may give up with None.

    Of all texts on the way it is the last; what cannot be mended stays as it is.
    """
    verdict, repairs = looked_at(text, s), 0
    while repairs < most and not verdict.report.runs:
        made = mend(verdict, repairs)
        if made is None or made == verdict.text:
            break
        repairs += 1
        verdict = looked_at(made, s)
    return verdict, repairs
