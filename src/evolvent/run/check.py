"""What is checked before a run spends anything."""

from __future__ import annotations

from evolvent.core.errors import UserError
from evolvent.tasks.audit import audit
from evolvent.tasks.base import Task

PROBLEMS = 24  # that the audit before a run looks at


def refuse_unsound(task: Task, spec: str) -> None:
    """`UserError` if the audit of the verifier of the task `spec` fails."""
    report = audit(task, problems=PROBLEMS)
    if report.failed:
        raise UserError(
            f"the verifier of {task.name} fails its audit: {report.first_failure()}; "
            f"`evolvent audit {spec}` tells all, --skip-audit runs nevertheless"
        )
