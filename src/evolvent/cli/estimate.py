"""What `evolvent run --dry-run` prints: tokens, time, memory and disk, from one step that is thrown away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from evolvent.cli.display import duration
from evolvent.cli.options import emit
from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget
from evolvent.core.role import find_field
from evolvent.core.step import Step
from evolvent.models.memory import Memory, estimate, shortage, size, total
from evolvent.run.assemble import Assembled
from evolvent.run.final import GATE_PROBLEMS, SAMPLES, TEST_PROBLEMS
from evolvent.run.notes import at_once, evaluations_ask, proposer
from evolvent.search.rescore import REPEATS, TOP
from evolvent.tasks.base import Split
from evolvent.tasks.evaluation import judges_answers

IDLE = 20  # steps of a search in a row that may evaluate nobody
HOPELESS = 2.0  # times the memory that there is: more than the estimate can be wrong by


def memory_of(assembled: Assembled) -> Memory:
    """The memory estimate of an assembled run's largest role."""
    found: list[Memory] = []
    for role in assembled.system.roles.values():
        propose, learn = role.slots["propose"], role.slots.get("learn")
        groups = find_field(propose, "problems") or 32
        rows = groups * (find_field(propose, "n") or 8)
        micro = getattr(learn, "micro_tokens", None) or 2048
        found.append(
            estimate(
                role.policy,
                rows=rows,
                prompts=groups,
                prompt=64,
                completion=role.task.max_tokens,
                micro_tokens=micro,
                adapter=role.adapter,
                reference=role.reference is not None,
                recompute=getattr(learn, "recompute", False),
                training=learn is not None,
            )
        )
    return max(found, key=lambda m: m.peak)


def memory_warning(assembled: Assembled) -> str | None:
    """A sentence where memory may be short, `UserError` where it cannot be enough."""
    memory, device = memory_of(assembled), assembled.policy.device
    warning = shortage(memory, device)
    if warning and memory.peak > HOPELESS * total(device):
        raise UserError(warning)
    return warning


def print_requests(assembled: Assembled, as_json: bool, final: bool | None = None) -> None:
    """What a step asks of a model that is elsewhere. Nothing is sent, since every answer may be paid for."""
    asked = [
        {"role": role.name, "requests_per_step": problems * n, "max_tokens": role.task.max_tokens}
        for role in assembled.system.roles.values()
        if (problems := find_field(role.slots["propose"], "problems")) and (n := find_field(role.slots["propose"], "n"))
    ]
    if not judges_answers(assembled.task) and (many := at_once(proposer(assembled))):  # one each, if nothing is mended
        asked = [{"role": "", "requests_per_step": many, "max_tokens": assembled.task.max_tokens}]
    if as_json:
        emit({"budget": assembled.spec.budget, "steps": asked})
        return
    click.echo(f"{assembled.spec.recipe} on {assembled.spec.task} with {assembled.spec.model}, {assembled.spec.budget}")
    for one in asked:
        of = f" of {one['role']}" if one["role"] else ""
        click.echo(f"  each step{of}: {one['requests_per_step']:,} answers of at most {one['max_tokens']:,} tokens")
    if evaluations_ask(assembled):
        click.echo("  evaluations ask the model, too, often many times each: how often depends on the candidates")
        click.echo("  the best anew    " + ("evaluated at the end, which asks most" if final else "only with --final"))
    click.echo("No answer was asked for, and nothing was written.")


def measuring(task: Any, done: list[Step], sampled: float) -> dict[str, int] | None:
    """Tokens and seconds of the measurements before and after, at the pace and length of a step's rollouts; None where
    a step samples nothing."""
    if not sampled:
        return None
    most: dict[Split, int] = {"test": TEST_PROBLEMS, "gate": GATE_PROBLEMS}
    if hasattr(task, "listed"):  # a file may hold fewer
        most = {split: min(count, len(task.listed(split))) for split, count in most.items()}
    rollouts = sum(s.metrics.get("trajectories", 0.0) for s in done) or 1.0
    seconds = sum(s.metrics.get("seconds/rollout", 0.0) + s.metrics.get("seconds/judge", 0.0) for s in done)
    scale = 2 * (1 + SAMPLES) * sum(most.values()) / rollouts
    return {"tokens_sampled": round(scale * sampled), "seconds": round(scale * seconds)}


@dataclass
class Reckoning:
    """What a budget pays for: a `first` step of a search, which evaluates what there is to begin with, and so many
    `steps` like the one that was tried, `done`. Of either what it spends, by the ledger's unit, seconds included."""

    done: list[Step]
    first: Mapping[str, float]
    each: Mapping[str, float]
    steps: float

    def total(self, unit: str) -> int:
        """What all steps spend."""
        return round(self.first[unit] + self.steps * self.each[unit])


