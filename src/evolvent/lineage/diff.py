"""What differs between two runs, or two versions: settings, recipes, figures, spending, weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evolvent.bench.statistics import t_interval
from evolvent.core.errors import UserError
from evolvent.lineage.descent import best_of, text_of
from evolvent.lineage.runs import RunView, Version, read_run
from evolvent.lineage.store import Store
from evolvent.lineage.versions import chosen, read_weights

FIGURES = {"greedy": "greedy", "sampled": "sampled", "pass@16": "pass_at_k", "majority@16": "majority_at_k"}


def parse_reference(store: Store, text: str) -> tuple[RunView, Version | None]:
    """`RUN` or `RUN:VERSION`; None: the run as a whole."""
    name, colon, number = text.partition(":")
    view = read_run(store, name)
    if not colon:
        return view, None
    if not number.isdigit():
        raise UserError(f"`{text}`: {number or 'nothing'} is no version; write RUN or RUN:VERSION, as in {name}:0")
    return view, view.version(int(number))


def compare(store: Store, a: str, b: str) -> dict[str, Any]:
    """Plain data: what is different, and by how much. Equal things are left out, figures and spending excepted."""
    (one, first), (two, second) = parse_reference(store, a), parse_reference(store, b)
    ends = first or chosen(one, None), second or chosen(two, None)  # a run without a version stands for its head
    return {
        "a": a,
        "b": b,
        "run": differing(described(one), described(two)),
        "environment": differing(one.environment, two.environment),
        "settings": differing(values(one), values(two)),
        "recipes": {"a": patches(one, two), "b": patches(two, one)},
        "figures": figures(one, first, two, second) | (evidence(*ends) if first or second else {}),
        "spent": {
            unit: [spent(one, first).get(unit, 0.0), spent(two, second).get(unit, 0.0)]
            for unit in {**spent(one, first), **spent(two, second)}
        },
        "best": [worth(one), worth(two)] if one.candidates and two.candidates else [],
        "weights": distance(store, one, ends[0], two, ends[1]),
    }


def worth(view: RunView) -> dict[str, Any] | None:
    """The best candidate of a search: its number, its value, and what it is worth when it is evaluated anew."""
    try:
        best = best_of(view)
    except UserError:  # none is valid
        return None
    anew = (view.rescored or {}).get("value")
    return {"candidate": best["uid"], "value": best["evaluation"]["value"], "anew": anew, "program": text_of(best)}


def described(view: RunView) -> dict[str, Any]:
    """The description of a run without its settings."""
    return {k: v for k, v in view.spec.items() if k != "settings"} | {"status": view.status, "steps": len(view.steps)}


def values(view: RunView) -> dict[str, Any]:
    """Path -> value in use."""
    return {row["path"]: row["value"] for row in view.recipe.get("values", [])}


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Keys whose values are not the same, with both; None where one lacks the key."""
    return {k: [a.get(k), b.get(k)] for k in {**a, **b} if a.get(k) != b.get(k)}


def patches(view: RunView, other: RunView) -> list[str]:
    """Operations of recipes that the other run does not have, as `recipe: operation`."""
    theirs = {r["name"] for r in other.recipe.get("recipes", [])}
    mine = [r for r in view.recipe.get("recipes", []) if r["name"] not in theirs]
    return [f"{r['name']}: {op}" for r in mine for op in r["ops"]]


def spent(view: RunView, version: Version | None) -> Mapping[str, float]:
    """What the method had spent, in all or up to a version."""
    steps = [t for t in view.steps if version is None or t < version.step]
    return view.steps[max(steps)]["spent"]["method"] if steps else {}


def figures(one: RunView, first: Version | None, two: RunView, second: Version | None) -> dict[str, Any]:
    """Test figures where they were measured, and the paired difference b - a."""
    found: dict[str, Any] = {}
    a, b = measured(one, first), measured(two, second)
    if a is not None and b is not None:
        for label, key in FIGURES.items():
            pair = [a["evaluation"][key], b["evaluation"][key]]
            found[label] = [[x["mean"], x["low"], x["high"]] for x in pair]
        for label, key in (("greedy", "greedy"), ("sampled", "mean")):
            if difference := paired(a, b, key):
                found[f"{label}, b - a on the same problems"] = difference
    return found


def evidence(a: Version, b: Version) -> dict[str, Any]:
    """What the gate saw of two versions."""
    return {key: [a.evidence.get(key), b.evidence.get(key)] for key in {**a.evidence, **b.evidence}}


def measured(view: RunView, version: Version | None) -> dict[str, Any] | None:
    """The evaluation of a version; of a whole run: that of the evolved model."""
    if version is None:
        return view.evaluations.get("evolved")
    return view.evaluation(version.number)


def paired(a: Mapping[str, Any], b: Mapping[str, Any], key: str) -> list[float] | None:
    """Mean of b - a with its 97.5 % interval, over problems that both were measured on; None if there are none."""
    before = dict(zip(a["problems"]["key"], a["problems"][key], strict=True))
    after = dict(zip(b["problems"]["key"], b["problems"][key], strict=True))
    both = [after[k] - before[k] for k in before if k in after and before[k] is not None and after[k] is not None]
    if len(both) < 2:
        return None
    interval = t_interval(both)
    return [interval.mean, interval.low, interval.high]


def distance(store: Store, one: RunView, first: Version, two: RunView, second: Version) -> dict[str, Any]:
    """How far apart two versions' weights are; `why` says where that cannot be known."""
    same = first.hash == second.hash and first.hash is not None
    try:
        a = read_weights(store, one, first)
        b = a if same else read_weights(store, two, second)
    except UserError as reason:
        return {"same": True} if same else {"why": str(reason)}
    if not a and not b:
        return {"none": True}
    if same:
        return {"same": True}
    if {n: w.shape for n, w in a.items()} != {n: w.shape for n, w in b.items()}:
        return {"why": "the models are not of the same shape"}
    moved = {n: float((b[n].double() - a[n].double()).square().sum()) for n in a}
    size = sum(float(w.double().square().sum()) for w in a.values())
    most = sorted(moved, key=lambda n: -moved[n])[:5]
    total = math.sqrt(sum(moved.values()))
    return {
        "same": total == 0.0,
        "l2": total,
        "relative": total / math.sqrt(size) if size else 0.0,
        "most_changed": {n: math.sqrt(moved[n]) for n in most},
    }
