"""What a recipe promises, in the terms of the evidence protocol (docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["superiority", "non-inferiority", "equivalence"]


@dataclass(frozen=True)
class Claim:
    """One claim of a recipe: a metric moves in a direction by at least `delta` against every baseline.

    metric      name of a metric that arms of a comparison report (see `evolvent.bench.metrics`)
    direction   up or down
    against     names of the baseline arms
    kind        superiority, non-inferiority or equivalence, tested against `delta` (in the metric's unit)
    scale       `log` for ratios and times: delta is then a difference of natural logarithms
    task        the task that the arms train on, `test` the one that they are tested on (the same if empty)
    budget      for every arm, as in `300 steps`
    arms        what each arm sets beside its recipe: {arm: {path: value}}; `ours` is the recipe itself
    """

    metric: str
    direction: Literal["up", "down"]
    against: tuple[str, ...]
    delta: float
    task: str
    budget: str
    kind: Kind = "superiority"
    scale: Literal["linear", "log"] = "linear"
    test: str = ""
    arms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""
