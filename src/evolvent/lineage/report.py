"""The report of a run: one HTML file made from the store alone, which can be sent to somebody and read anywhere."""

from __future__ import annotations

import base64
import hashlib
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from evolvent.bench.statistics import pass_at, t_interval
from evolvent.core.errors import UserError
from evolvent.core.files import whole
from evolvent.core.ledger import UNITS
from evolvent.core.secrets import redact
from evolvent.lineage import charts
from evolvent.lineage.archive_map import archive_map
from evolvent.lineage.charts import Bin, Row, Series
from evolvent.lineage.curves import curves, other_curves
from evolvent.lineage.descent import believed, descent
from evolvent.lineage.diff import paired
from evolvent.lineage.figures import NOTHING
from evolvent.lineage.runs import RunView, read_run
from evolvent.lineage.store import Store
from evolvent.lineage.tree import tree_of
from evolvent.lineage.yields import model_yields, yields

BINS = 16
SCRIPT = Path(__file__).parent / "templates" / "tree.js"  # the only one that the page lets run
CONTROL = {c: 0x2400 + c for c in range(32) if c not in (9, 10)} | {127: 0x2421}  # shown as symbols


def write_report(store: Store, run: str, out: Path | None = None) -> Path:
    """Make the report of a run (again); the path of the file, `report.html` in the run's folder unless given."""
    view = read_run(store, run)
    path = out or store.folder(view.name) / "report.html"
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file, such as {path / 'report.html'}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as part:
        part.write_text(redact(render(view)), encoding="utf-8", errors="replace")
    return path


def render(view: RunView) -> str:
    """The page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader("evolvent.lineage"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["interval"] = interval
    pages.filters["points"] = points
    pages.filters["when"] = lambda t: time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(t))
    pages.filters["amount"] = amount
    pages.filters["tenth"] = tenth
    tree = tree_of(view)
    page = pages.get_template("report.html").render(
        view=view,
        spec=view.spec,
        verdict=verdict(view),
        headline=headline(view),
        interval_chart=before_and_after(view),
        descent=descent(view),
        believed=believed(view.rescored) if view.rescored else "",
        tree=tree,
        script=Markup(SCRIPT.read_text()) if view.candidates else "",
        script_hash=hash_of(SCRIPT.read_text()),
        by_operator=yields(view),
        by_model=model_yields(view),
        archive_map=archive_map(view, {n.uid for n in tree.nodes}),
        curves=curves(view),
        others=other_curves(view),
        pass_at_k=pass_at_k(view),
        lengths=length_chart(view),
        samples=samples(view),
        forgotten=forgotten(view),
        spent=spent(view),
        stages=stages(view),
        errors=errors(view),
        settings=view.recipe.get("values", []),
    )
    return page.translate(CONTROL)


def hash_of(script: str) -> str:
    """What a page's policy calls a script by, so that nothing else runs, whatever a candidate's text says."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def interval(value: Any) -> Markup:
    """`46.2 % [41.8, 50.6]`; nothing for None."""
    if value is None:
        return Markup("")
    mean, low, high = three(value)
    if not math.isfinite(mean):
        return Markup(NOTHING)
    return Markup(f'<b>{tenth(mean)} %</b> <span class="ci">[{tenth(low)}, {tenth(high)}]</span>')


def points(value: Any) -> Markup:
    """`+23.4 points [+19.0, +27.8]`: a difference of shares; nothing for None."""
    if value is None:
        return Markup("")
    mean, low, high = three(value)
    kind = "up" if low > 0 else "down" if high < 0 else "open"
    return Markup(
        f'<b class="{kind}">{tenth(mean, "+")}</b> <span class="ci">[{tenth(low, "+")}, {tenth(high, "+")}]</span>'
    )


def tenth(share: float, sign: str = "") -> str:
    """A share in per cent with one digit; never `-0.0`."""
    return f"{round(100 * share, 1) + 0.0:{sign}.1f}"


def three(value: Any) -> tuple[float, float, float]:
    """Mean, low and high of a stored interval."""
    mean, low, high = value.values() if isinstance(value, Mapping) else value
    return float(mean), float(low), float(high)


