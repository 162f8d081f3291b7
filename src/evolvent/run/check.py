"""What is checked before a run spends anything."""

from __future__ import annotations

import math
import re
from typing import Any

from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget
from evolvent.core.recipe import show_path
from evolvent.core.records import Request
from evolvent.engine import is_endpoint
from evolvent.lineage.runs import RunView
from evolvent.recipes.catalogue import settings_of
from evolvent.rollout.sample import opening
from evolvent.run.assemble import SERVICE, Assembled
from evolvent.run.log import check_logs
from evolvent.run.spec import RunSpec
from evolvent.tasks.audit import audit
from evolvent.tasks.base import SPLITS, Task, distinct, key_of
from evolvent.tasks.evaluation import judges_answers
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import is_file

RESERVED = ("last", "objects")  # names that mean something else
ACCURACY, BEST = "gate/accuracy", "best"  # metrics: of models that answer, of searches
WORKERS = "judge.workers"  # what `--workers` sets
NEEDED = ("propose", "rollout", "judge")  # slots without which there is no step
PROBLEMS = 24  # that the audit before a run looks at
NO_PRICES = "no prices are known (an endpoint's: --set engine.prices=0.15,0.60, dollars per million tokens)"
PROMPTS = 12  # whose length is looked at, of tasks that do not list their problems


def refuse_unsound(task: Task, spec: str) -> None:
    """`UserError` if the audit of the verifier of the task `spec` fails."""
    if not judges_answers(task):  # nothing is judged that could be right or wrong
        return
    report = audit(task, problems=PROBLEMS)
    if report.failed:
        raise UserError(
            f"the verifier of {task.name} fails its audit: {report.first_failure()}; "
            f"`evolvent audit {spec}` tells all, --skip-audit runs nevertheless"
        )


def fingerprint(task: Any) -> str | None:
    """Hash of a task of the user's own: its problems and its functions, or its evaluator with what lies beside it, and
    the seed program. None for tasks of the package."""
    if isinstance(task, ProgramTask) and is_file(task.name):
        return key_of("fingerprint", sorted(task.world.call(task.seed_program, ()).files.items()))
    parts = [fingerprint(part) for part in getattr(task, "tasks", {}).values()]
    return getattr(task, "fingerprint", None) or (key_of("fingerprint", parts) if any(parts) else None)


def refuse_changed(task: Task, view: RunView) -> None:
    """`UserError` if the task is not what it was when the run began."""
    if view.fingerprint and view.fingerprint != fingerprint(task):
        raise UserError(
            f"the task {view.spec['task']} was changed after run {view.name} had begun; put back what it was, or begin "
            "a new run with the new one"
        )


def refuse_no_parts(assembled: Assembled) -> None:
    """`UserError` where a slot holds what is no part, such as a number, or where one that every step needs is empty."""
    for role in assembled.system.roles.values():
        for slot in NEEDED if role is assembled.main_role else ():
            if slot not in role.slots:
                raise UserError(f"`{slot}` is none, and no step can do without it; leave out what sets it to none")
        for slot, part in role.slots.items():
            if not (hasattr(part, "tell") if slot == "learn" else callable(part)):
                raise UserError(f"`{slot}` is {part!r}, and a slot takes a part: a class or function, as module:Name")


def refuse_unanswered(assembled: Assembled) -> None:
    """`UserError` if the recipe learns from answers, and the task is to be solved by a program."""
    for role in assembled.system.roles.values():
        if not judges_answers(role.task) and not any(hasattr(part, "evaluates") for part in role.parts.values()):
            same = "best-of-n" in assembled.spec.recipe  # n variations of the seed program, and the best of them
            instead = "iid-sampling, which is best-of-n for programs" if same else "hill-climbing"
            raise UserError(
                f"{assembled.spec.recipe} has a model answer problems, and {role.task.name} wants programs; take a "
                f"recipe that searches, such as {instead}"
            )


def refuse_wordless(task: Task, model: str) -> None:
    """`UserError` for a task of texts without a model that could write them."""
    if getattr(task, "wants_model", False) and model == "none":
        raise UserError(
            f"{task.name} is made of texts, which only a model can write; name one that does, as in --model "
            "openai:gpt-4.1-mini or --model http://127.0.0.1:8000/v1#name"
        )


def refuse_workers(spec: RunSpec) -> None:
    """`UserError` where `--workers` was given, and nothing of the recipe would read it."""
    own = {k: v for k, v in spec.settings.items() if k != WORKERS and not k.startswith(SERVICE)}
    if WORKERS not in {show_path(s.path) for s in settings_of(spec.recipe, own, spec.take, "paper")}:
        raise UserError(
            f"--workers is for searches whose evaluation has workers, and that of {spec.recipe} has none; leave it out"
        )


