"""The end of a run: what the test split says of the model before and after, beside the controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evolvent.bench.evaluate import Evaluation, Subject, best_temperature, evaluate
from evolvent.bench.statistics import Interval, t_interval
from evolvent.tasks.base import distinct

TEST_PROBLEMS = 500
GATE_PROBLEMS = 128
SEED = 0  # the problems that runs are compared on are always the same


@dataclass
class Final:
    """One model's figures on the test split."""

    evaluation: Evaluation
    best_temperature: float
    at_best: Interval

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for the store."""
        return {
            "evaluation": self.evaluation.as_dict(),
            "best_temperature": self.best_temperature,
            "at_best": [self.at_best.mean, self.at_best.low, self.at_best.high],
        }


def measure(subject: Subject, problems: int = TEST_PROBLEMS) -> Final:
    """Evaluate on the test split; the temperature of the control is chosen on the gate split."""
    test = distinct(subject.task, "test", problems, SEED)
    result = evaluate(subject, test, label="final")
    temperature = best_temperature(subject, distinct(subject.task, "gate", GATE_PROBLEMS, SEED))
    if temperature in (0.0, result.temperature):
        at_best = result.greedy if temperature == 0 else result.sampled
    else:
        groups = subject.roll(test, 4, temperature, "final")
        means = [sum(t.outcome for t in g.valid) / len(g.valid) for g in groups if g.valid]
        at_best = t_interval(means)
    return Final(result, temperature, at_best)