def tried(assembled: Assembled) -> Reckoning:
    """A step, what it spent, and how many such the budget pays for. `UserError` if it spends nothing.

    By rules some steps of a search evaluate nobody: it is the mean over as many as it takes until somebody is. Where
    candidates are evaluated after they were made, such steps are how a search begins, and part of the `first`.
    """
    system, budget, answers = assembled.system, Budget.parse(assembled.spec.budget), judges_answers(assembled.task)
    done = [] if answers else system.step()
    first, steps = dict(system.ledger.spent["method"]), 0
    if (left := budget.amount - first[budget.unit]) <= 0:
        return Reckoning(done, first, dict.fromkeys(first, 0.0), 0)
    later = evaluates_later(assembled)
    for _ in range(IDLE if assembled.spec.model == "none" or later else 1):
        before = dict(system.ledger.spent["method"])
        done, steps = system.step(), steps + 1
        if system.ledger.of("verifier_calls") > first["verifier_calls"]:
            if later and before[budget.unit] < budget.amount:
                first, left, steps = before, budget.amount - before[budget.unit], 1
            break
    each = {unit: (amount - first[unit]) / steps for unit, amount in system.ledger.spent["method"].items()}
    if not each[budget.unit]:
        said = assembled.spec.budget
        raise UserError(f"a step spent nothing of a budget of {said}; try --dry-run with a budget in steps")
    count = left / each[budget.unit]
    return Reckoning(done, first, each, max(1.0, count) if answers else math.ceil(count))


def evaluates_later(assembled: Assembled) -> bool:
    """Whether a search evaluates its candidates in steps of their own, and not when they are made."""
    return any(find_field(role.slots["judge"], "at_once") == 0 for role in assembled.system.roles.values())


def print_search(assembled: Assembled, as_json: bool, final: bool | None = True) -> None:
    """What a search by rules takes: evaluations and time, and what the best of it take when they are evaluated anew."""
    spec, task = assembled.spec, assembled.task
    reckoned = tried(assembled)
    each = reckoned.total("seconds") / max(1, reckoned.total("verifier_calls"))
    gate, test = (len(task.instances(split)) for split in ("gate", "test")) if hasattr(task, "instances") else (0, 0)
    each_anew = TOP * gate + test if gate else TOP + 1
    anew = REPEATS * each_anew if final is not False else 0
    found = {
        **{unit: reckoned.total(unit) for unit in ("steps", "verifier_calls", "seconds")},
        "measuring": {"verifier_calls": anew, "seconds": round(anew * each)} if anew else None,
    }
    if as_json:
        emit(found)
        return
    click.echo(f"{spec.recipe} on {spec.task}, {spec.budget} (from one step that was thrown away)")
    click.echo(f"  steps            {found['steps']:,}")
    click.echo(f"  evaluations      {found['verifier_calls']:,}")
    click.echo(f"  time             {duration(reckoned.total('seconds'))}")
    if anew:
        click.echo(f"  the best anew    at most {anew:,} evaluations, {duration(anew * each)} (not with --no-final)")
    click.echo("Programs run in a sandbox with limits of their own. Nothing was written.")


def print_estimate(assembled: Assembled, as_json: bool, final: bool | None = True) -> None:
    """Measure one step and scale it to the budget; the test split's cost (if `final`) from its rollouts."""
    if assembled.spec.model == "none":
        print_search(assembled, as_json, final)
        return
    if not assembled.policy.size:
        print_requests(assembled, as_json, final)
        return
    warning = memory_warning(assembled)
    spec, system, answers = assembled.spec, assembled.system, judges_answers(assembled.task)
    reckoned = tried(assembled)
    sampled = reckoned.each["sampled"]
    memory = memory_of(assembled)
    weights = memory.checkpoint // 3
    gate = next((r.slots["gate"] for r in system.roles.values() if "gate" in r.slots), None)
    every = getattr(gate, "every", 0)
    versions = 2 + (reckoned.total("steps") // every if every else 0)
    measured: dict[str, Any] = {
        "steps": reckoned.total("steps"),
        "tokens_sampled": reckoned.total("sampled"),
        "tokens_trained": reckoned.total("trained"),
        "verifier_calls": reckoned.total("verifier_calls"),
        "seconds": reckoned.total("seconds"),
        "measuring": measuring(assembled.task, reckoned.done, sampled) if final is not False and answers else None,
        "peak_memory_bytes": memory.peak,
        "disk_bytes": memory.checkpoint + versions * weights,
    }
    if as_json:
        emit({**measured, "warning": warning})
        return
    click.echo(f"{spec.recipe} on {spec.task} with {spec.model}, {spec.budget} (from one step that was thrown away)")
    click.echo(f"  steps            {measured['steps']:,}")
    click.echo(f"  tokens sampled   {measured['tokens_sampled']:,}")
    click.echo(f"  tokens trained   {measured['tokens_trained']:,}")
    click.echo(f"  {'verifier calls' if answers else 'evaluations':<16} {measured['verifier_calls']:,}")
    click.echo(f"  time             {duration(measured['seconds'])}")
    if beside := measured["measuring"]:
        rest = f"{beside['tokens_sampled']:,} tokens, {duration(beside['seconds'])} (not with --no-final)"
        click.echo(f"  start and end    measured on the test split: {rest}")
    elif final is not False and answers:
        click.echo("  start and end    measured on the test split; how long is not known, as no step samples")
    click.echo(f"  memory           {size(memory.peak)} at most, beside the libraries")
    click.echo(f"  disk             {size(measured['disk_bytes'])}: a checkpoint and {versions} versions")
    if warning:
        click.echo(f"  warning          {warning}")
    click.echo("Nothing was written.")
