"""The end of a search: its best programs are evaluated anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evolvent.core.ledger import Ledger
from evolvent.run.assemble import Assembled
from evolvent.run.notes import search_archive
from evolvent.search.rescore import believe


def measure_search(assembled: Assembled) -> list[tuple[str, dict[str, Any]]]:
    """The best of a search evaluated anew, as events; the archive hands out the winner from now on.

    The figure is said to be of the split `gate` where the task has no tests, so that the winner was chosen by the same
    examples. Nothing for recipes without an archive, and where nothing is valid. Charged to the account `evidence`.
    """
    archive, ledger = search_archive(assembled), assembled.system.ledger
    spent = spent_from_now(ledger)
    found = believe(assembled.main_role, archive.history) if archive else None
    if archive is None or found is None:
        return []
    archive.winner = found["winner"]
    if not getattr(assembled.task, "tested", True):
        found["split"] = found["choice"]  # whose examples took the place of tests
    return [("rescored", {"result": found, "spent": spent()})]


def spent_from_now(ledger: Ledger) -> Callable[[], dict[str, float]]:
    """A function that says what has been charged to the account `evidence` since, by unit."""
    before = dict(ledger.spent.get("evidence", {}))

    def since() -> dict[str, float]:
        found = {unit: amount - before.get(unit, 0.0) for unit, amount in ledger.spent.get("evidence", {}).items()}
        return {unit: amount for unit, amount in found.items() if amount}

    return since
