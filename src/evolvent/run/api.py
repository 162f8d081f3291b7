"""The Python interface: one call that does what the command line does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evolvent.core.errors import UserError, unknown
from evolvent.core.tables import flatten
from evolvent.run.session import Progress, Result, begin
from evolvent.run.spec import RunSpec
from evolvent.tasks.seed_program import task_of

OPTIONS = ("target", "final", "logs", "say", "command", "where", "pool")  # of a session
ARGUMENTS = ("recipe", "task", "model", "budget", "seed", "settings", "take", "profile", "device", "dtype", "engine")
EXAMPLES = {"recipe": "grpo", "task": "countdown", "model": "tiny", "budget": "300 steps"}


def run(
    recipe: str = "grpo",
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
    texts = {"recipe": recipe, "task": task, "model": model, "budget": budget, "profile": profile}
    if seed_program:
        texts["task"] = task_of(str(task), str(seed_program))
    texts |= {"device": device, "dtype": dtype, "engine": engine}
    tables = {"settings": settings or {}, "take": take or {}}
    check_types(texts, tables, {"watch": watch, "say": options.get("say")})
    if not isinstance(seed, int):
        raise UserError(f"seed should be a whole number, not {seed!r}")
    if isinstance(options.get("logs"), str):
        raise UserError(f"logs should be a tuple of names, as in logs=({options['logs']!r},)")
    spec = RunSpec(
        **{name: str(value) for name, value in texts.items()},
        seed=seed,
        settings=flatten(tables["settings"]),
        take=flatten(tables["take"]),
    )
    check_options_given(options, store, name)
    extra = {"watch": watch} if watch else {}
    return begin(spec, Path(store), name, **extra, **options)


def check_options_given(options: Mapping[str, Any], store: object, name: object) -> None:
    """`UserError` for an option that a session has not, or of another kind than it takes."""
    for option in options:
        if option not in OPTIONS:
            raise unknown("argument", option, [*ARGUMENTS, *OPTIONS], "help(evolvent.run) tells all")
    target, final = options.get("target"), options.get("final")
    if not isinstance(store, str | Path):
        raise UserError(f"store should be a folder, as in store='runs', not {store!r}")
    if name is not None and not isinstance(name, str):
        raise UserError(f"name should be a text, or None for the next free one, not {name!r}")
    if target is not None and (isinstance(target, bool) or not isinstance(target, int | float)):
        raise UserError(f"target should be a number, as in target=0.5, not {target!r}")
    if final is not None and not isinstance(final, bool):
        raise UserError(f"final should be True or False, not {final!r}")


def check_types(texts: Mapping[str, Any], tables: Mapping[str, Any], calls: Mapping[str, Any]) -> None:
    """`UserError` for arguments of another kind: numbers for texts, lists for tables, what cannot be called."""
    for name, value in texts.items():
        if not isinstance(value, str | Path):
            raise UserError(f"{name} should be a text, such as {EXAMPLES.get(name, 'auto')!r}, not {value!r}")
    for name, value in tables.items():
        if not isinstance(value, Mapping):
            raise UserError(f"{name} should map paths to values, as in {{'learn.lr': 3e-4}}, not {value!r}")
    for name, value in calls.items():
        if value is not None and not callable(value):
            raise UserError(f"{name} should be a function that is called on the way, not {value!r}")
