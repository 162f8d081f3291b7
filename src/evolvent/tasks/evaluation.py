"""What an evaluator says of a program, a prompt or anything else that is not an answer to a problem."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluator's verdict: a finite `value`, higher is better, or None for what is not valid.

    metrics   whatever else it measured, by name
    feedback  text for whoever varies the candidate next: why it is invalid, what went wrong
    status    `ok`, or how running it ended (see `guard.sandbox.Outcome`), or `invalid` for a wrong result
    complete  whether all that there is to evaluate has been: every instance, every stage
    """

    value: float | None
    metrics: Mapping[str, float] = field(default_factory=dict)
    feedback: str = ""
    status: str = "ok"
    complete: bool = True


def judges_answers(task: Any) -> bool:
    """Whether a task has a verifier of answers; a task of programs evaluates these instead."""
    return hasattr(task, "score")


def invalid(feedback: str, status: str = "invalid") -> Evaluation:
    """A verdict on what is not valid, and why."""
    return Evaluation(None, {}, feedback, status)


def sound(evaluation: Evaluation) -> Evaluation:
    """The verdict; not valid, where a number in it is not finite, as the sum of two huge ones is not."""
    numbers = [] if evaluation.value is None else [("value", evaluation.value)]
    wrong = [(name, x) for name, x in (*numbers, *evaluation.metrics.items()) if not math.isfinite(x)]
    if not wrong:
        return evaluation
    told = f"the evaluation gave {wrong[0][0]} = {wrong[0][1]}, which is no finite number"
    return replace(
        evaluation,
        value=None,
        metrics={name: x for name, x in evaluation.metrics.items() if math.isfinite(x)},
        feedback="\n".join(text for text in (told, evaluation.feedback) if text),
        status="invalid" if evaluation.status == "ok" else evaluation.status,
    )


INSTANCE = "instance/"  # before the name of an instance of a world, in the metrics


def over_instances(values: Mapping[str, float], metrics: Mapping[str, float] | None = None) -> Evaluation:
    """The verdict of a world of instances: the value of each, by name; their mean is the value."""
    named = {f"{INSTANCE}{name}": value for name, value in values.items()}
    return Evaluation(sum(values.values()) / len(values), {**(metrics or {}), **named})


def pooled(earlier: Evaluation | None, later: Evaluation) -> Evaluation:
    """Both verdicts on one candidate as one: the mean over all instances, else what all numbers together give.

    What went wrong later is wrong; of a metric that both have the later number counts, as in OpenEvolve's cascade.
    """
    if earlier is None:
        return later
    metrics = {**earlier.metrics, **later.metrics}
    feedback = "\n".join(text for text in (earlier.feedback, later.feedback) if text)
    if earlier.value is None or later.value is None:
        last = earlier if earlier.value is None else later
        return Evaluation(None, metrics, feedback, last.status, later.complete)
    values = [value for name, value in metrics.items() if name.startswith(INSTANCE)]
    whole = read_result(metrics).value if metrics else later.value
    value = sum(values) / len(values) if values else whole
    return sound(Evaluation(value, metrics, feedback, later.status, later.complete))


def number(value: Any) -> float | None:
    """A finite number, or None: no text, no truth value, no NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return found if math.isfinite(found) else None


def read_result(result: Any) -> Evaluation:
    """What an `evaluate` function gave: a number, or a mapping of named numbers, as OpenEvolve's evaluators give.

    The value is `combined_score`, else `score`, else the mean of all numbers. A NaN, an infinity or a text in its place
    makes the candidate invalid; texts beside the numbers are feedback.
    """
    if isinstance(result, Mapping):
        inner = result.get("metrics")
        artifacts = result.get("artifacts")
        given = inner if isinstance(inner, Mapping) else result
        texts = {**(artifacts if isinstance(artifacts, Mapping) else {}), **given}
        feedback = "\n".join(f"{k}: {v}" for k, v in texts.items() if isinstance(v, str))
        metrics = {str(k): x for k, v in given.items() if (x := number(v)) is not None}
        for name in ("combined_score", "score"):
            if name in given:
                value = number(given[name])
                if value is None:
                    return invalid(f"the evaluator gave {name} = {given[name]!r}, which is no finite number")
                return Evaluation(value, metrics, feedback)
        wrong = [k for k, v in given.items() if isinstance(v, float) and not math.isfinite(v)]
        if wrong:
            return invalid(f"the evaluator gave {wrong[0]} = {given[wrong[0]]!r}, which is no finite number")
        if not metrics:
            return invalid("\n".join(["the evaluator gave no number", *filter(None, [feedback])]))
        return Evaluation(sum(metrics.values()) / len(metrics), metrics, feedback)
    value = number(result)
    if value is None:
        return invalid(f"the evaluator gave {result!r:.80}, which is no finite number")
    return Evaluation(value)
