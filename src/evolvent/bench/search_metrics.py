"""Metrics of a cell of a search, by name. All values are the higher the better, as those of the worlds are.

final.best                          the best value of the search
final.rescored                      the value of the winner evaluated anew, which the search never saw; the seed
                                    program's, where the winner is not valid any more
final.optimism                      how much higher the search thought of the winner
area.best                           mean of the best value so far over the budget, the area under the curve
reach.best@2.5                      budget spent when a value of at least 2.5 was there; if never, the cap
success.best@2.5                    1 if a value of at least 2.5 was there in the end, else 0; over seeds the share
share.valid   share.distinct        of all candidates: those with a value; different normal forms
train.METRIC  late.METRIC           of the steps: mean over all, over the last quarter
spent.UNIT                          of the ledger
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evolvent.core.errors import UserError, nearest
from evolvent.core.ledger import UNITS, Budget

NAMES = ("final.best", "final.rescored", "final.optimism", "area.best", "share.valid", "share.distinct")
AT_LEVEL = ("reach.best@", "success.best@")
OPEN = ("train.", "late.", *AT_LEVEL, "spent.")  # something follows that only the result knows


def check_name(name: str) -> None:
    """`UserError` for what cannot be the name of a metric of a search, before anything is measured."""
    level_is_wrong = name.startswith(AT_LEVEL) and not _is_number(name.partition("@")[2])
    unit_is_wrong = name.startswith("spent.") and name.removeprefix("spent.") not in UNITS
    if (name not in NAMES and not name.startswith(OPEN)) or level_is_wrong or unit_is_wrong:
        known = ", ".join(
            [*NAMES, *(f"{start}VALUE" for start in AT_LEVEL), "train.METRIC", "late.METRIC", "spent.UNIT"]
        )
        raise UserError(f"no metric `{name}` of a search{nearest(name, NAMES)} (there are: {known})")


def search_metric(name: str, result: Mapping[str, Any]) -> float:
    """A metric of a cell's result; `UserError` for names that the result does not have."""
    check_name(name)
    kind, _, what = name.partition(".")
    records, cap = result["records"], Budget.parse(result["cell"]["budget"]).amount
    if kind == "area":
        return area(records, cap)
    if kind in ("reach", "success"):
        level = float(what.partition("@")[2])
        reached = next((spent for spent, _, value in records if value >= level), None)
        return float(reached is not None) if kind == "success" else cap if reached is None else reached
    if kind == "share":
        return float(result["curve"][-1][what])
    if kind == "spent":
        return float(result["spent"][what])
    if kind == "final":
        return final(what, result)
    if what not in result[kind]:
        raise UserError(f"no metric `{name}`{nearest(what, result[kind])} (there are: {', '.join(result[kind])})")
    return float(result[kind][what])


def final(what: str, result: Mapping[str, Any]) -> float:
    """What came of a search. Who hands in what is not valid when it is evaluated anew has the seed program to use."""
    if what == "best":
        return float(result["records"][-1][2])
    winner = result["rescored"]
    value = result["curve"][0]["best"] if winner["value"] is None else winner["value"]
    found = winner["top"][0]["value"] if winner["found"] is None else winner["found"]
    return float(value if what == "rescored" else found - value)


def area(records: list[list[float]], cap: float) -> float:
    """Mean of the best value so far, from the first value to the end of the budget."""
    ends = [*(min(spent, cap) for spent, *_ in records[1:]), cap]
    width = cap - records[0][0]
    if width <= 0:
        return float(records[0][2])
    return sum(value * (end - spent) for (spent, _, value), end in zip(records, ends, strict=True)) / width


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
