"""What those who write candidates gave: by operator, and by model where several wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evolvent.lineage.descent import Candidate, valid
from evolvent.lineage.runs import RunView

NOBODY = "no model"  # the seed program, and what rules made


@dataclass
class Yield:
    """Counts of one operator or model.

    made      candidates
    children  of these, who have a parent; a seed program has none
    valid     with a value, evaluated wholly
    useful    valid children that are better than their parent
    records   better than all before
    usd       US dollars for the answers that became candidates; None where no price is known
    """

    name: str
    made: int = 0
    children: int = 0
    valid: int = 0
    useful: int = 0
    records: int = 0
    usd: float | None = None

    @property
    def share(self) -> float | None:
        """Useful ones of all children; None where there are no children."""
        return self.useful / self.children if self.children else None

    @property
    def price(self) -> float | None:
        """US dollars for a useful child; None where there is none, or no price is known."""
        return None if self.usd is None or not self.useful else self.usd / self.useful


def operator_of(candidate: Candidate) -> str:
    """What made it."""
    return str(candidate["operator"])


def model_of(candidate: Candidate) -> str:
    """The model that wrote it, as its notes say: they do where several models write."""
    return str(candidate.get("notes", {}).get("model", NOBODY))


def yields(view: RunView, of: Callable[[Candidate], str] = operator_of) -> list[Yield]:
    """A row for each operator, or whatever else `of` says of a candidate; who made most comes first."""
    rows: dict[str, Yield] = {}
    top = float("-inf")
    for _, c in sorted(view.candidates.items()):
        row = rows.setdefault(of(c), Yield(of(c)))
        row.made += 1
        row.children += bool(c["parents"])
        if (usd := c.get("notes", {}).get("usd")) is not None:
            row.usd = (row.usd or 0.0) + usd
        if not valid(c):
            continue
        value = c["evaluation"]["value"]
        row.valid += 1
        if c["parents"]:
            before = view.candidates[c["parents"][0]]["evaluation"]["value"]
            row.useful += before is None or value > before  # whoever mends what is not valid has made it better
        row.records += value > top
        top = max(top, value)
    return sorted(rows.values(), key=lambda r: -r.made)


def model_yields(view: RunView) -> list[Yield]:
    """A row for each model; empty where no candidate says who wrote it, since there was one model or none."""
    rows = yields(view, model_of)
    return [] if all(r.name == NOBODY for r in rows) else rows
