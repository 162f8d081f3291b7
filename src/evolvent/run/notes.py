"""What a user should know of where the programs of a search run, before it begins: their sandbox, and idle workers."""

from __future__ import annotations

from typing import Any

from evolvent.guard.cage import installed
from evolvent.guard.sandbox import Sandbox
from evolvent.run.assemble import Assembled

WEAKER = {  # than bubblewrap
    "sandlock": "programs run in sandlock, not in bubblewrap: no network and no files of yours, but no namespaces of "
    "their own, and installed packages can be read",
    "none": "programs run in no sandbox (--unsafe-no-sandbox): your files and the network are open to them",
}
TO_GET = "to have bubblewrap: apt install bubblewrap"
TO_MEND = "bubblewrap is installed and does not work here (it needs user namespaces, which containers often forbid)"
ELSEWHERE = "that of each machine of the pool"
SIZES = ("children", "agents", "n")  # fields of parts that propose; their product is how many programs a step has


def notes(assembled: Assembled, pool: str = "") -> list[str]:
    """Lines to say before the first step; nothing is tried for them, and most searches need none."""
    lines = (weaker_sandbox(sandbox_of(assembled.task, pool)), idle_workers(assembled))
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
