"""What a run tells while it is under way, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.lineage.descent import best_of
from evolvent.lineage.runs import RunView
from evolvent.run.spec import RunSpec

if TYPE_CHECKING:
    from evolvent.run.assemble import Assembled


@dataclass
class Progress:
    """What a display is told after each step."""

    run: str
    t: int
    share: float  # of the budget that is used
    metrics: Mapping[str, float]
    spent: Mapping[str, float]
    seconds: float


@dataclass
class Best:
    """The best candidate of a search: its number, its value there and when it was evaluated anew (None: it was not),
    and its files or texts by name."""

    candidate: int
    value: float
    anew: float | None
    files: dict[str, str]

    @property
    def text(self) -> str:
        """The program; of several files or texts, all of them one after the other."""
        return "\n".join(self.files.values())


@dataclass
class Result:
    """A finished (or interrupted) run."""

    name: str
    spec: RunSpec
    assembled: Assembled
    view: RunView
    folder: Path
    interrupted: bool = False
    reached: bool = False

    @property
    def policy(self) -> Any:
        """The evolved model."""
        return self.assembled.policy

    @property
    def ledger(self) -> Ledger:
        """What was spent."""
        return self.assembled.system.ledger

    @property
    def curves(self) -> dict[str, list[tuple[int, float]]]:
        """(step, value) of every metric; names have the role before them where there are several."""
        found: dict[str, list[tuple[int, float]]] = {}
        for t, step in sorted(self.view.steps.items()):
            for name, value in flat(step["roles"]).items():
                found.setdefault(name, []).append((t, value))
        return found

    def curve(self, metric: str = "outcome", role: str = "") -> list[tuple[int, float]]:
        """(step, value) of a metric, where it was recorded."""
        return self.view.curve(metric, role)

    @property
    def best(self) -> Best | None:
        """The best program of a search, or its texts; None where no search, or nothing valid, was run."""
        if not self.view.candidates:
            return None
        try:
            one = best_of(self.view)
        except UserError:
            return None
        anew = self.view.rescored["value"] if self.view.rescored else None
        return Best(one["uid"], one["evaluation"]["value"], anew, dict(one["payload"]))

    @property
    def evaluations(self) -> dict[str, Any]:
        """The test split's figures, `start` and `evolved`."""
        return self.view.evaluations


def flat(roles: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Metrics of all roles, with the role's name before each where there are several."""
    return {f"{role}/{k}" if role else k: v for role, metrics in roles.items() for k, v in metrics.items()}
