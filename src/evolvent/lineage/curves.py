"""The course of a run as charts: the known metrics with what to read from them, then all others.

Over the steps; the best value of a search over what was spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evolvent.core.ledger import Budget
from evolvent.lineage import charts
from evolvent.lineage.charts import Series
from evolvent.lineage.runs import RunView

# metric, title, in per cent?, what to read from it
CURVES = (
    ("score", "Score", False, "mean of all rewards of the step's trajectories"),
    ("gate/accuracy", "Greedy accuracy on the gate split", True, "the same problems each time"),
    ("outcome", "Share of trajectories that are right", True, "the verifier's verdict, without shaping"),
    ("length", "Tokens a trajectory", False, "written by the policy"),
    ("flat_groups", "Groups without signal", True, "all trajectories of the problem scored the same"),
    ("distinct", "Different answers in a group", True, "share of the answers to a problem"),
    ("truncated", "Trajectories cut by a limit", True, ""),
    ("entropy", "Entropy", False, "of the sampling distribution, nats a token"),
    ("learn/entropy", "Entropy", False, "of the policy while it was trained, nats a token"),
    ("learn/grad_norm", "Gradient norm", False, "before clipping"),
    ("learn/loss", "Loss", False, ""),
    ("learn/clipped", "Tokens outside the clip band", True, ""),
    ("learn/drift", "Drift within a step", False, "old minus new log-prob, mean of tokens"),
    ("errors", "Errors", False, "trajectories left out of the update"),
)
OF_SEARCHES = (
    ("best", "Best value so far", False, "as it was after each step"),
    ("valid", "Valid candidates", True, "of those that the step evaluated"),
)
EVALUATIONS = "verifier_calls"  # what a search spends in any case
AXES = {
    "steps": "step",
    EVALUATIONS: "evaluations spent",
    "sampled": "tokens sampled",
    "trained": "tokens trained",
    "money": "US dollars spent",
}
MEASURED = ("money", "seconds", "verifier_seconds")  # units that are no counts
FROM_ZERO = {
    "length",
    "flat_groups",
    "distinct",
    "truncated",
    "learn/grad_norm",
    "entropy",
    "learn/entropy",
    "learn/clipped",
    "errors",
}
STYLES = ("after", "before", "third", "fourth")


def curves(view: RunView) -> list[dict[str, Any]]:
    """The known metrics that were recorded, as charts."""
    found = []
    for metric, title, share, note in OF_SEARCHES if view.candidates else CURVES:
        lines = {role: view.curve(metric, role) for role in view.roles}
        lines = {role: points for role, points in lines.items() if points}
        if not lines or (metric in ("errors", "truncated") and not any(y for p in lines.values() for _, y in p)):
            continue
        if metric == "outcome" and all(lines[r] == view.curve("score", r) for r in lines):
            continue  # without shaping the score says the same
        found.append(chart(view, metric, title, lines, share, note))
    return found


def other_curves(view: RunView) -> list[dict[str, Any]]:
    """Every other metric that changed, times left out."""
    known = {c[0] for c in (*CURVES, *OF_SEARCHES)} | {"gate/accepted", "trajectories", "score", "outcome"}
    names = dict.fromkeys(m for s in view.steps.values() for r in s["roles"].values() for m in r)
    found = []
    for metric in sorted(n for n in names if n not in known and not n.startswith("seconds/")):
        lines = {role: view.curve(metric, role) for role in view.roles}
        lines = {role: points for role, points in lines.items() if len({y for _, y in points}) > 1}
        if lines:
            found.append(chart(view, metric, metric, lines, False, ""))
    return found


def chart(view: RunView, metric: str, title: str, lines: Mapping[str, Any], share: bool, note: str) -> dict[str, Any]:
    """One chart with what stands around it."""
    gate, best = metric == "gate/accuracy", bool(view.candidates) and metric == "best"
    unit = spend_unit(view) if best else "steps"
    after = spent_by_step(view, unit)
    series = [
        Series(
            role or title,
            STYLES[place % len(STYLES)],
            [(after[t], float(y)) for t, y in points if t in after],
            smooth=not gate and not best,
            dots=gate,
            stairs=best,
        )
        for place, (role, points) in enumerate(lines.items())
    ]
    marks = [(float(v.step), "refused") for v in view.versions if v.verdict == "refused"] if gate else []
    marks += [(after.get(t - 1, 0.0), word) for t, word in went_back(view)]
    svg = charts.line_chart(
        series,
        AXES.get(unit, unit.replace("_", " ")),
        summary(title, lines, exact=best),
        share,
        0.0 if metric in FROM_ZERO else None,
        marks,
        0.0,
        unit not in MEASURED,
    )
    legend = [(s.name, s.style) for s in series] if len(series) > 1 else []
    return {"title": title, "note": note, "svg": svg, "legend": legend}


def spend_unit(view: RunView) -> str:
    """The unit over which a search is drawn: that of its budget; evaluations, where that is steps, which cost more in
    one search than in another, or where nothing of it was spent."""
    unit = Budget.parse(view.spec["budget"]).unit
    return unit if unit != "steps" and any(spent_by_step(view, unit).values()) else EVALUATIONS


def spent_by_step(view: RunView, unit: str) -> dict[int, float]:
    """What the method had spent of a unit after each step; of `steps` their number, as far as it is known."""
    if unit == "steps":
        return {t: float(t + 1) for t in view.steps}
    return {t: float(data["spent"]["method"].get(unit, 0.0)) for t, data in view.steps.items() if "spent" in data}


def went_back(view: RunView) -> list[tuple[int, str]]:
    """Steps at which the run went on from an earlier version."""
    found = []
    for rollback in view.rollbacks:
        step = next((s for event, s in view.resumed if event > rollback.event), None)
        if step is not None:
            found.append((step, f"back to version {rollback.to}"))
    return found


def summary(title: str, lines: Mapping[str, Sequence[tuple[int, float]]], exact: bool) -> str:
    """A curve in words, for readers who do not see it: where it begins and ends, `exact` or by means of tenths."""
    parts = []
    for role, found in lines.items():
        size = 1 if exact else max(1, len(found) // 10)
        first = sum(y for _, y in found[:size]) / size
        last = sum(y for _, y in found[-size:]) / size
        parts.append(f"{role + ' ' if role else ''}from {charts.number(first)} to {charts.number(last)}")
    return f"{title}: {', '.join(parts)}"
