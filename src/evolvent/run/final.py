"""The start and the end of a run: what the test split says of the model, beside the controls, and what was forgotten.

Everything is recorded problem by problem, so that a report can be made from the store alone, and before and after
can be compared on the same problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evolvent.bench.evaluate import Subject, best_temperature, summarise
from evolvent.bench.statistics import t_interval, wilson
from evolvent.core.errors import tally
from evolvent.core.records import Group, Trajectory
from evolvent.core.secrets import redact
from evolvent.models.tokenizer import Format, SeedFormat
from evolvent.run.assemble import Assembled
from evolvent.run.final_search import spent_from_now
from evolvent.tasks.base import Task, distinct
from evolvent.tasks.registry import load_task

TEST_PROBLEMS = 500
GATE_PROBLEMS = 128
SAMPLES = 16  # of each test problem, at temperature 1
SHOWN_PROBLEMS, SHOWN_SAMPLES = 12, 3  # the first ones of the test split, not chosen
LONGEST_TEXT = 6000  # characters of one piece of a shown trajectory
SEED = 0  # the problems that runs are compared on are always the same
# what seed models were trained on; all but the run's own task are tried
REMEMBERED = ("arith", "countdown", "calc", "rg/products:1", "rg/spell_backward:1", "rg/number_sorting:1", "judge:3x12")
REMEMBERED_PROBLEMS = 200


def measure_model(assembled: Assembled, name: str, version: int | None) -> list[tuple[str, dict[str, Any]]]:
    """The figures of an assembled model, as events; what they take is charged to the account `evidence`."""
    ledger, role = assembled.system.ledger, assembled.main_role
    spent = spent_from_now(ledger)
    found, samples = measure(Subject(assembled.policy, role.engine, assembled.task, ledger, adapter=role.adapter))
    event = {"name": name, "version": version, "result": found, "spent": spent()}
    return [("samples", {"name": name, "problems": samples}), ("evaluation", event)]


def measure(subject: Subject) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures of one model on the test split, and trajectories to show, as plain data.

    The temperature of the control is chosen on the gate split.
    """
    test = distinct(subject.task, "test", TEST_PROBLEMS, SEED)
    greedy = subject.roll(test, 1, 0.0, "final")
    sampled = subject.roll(test, SAMPLES, 1.0, "final")
    result = summarise(greedy, sampled, SAMPLES, 1.0)
    temperature = best_temperature(subject, distinct(subject.task, "gate", GATE_PROBLEMS, SEED))
    if temperature in (0.0, result.temperature):
        at_best = result.greedy if temperature == 0 else result.sampled
    else:
        groups = subject.roll(test, 4, temperature, "final")
        at_best = t_interval([sum(t.outcome for t in g.valid) / len(g.valid) for g in groups if g.valid])
    figures = {
        "evaluation": result.as_dict(),
        "best_temperature": temperature,
        "at_best": [at_best.mean, at_best.low, at_best.high],
        "problems": per_problem(greedy, sampled),
        "lengths": lengths(sampled),
        "errors": errors([*greedy, *sampled]),
        "remembered": remembered(subject),
    }
    format = subject.policy.format
    shown = [show(g, s, format) for g, s in zip(greedy[:SHOWN_PROBLEMS], sampled[:SHOWN_PROBLEMS], strict=True)]
    return figures, shown


def per_problem(greedy: Sequence[Group], sampled: Sequence[Group]) -> dict[str, list[Any]]:
    """Key, greedy outcome (None: error), mean outcome, and how many of how many samples are right, by problem."""
    return {
        "key": [g.problem.key for g in greedy],
        "greedy": [g.valid[0].outcome if g.valid else None for g in greedy],
        "mean": [sum(t.outcome for t in g.valid) / len(g.valid) if g.valid else None for g in sampled],
        "right": [sum(t.outcome >= 1 for t in g.valid) for g in sampled],
        "tried": [len(g.valid) for g in sampled],
    }


def errors(groups: Sequence[Group]) -> dict[str, int]:
    """How many trajectories failed, by kind."""
    found: dict[str, int] = {}
    for t in (t for g in groups for t in g.trajectories if t.error):
        tally(found, str(t.error))
    return found


def lengths(sampled: Sequence[Group]) -> list[list[float]]:
    """[tokens written, trajectories, their total outcome], shortest first."""
    found: dict[int, list[float]] = {}
    for t in (t for g in sampled for t in g.valid):
        entry = found.setdefault(t.sampled, [0, 0.0])
        entry[0] += 1
        entry[1] += t.outcome
    return [[length, *found[length]] for length in sorted(found)]


def remembered(subject: Subject) -> list[dict[str, Any]]:
    """Greedy accuracy of a seed model on other tasks that it was trained on; [] for other models."""
    if not isinstance(subject.policy.format, SeedFormat):
        return []
    own = {part.partition(":")[0] for part in subject.task.name.split("+")}
    found = []
    for name in REMEMBERED:
        if name.partition(":")[0] in own:
            continue
        task: Task = load_task(name, subject.policy.format.wording)
        other = Subject(subject.policy, subject.engine, task, subject.ledger, subject.seed, subject.adapter)
        groups = other.roll(distinct(task, "test", REMEMBERED_PROBLEMS, SEED), 1, 0.0, "remembered")
        outcomes = [g.valid[0].outcome for g in groups if g.valid]
        greedy = wilson(sum(outcomes), len(outcomes))
        found.append({"task": task.name, "greedy": [greedy.mean, greedy.low, greedy.high], "outcomes": outcomes})
    return found


def show(greedy: Group, sampled: Group, format: Format) -> dict[str, Any]:
    """A problem with its greedy and some sampled trajectories, as texts."""
    return {
        "key": greedy.problem.key,
        "category": greedy.problem.category,
        "prompt": [[m.role, cut(m.content)] for m in greedy.problem.prompt],
        "greedy": tell(greedy.trajectories[0], format),
        "sampled": [tell(t, format) for t in sampled.trajectories[:SHOWN_SAMPLES]],
    }


def tell(t: Trajectory, format: Format) -> dict[str, Any]:
    """A trajectory's turns after the prompt as [who, text], and how it ended."""
    pieces = []
    for segment in t.segments:
        if segment.kind != "prompt":
            tokens = t.tokens[segment.start : segment.stop]
            if segment.kind == "policy" and len(tokens) and int(tokens[-1]) in format.ends:
                tokens = tokens[:-1]
            pieces.append([segment.kind, cut(format.decode(tokens))])
    return {
        "turns": pieces,
        "outcome": t.outcome,
        "answer": t.info.get("answer"),
        "tokens": t.sampled,
        "stop": t.stop,
        "error": t.error,
    }


def cut(text: str) -> str:
    """The text, or its beginning and how much is left out."""
    text = redact(text)  # while secrets are whole
    more = len(text) - LONGEST_TEXT
    return text if more <= 0 else f"{text[:LONGEST_TEXT]} [{more} more characters]"
