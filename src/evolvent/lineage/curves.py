"""The course of a run as charts: the known metrics with what to read from them, then all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    ("best", "Best value so far", False, ""),
    ("valid", "Valid candidates", True, "of those that the step evaluated"),
)
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
    gate = metric == "gate/accuracy"
    series = [
        Series(
            role or title,
            STYLES[place % len(STYLES)],
            [(float(t + 1), float(y)) for t, y in points],
            smooth=not gate,
            dots=gate,
        )
        for place, (role, points) in enumerate(lines.items())
    ]
    marks = [(float(v.step), "refused") for v in view.versions if v.verdict == "refused"] if gate else []
    svg = charts.line_chart(
        series,
        "step",
        summary(title, lines),
        share,
        0.0 if metric in FROM_ZERO else None,
        [*marks, *went_back(view)],
        0.0,
    )
    legend = [(s.name, s.style) for s in series] if len(series) > 1 else []
    return {"title": title, "note": note, "svg": svg, "legend": legend}


def went_back(view: RunView) -> list[tuple[float, str]]:
    """Steps at which the run went on from an earlier version."""
    found = []
    for rollback in view.rollbacks:
        step = next((s for event, s in view.resumed if event > rollback.event), None)
        if step is not None:
            found.append((float(step), f"back to version {rollback.to}"))
    return found


def summary(title: str, lines: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """A curve in words, for readers who do not see it."""
    parts = []
    for role, found in lines.items():
        size = max(1, len(found) // 10)
        first = sum(y for _, y in found[:size]) / size
        last = sum(y for _, y in found[-size:]) / size
        parts.append(f"{role + ' ' if role else ''}from {charts.number(first)} to {charts.number(last)}")
    return f"{title}: {', '.join(parts)}"
