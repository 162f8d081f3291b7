"""How an evaluator and what it is to begin with are named together, as one task."""

from __future__ import annotations

from pathlib import Path

from evolvent.core.errors import UserError
from evolvent.tasks.texts import TEXT_FILES


def task_of(task: str, seed: str | None) -> str:
    """The task of an evaluator and what to begin with: a program, or texts. `UserError` for what is neither."""
    if not seed:
        return task
    kind, _, rest = task.partition(":")
    if kind in ("program", "texts"):
        if rest.endswith(".py") and ":" not in rest:
            return f"{task}:{seed}"
        raise UserError(
            f"{task} says itself what it begins with; --seed-program goes with a file that evaluates, as evaluator.py"
        )
    if seed.endswith(".py"):
        return f"program:{task}:{seed}"
    if seed.endswith(TEXT_FILES) or Path(seed).is_dir():
        return f"texts:{task}:{seed}"
    raise UserError(
        f"--seed-program {seed} is no Python program (.py), and no texts ({', '.join(TEXT_FILES)}, or a folder of them)"
    )
