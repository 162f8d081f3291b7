"""What a user should know of a search when it begins: the sandbox, idle workers, what is odd in the seed program."""

from __future__ import annotations

import re
from typing import Any

from evolvent.core.ledger import Budget
from evolvent.core.secrets import redact
from evolvent.engine import is_endpoint
from evolvent.guard.cage import installed
from evolvent.guard.sandbox import Sandbox
from evolvent.run.assemble import Assembled
from evolvent.search.archive import Archive
from evolvent.search.variation.blocks import blocks
from evolvent.tasks.evaluation import judges_answers
from evolvent.tasks.registry import is_file

WEAKER = {  # than bubblewrap
    "sandlock": "programs run in sandlock, not in bubblewrap: no network and no files of yours, but no namespaces of "
    "their own, and installed packages can be read",
    "none": "programs run in no sandbox (--unsafe-no-sandbox): your files and the network are open to them",
}
TO_GET = "to have bubblewrap: apt install bubblewrap"
TO_MEND = "bubblewrap is installed and does not work here (it needs user namespaces, which containers often forbid)"
ELSEWHERE = "that of each machine of the pool"
ERROR = re.compile(  # the name of an exception; or `stderr: ...` of an evaluator, with more than a number or `none`
    r"Traceback \(most recent call last\)|\b[A-Z]\w+(?:Error|Exception|Exit|Interrupt)\b"
    r"|^(?i:error|stderr|traceback|exception)\w*: (?!(?i:none|null|no|ok)(?: \w+s)?\W*$)[^\n]*[A-Za-z]{3}",
    re.MULTILINE,
)
BLANK = re.compile(r"\s*(?:#.*)?$")
LONG = 160  # characters of a message, after which it is cut
SIZES = ("children", "agents", "n")  # fields of parts that propose; their product is how many programs a step has


def notes(assembled: Assembled, pool: str = "") -> list[str]:
    """Lines to say before the first step; nothing is tried for them, and most searches need none."""
    lines = (
        weaker_sandbox(sandbox_of(assembled.task, pool)),
        idle_workers(assembled),
        large_steps(assembled),
        empty_block(assembled.task),
        *getattr(assembled.task, "notes", ()),
    )
    return [line for line in lines if line]


def sandbox_of(task: object, pool: str = "") -> str | None:
    """The kind of sandbox that a task's programs run in; None where none has been looked for.

    Machines of a pool look for their own; that of a pool on this machine is the same.
    """
    sandbox = getattr(task, "__dict__", {}).get("sandbox")  # no property: that would begin to look
    if not isinstance(sandbox, Sandbox):
        return None
    return ELSEWHERE if pool.partition(":")[2] else sandbox.kind


def weaker_sandbox(kind: str | None) -> str:
    """One line where programs run in another sandbox than bubblewrap; empty where they do not, or nobody knows yet."""
    if kind not in WEAKER:
        return ""
    return f"{WEAKER[kind]}; {TO_MEND if installed('bubblewrap') else TO_GET}"


