"""The end of a search: its best programs are evaluated anew."""

from __future__ import annotations

from typing import Any

from evolvent.run.assemble import Assembled
from evolvent.search.archive import Archive
from evolvent.search.rescore import believe


def measure_search(assembled: Assembled) -> list[tuple[str, dict[str, Any]]]:
    """The best of a search evaluated anew, as events; the archive hands out the winner from now on.

    Nothing for recipes without an archive, and where nothing is valid. Charged to the account `evidence`.
    """
    archives = [p for p in assembled.system.parts.values() if isinstance(p, Archive)]
    ledger = assembled.system.ledger
    before = dict(ledger.spent.get("evidence", {}))
    found = believe(assembled.main_role, archives[0].history) if archives else None
    if found is None:
        return []
    archives[0].winner = found["winner"]
    spent = {unit: amount - before.get(unit, 0.0) for unit, amount in ledger.spent["evidence"].items()}
    return [("rescored", {"result": found, "spent": {u: x for u, x in spent.items() if x}})]
