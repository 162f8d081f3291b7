"""What a recipe promises, in the terms of the evidence protocol (docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget

Kind = Literal["superiority", "non-inferiority", "equivalence"]
MOST_TRIED = 5  # configurations of an arm on the tuning seeds


@dataclass(frozen=True)
class Component:
    """One tested statement: our metric against every baseline's.

    metric     of a cell, by name (see `evolvent.bench.metrics`)
    direction  up or down: which way is better
    delta      the least effect that counts (superiority), or the margin (non-inferiority, equivalence), in the
               metric's unit; at most half the effect that is expected
    against    names of baseline arms
    scale      `log` for ratios and times: delta is then a difference of natural logarithms
    """

    metric: str
    direction: Literal["up", "down"]
    delta: float
    against: tuple[str, ...]
    kind: Kind = "superiority"
    scale: Literal["linear", "log"] = "linear"

    def __post_init__(self) -> None:
        if not self.against:
            raise UserError(f"the claim about {self.metric} names no baseline; say what it is compared with")
        if self.direction not in ("up", "down") or self.kind not in get_args(Kind):
            raise UserError(f"the claim about {self.metric}: no direction `{self.direction}` or kind `{self.kind}`")
        if not self.delta > 0:
            raise UserError(f"the claim about {self.metric} needs a least effect above 0, got delta={self.delta}")


@dataclass(frozen=True)
class Claim:
    """A claim holds if all its components hold.

    text    what is claimed, in words
    task    that all arms train on; `test` is the one they are tested on (the same if empty)
    budget  of every arm, as in `300 steps`
    common  settings of all arms; `arms` what each has beside them: {arm: {"recipe": ..., path: value}}. Our arm is
            `ours`; a baseline without an entry is the recipe of its name.
    tune    configurations tried for every arm on the tuning seeds, the best by `tune_by` being used
    evals   evaluations on the way, on `problems` of the test split; the last three make the final score
    """

    text: str
    components: tuple[Component, ...]
    task: str
    budget: str
    test: str = ""
    common: Mapping[str, Any] = field(default_factory=dict)
    arms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tune: tuple[Mapping[str, Any], ...] = ()
    tune_by: str = "test.sampled"
    model: str = "tiny"
    problems: int = 1000
    evals: int = 10

    def __post_init__(self) -> None:
        Budget.parse(self.budget)
        if not self.components:
            raise UserError(f"the claim `{self.text}` has no component, so nothing could refute it")
        if len(self.tune) > MOST_TRIED:
            raise UserError(f"{len(self.tune)} configurations to tune; the protocol allows {MOST_TRIED}")

    @property
    def baselines(self) -> tuple[str, ...]:
        """All arms that are compared with ours."""
        return tuple(dict.fromkeys(name for c in self.components for name in c.against))


def claim(text: str, *components: Component, task: str, budget: str, **more: Any) -> Claim:
    """A claim with one or more components."""
    return Claim(text, components, task, budget, **more)


def up(metric: str, delta: float, *against: str, **more: Any) -> Component:
    """Our metric is higher."""
    return Component(metric, "up", delta, against, **more)


def down(metric: str, delta: float, *against: str, **more: Any) -> Component:
    """Our metric is lower."""
    return Component(metric, "down", delta, against, **more)
