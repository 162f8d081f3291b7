"""The Python interface: one call that does what the command line does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from evolvent.core.errors import UserError, unknown
from evolvent.core.tables import flatten
from evolvent.run.session import Progress, Result, Session, begin
from evolvent.run.spec import RunSpec
from evolvent.tasks.seed_program import task_of

TEXTS = ("budget", "profile", "device", "dtype", "engine")
TEXTS_OR_FILES = ("recipe", "task", "model", "seed_program")


def run(
    recipe: str | Path = "grpo",
    task: str | Path = "countdown",
    model: str | Path = "tiny",
    budget: str = "300 steps",
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    take: Mapping[str, str] | None = None,
    profile: str = "auto",
    device: str = "cpu",
    dtype: str = "float32",
    engine: str = "auto",
    store: str | Path = "runs",
    name: str | None = None,
    seed_program: str | Path = "",
    watch: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Result:
    """Evolve a model, a program or texts; the result has the policy (of a search: `best`), the curves, the ledger and
    the run's folder. `seed_program` is the program, or the texts, that `task` evaluates to begin with.

    `settings` maps paths to values, as `--set` does: {"learn.lr": 3e-4, "propose.n": 4}. `options` are those of a
    session: target, final, logs, say. Errors are `UserError`. Files and folders may be `Path`s, settings nested tables.
    """
    given = dict(locals())
    check_arguments(given | given.pop("options"))
    if seed_program:
        task = task_of(str(task), str(seed_program))
    spec = RunSpec(
        str(recipe),
        str(task),
        str(model),
        budget,
        seed,
        flatten(settings or {}),
        flatten(take or {}),
        profile,
        device,
        dtype,
        engine,
    )
    extra = {"watch": watch} if watch else {}
    return begin(spec, Path(store), name, **extra, **options)


def check_arguments(given: Mapping[str, Any]) -> None:
    """`UserError` for an argument that there is not, or of another kind than it takes."""
    own = inspect.signature(run).parameters
    session = [f.name for f in fields(Session) if f.init and f.name not in ("spec", "stopping")]
    known = list(dict.fromkeys([*(name for name in own if name != "options"), *session]))
    table = Mapping | None, "map paths to values, as in {'learn.lr': 3e-4}"
    call = Callable | None, "be a function that is called on the way"
    kinds: dict[str, tuple[Any, str]] = {
        **{name: (str, f"be a text, such as {own[name].default!r}") for name in TEXTS},
        **{name: (str | Path, f"be a text, such as {own[name].default or 'program.py'!r}") for name in TEXTS_OR_FILES},
        "seed": (int, "be a whole number"),
        "settings": table,
        "take": table,
        "store": (str | Path, "be a folder, as in store='runs'"),
        "name": (str | None, "be a text, or None for the next free one"),
        "watch": call,
        "say": call,
        "logs": (tuple | list, f"be a tuple of names, as in logs=({given.get('logs')!r},)"),
        "target": (float | int | None, "be a number, as in target=0.5"),
        "final": (bool | None, "be True or False"),
    }
    for name, value in given.items():
        if name not in known:
            raise unknown("argument", name, known, "help(evolvent.run) tells all")
        kind, should = kinds.get(name, (object, ""))
        if not isinstance(value, kind) or (name == "target" and isinstance(value, bool)):
            raise UserError(f"{name} should {should}, not {value!r}")