def amount(value: float) -> str:
    """A count for reading."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


# --- what was gained ---


def verdict(view: RunView) -> dict[str, str] | None:
    """One sentence: what happened to sampled and greedy accuracy, and whether that could be chance."""
    a, b = view.evaluations.get("start"), view.evaluations.get("evolved")
    if not a or not b:
        return None
    parts, kinds = [], []
    for name, key in (("sampled", "mean"), ("greedy", "greedy")):
        difference = paired(a, b, key)
        if difference is None:
            continue
        mean, low, high = difference
        if low > 0:
            kind, word = "better", "rose by"
        elif high < 0:
            kind, word = "worse", "fell by"
        else:
            kind, word = "open", "cannot be told from no change:"
        value = f"{abs(100 * mean):.1f} points" if kind != "open" else f"{100 * mean:+.1f} points"
        parts.append(f"{name} accuracy {word} {value} [{100 * low:+.1f}, {100 * high:+.1f}]")
        kinds.append(kind)
    if not parts:
        return None
    kind = "better" if "better" in kinds and "worse" not in kinds else "worse" if "worse" in kinds else "open"
    text = f"On {a['evaluation']['problems']} problems that training never saw, {'; '.join(parts)}."
    return {"kind": kind, "text": text}


def headline(view: RunView) -> list[dict[str, Any]]:
    """Rows of the main table: figure, before, after, paired difference where there is one."""
    a, b = view.evaluations.get("start"), view.evaluations.get("evolved")
    if not a and not b:
        return []
    e, f = (x["evaluation"] if x else None for x in (a, b))
    k = (e or f or {})["k"]
    rows: list[dict[str, Any]] = []

    def row(name: str, key: str, note: str = "", values: str | None = None) -> None:
        difference = paired(a, b, values) if a and b and values else None
        rows.append(
            {
                "name": name,
                "note": note,
                "before": e[key] if e else None,
                "after": f[key] if f else None,
                "difference": difference,
            }
        )

    row("greedy", "greedy", values="greedy")
    row("sampled at temperature 1", "sampled", values="mean")
    row(f"pass@{k}", "pass_at_k", f"at least one of {k} samples is right")
    row(f"majority of {k}", "majority_at_k", "control: voting, without a verifier")
    if a:
        temperature = "greedy" if a["best_temperature"] == 0 else f"temperature {a['best_temperature']}"
        note = f"control: {temperature}, chosen on the gate split"
        name = "start model at its best temperature"
        rows.append({"name": name, "note": note, "before": a["at_best"], "after": None, "difference": None})
    row(f"best of {k}", "pass_at_k", "upper reference: needs the verifier at answer time")
    return rows


def before_and_after(view: RunView) -> Any:
    """The main table as a picture."""
    rows = []
    for row in headline(view):
        marks = [(s, *three(row[s])) for s in ("before", "after") if row[s] is not None]
        marks = [m for m in marks if math.isfinite(m[1])]
        if marks and not row["name"].startswith("best of"):
            rows.append(Row(row["name"], marks))
    return charts.interval_chart(rows, "Test accuracy before and after, with controls") if rows else ""


def pass_at_k(view: RunView) -> Any:
    """pass@k for k = 1, 2, ... of the start and the evolved model, with bands."""
    series = []
    for name, style in (("start", "before"), ("evolved", "after")):
        found = view.evaluations.get(name)
        if not found:
            continue
        k_most = found["evaluation"]["k"]
        cases = [
            (c, n) for c, n in zip(found["problems"]["right"], found["problems"]["tried"], strict=True) if n >= k_most
        ]
        if len(cases) < 2:
            continue
        curve, band = [], []
        for k in range(1, k_most + 1):
            one = t_interval([pass_at(k, [c], n) for c, n in cases])
            curve.append((float(k), one.mean))
            band.append((float(k), max(0.0, one.low), min(1.0, one.high)))
        series.append(Series("before" if name == "start" else "after", style, curve, band, dots=True))
    return charts.line_chart(series, "k, samples a problem", "pass@k before and after", share=True, floor=0.0)


def length_chart(view: RunView) -> Any:
    """How long completions are, and how often those of a length are right."""
    found = {
        n: view.evaluations[n]["lengths"] for n in ("start", "evolved") if view.evaluations.get(n, {}).get("lengths")
    }
    if not found:
        return ""
    lengths = [int(x[0]) for rows in found.values() for x in rows]
    low, size = min(lengths), max(1, -(-(max(lengths) - min(lengths) + 1) // BINS))
    count = (max(lengths) - low) // size + 1
    groups = {}
    for name, rows in found.items():
        total = sum(x[1] for x in rows)
        bins = []
        for i in range(count):
            inside = [x for x in rows if low + i * size <= x[0] < low + (i + 1) * size]
            n = sum(x[1] for x in inside)
            outcome = sum(x[2] for x in inside) / n if n else math.nan
            bins.append(Bin(low + i * size, low + (i + 1) * size - 1, n / total, outcome, int(n)))
        groups[name] = bins
    return charts.length_chart(groups.get("start", []), groups.get("evolved", []), "Length and outcome of completions")


def forgotten(view: RunView) -> list[dict[str, Any]]:
    """Greedy accuracy on other tasks before and after, with the paired difference."""
    a, b = (view.evaluations.get(n, {}).get("remembered", []) for n in ("start", "evolved"))
    after = {row["task"]: row for row in b}
    rows = []
    for row in a:
        other = after.get(row["task"])
        difference = None
        if other and len(other["outcomes"]) == len(row["outcomes"]) >= 2:
            one = t_interval([y - x for x, y in zip(row["outcomes"], other["outcomes"], strict=True)])
            difference = (one.mean, one.low, one.high)
        rows.append(
            {"task": row["task"], "before": row["greedy"], "after": other and other["greedy"], "difference": difference}
        )
    return rows


def samples(view: RunView) -> list[dict[str, Any]]:
    """The shown problems with the trajectories of both models."""
    before, after = view.samples.get("start", []), view.samples.get("evolved", [])
    later = {row["key"]: row for row in after}
    first = before or after
    return [
        {
            "prompt": row["prompt"],
            "category": row["category"],
            "before": row if before else None,
            "after": later.get(row["key"]),
        }
        for row in first
    ]


# --- what it took ---


def spent(view: RunView) -> dict[str, Any]:
    """Rows of units with the amounts of each account; what judges is an evaluator in a search."""
    accounts = view.spent
    names = {unit: (unit.replace("_", " "), text) for unit, text in UNITS.items()}
    if view.candidates:
        names["verifier_calls"] = ("evaluations", "programs evaluated, each on one instance")
        names["verifier_seconds"] = ("CPU seconds", "seconds of the processor in evaluations")
    rows = [
        {"unit": name, "what": text, "amounts": [accounts[a].get(unit, 0.0) for a in accounts]}
        for unit, (name, text) in names.items()
        if any(accounts[a].get(unit) for a in accounts)
    ]
    return {"accounts": list(accounts), "rows": rows}


def stages(view: RunView) -> dict[str, Any] | None:
    """Seconds of each stage of the loop, summed over the steps."""
    totals: dict[str, float] = {}
    for step in view.steps.values():
        for metrics in step["roles"].values():
            for name, value in metrics.items():
                if name.startswith("seconds/"):
                    stage = name.removeprefix("seconds/")
                    totals[stage] = totals.get(stage, 0.0) + value
    if not totals:
        return None
    order = sorted(totals.items(), key=lambda p: -p[1])
    whole_time = sum(totals.values()) or 1.0
    rows = [
        {"stage": s, "seconds": x, "share": x / whole_time, "style": f"p{min(i, 5)}"} for i, (s, x) in enumerate(order)
    ]
    return {"rows": rows, "svg": charts.share_bar(order, "Seconds by stage of the loop")}


def errors(view: RunView) -> list[tuple[str, str, int]]:
    """(when, kind, count), most frequent first."""
    found = [("while training", kind, count) for kind, count in view.errors.items()]
    for name, result in view.evaluations.items():
        when = "measuring the start" if name == "start" else "measuring the evolved model"
        found += [(when, kind, count) for kind, count in result.get("errors", {}).items()]
    return sorted(found, key=lambda row: -row[2])
