"""Gates: measured results that are outside of bounds are not believed, and count as failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evolvent.core.errors import UserError
from evolvent.core.records import Group
from evolvent.core.step import Step
from evolvent.tasks.evaluation import Evaluation, invalid


@dataclass
class Gates:
    """Around a judge: a valid candidate whose `value`, or any other metric, is below `least` or above `most` becomes
    one that is not valid, of the given `status`; it has no reward, and its metrics stay for the record.

    `--set judge.gates.most.value=0.99` drops what is too good to be true, `judge.gates.most.parameters=5000` what is
    too large. Without bounds nothing happens; a metric that the candidate has not got has no bounds. Metric: `gated`,
    how many of the step were stopped.
    """

    inner: Any
    least: Mapping[str, float] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    status: str = "gate"

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate, then look at what was measured."""
        self.inner(groups, s)
        stopped = 0
        for t in (t for g in groups for t in g.valid):
            found: Evaluation = t.info["evaluation"]
            if found.value is not None and (reason := self.breach(found)):
                metrics = {**found.metrics, "value": found.value}
                t.info["evaluation"] = replace(invalid(reason, self.status), metrics=metrics, complete=found.complete)
                t.rewards.pop("value", None)
            stopped += t.info["evaluation"].status == self.status  # also one that was stopped when it was tried before
        s.log("gated", stopped)

    def breach(self, found: Evaluation) -> str:
        """Which bound a valid evaluation does not keep; empty if it keeps all."""
        metrics = {**found.metrics, "value": found.value}
        for name, bound in self.least.items():
            if (x := metrics.get(name)) is not None and x < bound:
                return f"{name} is {x:g}, which is less than {bound:g}"
        for name, bound in self.most.items():
            if (x := metrics.get(name)) is not None and x > bound:
                return f"{name} is {x:g}, which is more than {bound:g}"
        return ""

    def check(self, system: object) -> None:
        """Bounds that something can keep."""
        for name in {*self.least} & {*self.most}:
            if self.least[name] > self.most[name]:
                raise UserError(
                    f"judge.gates: {name} must be at least {self.least[name]:g} and at most {self.most[name]:g}, which "
                    "nothing is; exchange them"
                )
