"""Experience memory: what each task has taught, and what operators make of it (EvoMAS, arXiv 2602.06511)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.role import Role
from evolvent.search.teams.edits import Edit, drawn


@dataclass
class Experience:
    """One entry for each task: {task, best, value, lesson, edits}. `edits` has [label of the fault, kind of edit, what
    the child was better than its parent], of every mutation of that task.

    recall  how often a mutation follows experience where there is any with its fault; 0 switches the memory off
    recent  how many entries a model is shown
    """

    recall: float = 0.5
    recent: int = 5
    entries: list[dict[str, Any]] = field(default_factory=list, init=False)

    def check(self, system: object) -> None:
        """Settings in range."""
        if not 0 <= self.recall <= 1 or self.recent < 0:
            raise UserError("propose.memory.recall goes from 0 to 1, and propose.memory.recent is at least 0")

    def add(self, task: str, best: int, value: float, lesson: str, edits: Sequence[tuple[str, Edit, float]]) -> None:
        """What a task has taught."""
        rows = [[label, list(edit.kind), gain] for label, edit, gain in edits]
        self.entries.append({"task": task, "best": best, "value": value, "lesson": lesson, "edits": rows})

    def gains(self, label: str) -> dict[tuple[str, str, str], float]:
        """The mean gain of each kind of edit at a fault, over all tasks."""
        rows: dict[tuple[str, str, str], list[float]] = {}
        for entry in self.entries:
            for fault, kind, gain in entry["edits"]:
                if fault == label:
                    rows.setdefault((kind[0], kind[1], kind[2]), []).append(gain)
        return {kind: sum(gains) / len(gains) for kind, gains in rows.items()}

    def advice(self, label: str, rng: np.random.Generator) -> tuple[str, str, str] | None:
        """A kind of edit that has helped against a fault, in proportion to how much; None without such experience, or
        where it is not asked."""
        if rng.random() >= self.recall:
            return None
        good = {kind: gain for kind, gain in self.gains(label).items() if gain > 0}
        return drawn(list(good), list(good.values()), rng) if good else None

    def best_for(self, task: str) -> list[int]:
        """Whoever was best at such a task, the latest last."""
        return [entry["best"] for entry in self.entries if entry["task"] == task]

    def told(self, task: str) -> list[str]:
        """Lessons for a model: those of the same task and the latest, the oldest first."""
        mine = [e for e in self.entries if e["task"] == task][-self.recent :] if self.recent else []
        others = [e for e in self.entries[-self.recent :] if e not in mine] if self.recent else []
        return [f"{e['task']} (value {e['value']:.3f}): {e['lesson']}" for e in (*others, *mine)]

    def state_dict(self) -> dict[str, Any]:
        """All entries."""
        return {"entries": [dict(e) for e in self.entries]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.entries = [dict(e) for e in state["entries"]]


def experience_of(role: Role) -> Experience | None:
    """The memory of a role, if it has one."""
    return next((part for part in role.parts.values() if isinstance(part, Experience)), None)