def refuse_endless(assembled: Assembled, budget: Budget) -> None:
    """`UserError` if nothing that the run does is counted in the unit of its budget."""
    roles = assembled.system.roles.values()
    silent = "there is no model that reads or writes" if assembled.spec.model == "none" else ""
    why = {
        **dict.fromkeys(("prefilled", "sampled", "decode_steps"), silent),
        "money": "" if "engine.prices" in assembled.spec.settings else NO_PRICES,
        "model_calls": "" if is_endpoint(assembled.spec.model) else "the model is not behind an endpoint",
        "environment_steps": "" if any(hasattr(r.task, "episode") for r in roles) else "the task has no environment",
        "trained": "" if any("learn" in r.slots for r in roles) else f"{assembled.spec.recipe} trains nothing",
    }.get(budget.unit)
    if why:
        units = "steps, evaluations or minutes" if silent else "steps, tokens or minutes"
        raise UserError(f"a budget of {budget} would never be used up, since {why}; give {units}")


def reaches(task: Task) -> str:
    """The metric that a run's target is compared with."""
    return ACCURACY if judges_answers(task) else BEST


def refuse_aimless(assembled: Assembled, budget: Budget, target: float | None) -> None:
    """`UserError` if there is a target, and the gate measures no accuracy that could reach it within the budget."""
    if target is None or reaches(assembled.task) == BEST:  # which has any scale, and is known after every step
        return
    if not 0 <= target <= 1:
        raise UserError(f"a target is a gate accuracy from 0 to 1, got {target:g}; 0.5 stops at 50 %")
    gate = assembled.main_role.slots.get("gate")
    every = getattr(gate, "every", 1) if gate else 0  # a gate of the user's own may look at every step
    if not every:
        raise UserError(
            f"a target of {target:g} would never be reached, since the gate measures no accuracy; leave out --target, "
            "or let it measure, as with --set gate.every=25"
        )
    if budget.unit == "steps" and budget.amount < every:
        raise UserError(
            f"a target of {target:g} would never be looked at, since the gate measures every {every} steps and the "
            f"budget is {budget}; --set gate.every=1 looks at every step"
        )


def refuse_broken(assembled: Assembled) -> None:
    """`UserError` if a weight of the model is no number: nothing could be answered, and nothing learned."""
    if not assembled.policy.size:  # it is elsewhere, or there is none
        return
    for name, weight in assembled.policy.model.named_parameters():
        if not bool(weight.isfinite().all()):
            raise UserError(
                f"the model {assembled.spec.model} is broken: weights of {name} are infinite or no numbers; take an "
                "earlier copy of it, or save it again"
            )


def refuse_too_long(assembled: Assembled) -> None:
    """`UserError` if a prompt of the task leaves the model no room to answer.

    What writes programs or edits of them words its prompts itself, and endpoints count in tokens of their own.
    """
    task, policy = assembled.task, assembled.policy
    if not policy.context or is_endpoint(assembled.spec.model) or not judges_answers(task):
        return
    listed = getattr(task, "listed", None)
    problems = [p for split in SPLITS for p in listed(split)] if listed else distinct(task, "train", PROMPTS)
    for problem in problems:
        size = len(opening(policy.format, Request(problem, 1), task)[0])
        if size >= policy.context:
            begins = " ".join(problem.prompt[-1].content.split())[:40]
            raise UserError(
                f"a prompt of {size} tokens (it begins `{begins}`) leaves no room in the model's context of "
                f"{policy.context}; shorten the prompt or use a model with a longer context"
            )


def refuse_spent(view: RunView, cap: Budget) -> None:
    """`UserError` for a run that is to be carried on with a budget that it has spent."""
    spent = view.spent.get("method", {}).get(cap.unit, 0.0)
    if spent < cap.amount:
        return
    larger = f"`evolvent resume {view.name} --budget ...` carries it on with a larger one"
    if cap != Budget.parse(view.spec["budget"]):
        used, wanted = in_words(Budget(spent, cap.unit), view), in_words(cap, view)
        raise UserError(f"run {view.name} has spent {used} already, and a budget of {wanted} is no more; {larger}")
    if view.status == "finished":
        raise UserError(f"run {view.name} is finished: its budget of {in_words(cap, view)} is used up; {larger}")


def in_words(budget: Budget, view: RunView) -> str:
    """A budget as its user would say it: what a search has of the verifier are evaluations."""
    return str(budget).replace("verifier calls", "evaluations") if view.candidates else str(budget)


def check_options(name: str, logs: tuple[str, ...], target: float | None) -> None:
    """`UserError` for options that no run can have. No name is fine: it gets one."""
    if name:
        check_name(name)
    check_logs(logs)
    if target is not None and not math.isfinite(target):
        raise UserError(f"a target is a number that can be reached, got {target:g}; 0.5 stops at 50 % accuracy")


def check_name(name: str) -> None:
    """Names of runs are names of folders."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) or name in RESERVED:
        raise UserError(
            f"`{name}` cannot name a run: use up to 100 letters, digits, dots, - and _, but not {' or '.join(RESERVED)}"
        )


def refuse_hopeless(assembled: Assembled, target: float | None = None) -> None:
    """`UserError` for runs that would never end or reach their target, and for models that could not answer."""
    budget = Budget.parse(assembled.spec.budget)
    refuse_no_parts(assembled)
    refuse_unanswered(assembled)
    refuse_wordless(assembled.task, assembled.spec.model)
    refuse_endless(assembled, budget)
    refuse_aimless(assembled, budget, target)
    refuse_broken(assembled)
    refuse_too_long(assembled)
