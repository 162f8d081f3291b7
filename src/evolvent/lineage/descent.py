"""Who is the best of a search, the way from the seed program to it, and what changed from one program to the next."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from evolvent.core.errors import UserError
from evolvent.lineage.runs import RunView

Candidate = Mapping[str, Any]  # as `search.candidate.Candidate.as_dict` wrote it
WHERE = {
    "test": " on the test split",
    "gate": " on the examples that it was chosen by (there are no tests)",
}


def valid(candidate: Candidate) -> bool:
    """Whether it has a value."""
    return candidate["evaluation"]["value"] is not None and candidate["evaluation"].get("complete", True)


def worth(candidate: Candidate) -> bool:
    """Whether it has a value, be it of some instances only, as in searches that never evaluate anybody on all."""
    return candidate["evaluation"]["value"] is not None


def best_of(view: RunView) -> Candidate:
    """The candidate that won when the best were evaluated anew; before that the one that the search names, if it has a
    value, or the best valid one, the first of equals; where nobody was evaluated wholly, of those that were in part.

    `UserError` if there is none.
    """
    if view.rescored and view.rescored["winner"] is not None:
        return view.candidates[view.rescored["winner"]]
    if (uid := chosen(view)) is not None and worth(view.candidates[uid]):
        return view.candidates[uid]
    found = [c for c in view.candidates.values() if valid(c)] or list(filter(worth, view.candidates.values()))
    if not found:
        raise UserError(f"run {view.name} has no valid program; `evolvent report {view.name}` shows what was tried")
    return max(found, key=lambda c: (c["evaluation"]["value"], -c["uid"]))


def believed(rescored: Mapping[str, Any]) -> str:
    """What the best were worth when they were evaluated anew (`search.rescore`), in one sentence."""
    top, where = len(rescored["top"]), WHERE.get(rescored["split"], "")
    if rescored["value"] is None:
        return f"Evaluated anew{where}, nothing of the best {top} is valid."
    times, failed = len(rescored["values"]), rescored["failed"]
    found = f"candidate {rescored['winner']} of the best {top} has {rescored['value']:z.10g}{where}"
    if rescored["same"] and not where:
        return f"Evaluated anew, {found}, as in the search."
    spread = f", mean of {times} from {min(rescored['values']):z.6g} to {max(rescored['values']):z.6g}" * (times > 1)
    luck = "" if rescored["same"] else "; values differ from one evaluation to the next"
    lost = f"; {failed} of {times + failed} evaluations were not valid" * bool(failed)
    return f"Evaluated anew, {found}{spread} (in the search {rescored['found']:z.10g}){luck}{lost}."


def chosen(view: RunView) -> int | None:
    """The number of the best one, where the search has a rule of its own for that."""
    last = view.steps[max(view.steps)]["roles"].values() if view.steps else ()
    found = next((int(metrics["chosen"]) for metrics in last if "chosen" in metrics), None)
    return found if found in view.candidates else None


def text_of(candidate: Candidate) -> str:
    """Its texts, one after the other."""
    return "\n".join(candidate["payload"].values())


def line_of(view: RunView, candidate: Candidate) -> list[Candidate]:
    """From a seed program to a candidate, each the parent of the next one."""
    line = [candidate]
    while line[-1]["parents"]:
        line.append(view.candidates[line[-1]["parents"][0]])
    return line[::-1]


def descent(view: RunView) -> list[dict[str, Any]]:
    """From the seed program to the best one: number, step, operator and value; empty if nobody is valid."""
    try:
        line = line_of(view, best_of(view))
    except UserError:
        return []
    return [{**{k: c[k] for k in ("uid", "step", "operator")}, "value": c["evaluation"]["value"]} for c in line]


def changed(before: str, after: str) -> list[tuple[str, str]]:
    """The lines of a unified diff, without its header, each with its mark: `+`, `-`, `@` or a space."""
    lines = list(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=1))
    return [(line[:1], line) for line in lines[2:]]
