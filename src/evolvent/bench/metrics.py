"""Metrics of a cell, by name.

test.sampled   test.greedy   test.pass@16   test.length   final: mean of the last three evaluations
best.sampled                                              best evaluation of the run
drop.sampled                                              best minus final: how much was lost again
gain.sampled                                              final minus start
probe.NAME                                                mean of a probe over the evaluations after the start
train.METRIC   late.METRIC                                mean over all steps, over the last quarter
reach.sampled@0.5                                         budget at the first evaluation of at least 0.5, else the cap
spent.UNIT                                                of the ledger

Of an evaluation in which everything failed they are nan. Those of searches are in `bench.search_metrics`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from evolvent.bench.search_metrics import search_metric
from evolvent.core.errors import UserError, nearest
from evolvent.core.ledger import UNITS, Budget

LAST = 3  # evaluations that make the final score


def metric(name: str, result: Mapping[str, Any]) -> float:
    """A metric of a cell's result; `UserError` for names that the result does not have."""
    if "records" in result:
        return search_metric(name, result)
    kind, _, what = name.partition(".")
    curve = result["curve"]
    after = curve[1:] or curve
    if kind in ("test", "best", "drop", "gain"):
        values = [_get(point, what, name) for point in curve]
        final = float(np.mean(values[-min(LAST, max(1, len(values) - 1)) :]))
        best = max((v for v in values if not math.isnan(v)), default=math.nan)
        return {"test": final, "best": best, "drop": best - final, "gain": final - values[0]}[kind]
    if kind == "probe":
        return float(np.mean([_get(point, name, name) for point in after]))
    if kind in ("train", "late"):
        return _get(result[kind], what, name)
    if kind == "reach":
        what, _, level = what.partition("@")
        for point in curve:
            if _get(point, what, name) >= float(level):
                return max(1.0, point["spent"])
        return Budget.parse(result["cell"]["budget"]).amount
    if kind == "spent" and what in UNITS:
        return float(result["spent"][what])
    raise UserError(f"no metric `{name}`{nearest(name, ['test.sampled', 'test.greedy', 'train.outcome'])}")


def _get(values: Mapping[str, float], what: str, name: str) -> float:
    if what not in values:
        raise UserError(f"no metric `{name}`{nearest(what, values)} (there are: {', '.join(sorted(values))})")
    return float(values[what])


def parts_needed(names: list[str]) -> tuple[int, tuple[str, ...]]:
    """The k of pass@k and the probes that metrics need."""
    k, probes = 1, []
    for name in names:
        kind, _, what = name.partition(".")
        if kind == "probe":
            probes.append(what)
        if "pass@" in what:
            k = max(k, int(what.split("pass@")[1].split("@")[0]))
        if what == "distinct":
            k = max(k, 16)
    return k, tuple(dict.fromkeys(probes))