def idle_workers(assembled: Assembled) -> str:
    """One line where there are more workers than programs that are evaluated at a time; empty where all have work."""
    task, recipe = assembled.main_role.task, assembled.spec.recipe
    workers = getattr(task, "workers", 1)
    if workers < 2:
        return ""
    if not evaluates_beside(task):
        return f"{task.name} is evaluated in one process, so more workers than one change nothing; leave out --workers"
    part = proposer(assembled)
    many = at_once(part)
    if many is None or many >= workers:
        return ""
    idle = f"{workers - many} of {workers} workers {'is' if workers - many == 1 else 'are'} idle"
    says = f"{recipe} evaluates {many} program{'s' * (many > 1)} at a time, so {idle}"
    field = next((name for name in SIZES if hasattr(part, name)), None)
    if field is None:
        return f"{says}; no setting of it changes that, so leave out --workers"
    enough = -(-workers * getattr(part, field) // many)
    why = ": parents are drawn before their siblings are known" if field == "children" else ""
    return f"{says}; add --set propose.{field}={enough} (another search{why})"


def evaluations_ask(assembled: Assembled) -> bool:
    """Whether candidates are evaluated by asking a model that is elsewhere, so that each evaluation is paid for."""
    return is_endpoint(assembled.spec.model) and any(
        getattr(part, "asks_model", False) for part in assembled.system.parts.values()
    )


def large_steps(assembled: Assembled) -> str:
    """One line where a step makes more programs than the budget has evaluations, since a step is never cut short;
    empty where it does not, or nobody knows. A program on several instances takes as many evaluations."""
    budget = Budget.parse(assembled.spec.budget)
    if budget.unit != "verifier_calls" or judges_answers(assembled.main_role.task):
        return ""
    part = proposer(assembled)
    many = at_once(part)
    if many is None or many <= budget.amount:
        return ""
    field = next(name for name in SIZES if hasattr(part, name))
    return (
        f"a step makes {many:,} programs and is never cut short, so the budget of {budget.amount:,.0f} evaluations "
        f"will be gone beyond; a larger one, or --set propose.{field}=..., keeps to it"
    )


def empty_block(task: object) -> str:
    """One line where nothing but comments stands in what may change of the seed program; else empty."""
    seed = getattr(task, "seed_program", "")
    lines, found = seed.split("\n"), blocks(seed)
    if not seed.strip() or any(not BLANK.match(line) for span in found for line in lines[span.first - 1 : span.last]):
        return ""
    which = f"the EVOLVE block after line {found[0].first - 1}" if len(found) == 1 else "every EVOLVE block"
    return (
        f"{which} of the seed program is empty: rules have nothing to vary there, and a model begins with nothing; put "
        "into the block what is to be improved"
    )


def troubled_seed(assembled: Assembled) -> str:
    """One line where the seed program has a value, and yet an error in what its evaluation says; else empty.

    Of an evaluator of the user's own: in the worlds of the package the seed programs' mistakes are part of the task.
    """
    if not is_file(assembled.spec.task):
        return ""
    archive = search_archive(assembled)
    if archive is None or not archive.history or archive.history[0].evaluation.value is None:
        return ""
    first = archive.history[0].evaluation
    told = next((line.strip() for line in reversed(first.feedback.split("\n")) if ERROR.search(line)), "")
    if not told:
        return ""
    told = redact(told)
    told = told if len(told) <= LONG else f"{told[: LONG - 3]}..."
    return (
        f"the seed program has the value {first.value:z.10g}, and its evaluation says `{told}`; if that is no part "
        "of the task, stop, and mend the program or its evaluator"
    )


def search_archive(assembled: Assembled) -> Archive | None:
    """The archive of a search; None where there is none."""
    return next((p for p in assembled.system.parts.values() if isinstance(p, Archive)), None)


def fruitless(assembled: Assembled) -> bool:
    """Whether a search has come to its end with the seed program, which is not valid, and nothing was paid for."""
    archive = search_archive(assembled)
    paid = assembled.system.ledger.of("model_calls")
    return archive is not None and len(archive.history) == 1 and not archive.members and not paid


def evaluates_beside(task: object) -> bool:
    """Whether a task evaluates in processes beside this one, so that several programs can be under way."""
    from evolvent.tasks.texts.task import TextsTask

    return isinstance(task, TextsTask) or getattr(type(task), "sandbox", None) is not None


def proposer(assembled: Assembled) -> Any:
    """The part that says how many programs a step has, below what is around it."""
    part: Any = assembled.main_role.slots.get("propose")
    while hasattr(part, "inner"):
        part = part.inner
    return part


def at_once(part: object) -> int | None:
    """How many new programs a step has, which are evaluated at a time; None for parts that are not the package's."""
    if not type(part).__module__.startswith("evolvent."):
        return None
    many = 1
    for name in SIZES:
        many *= getattr(part, name, 1)
    return many
