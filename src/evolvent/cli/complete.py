"""What a shell completes for arguments: recipes, tasks, models, runs, and files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

import evolvent

PACKAGE = Path(evolvent.__file__).parent
RECIPE = re.compile(r'^\w+ = recipe\(\s*"([^"]+)"', re.MULTILINE)
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completes(names: Callable[[click.Context], Iterable[str]], files: bool = False) -> Complete:
    """A completer of names, and of files where none fits. Whatever fails, a shell shows nothing of it."""

    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        head, sign, last = begun.rpartition("+")  # the last one of a composition
        try:
            found = [CompletionItem(head + sign + n) for n in sorted(names(context)) if n.startswith(last)]
        except Exception:  # for instance a store that is damaged
            found = []
        return found or ([CompletionItem(begun, type="file")] if files else [])

    return complete


def recipe_names(_: click.Context | None = None) -> Iterable[str]:
    """All recipes, as their files name them: importing those takes longer than a person waits."""
    return [n for path in (PACKAGE / "recipes").rglob("*.py") for n in RECIPE.findall(path.read_text("utf-8"))]


def task_names(_: click.Context) -> Iterable[str]:
    """All tasks of the package."""
    from evolvent.tasks.registry import task_table

    return [row["task"] for row in task_table() if row["task"].isalnum()]


def model_names(_: click.Context) -> Iterable[str]:
    """The seed models."""
    return ["tiny", *(path.parent.name for path in (PACKAGE / "models/seeds").glob("*/config.json"))]


def runs_of_store(context: click.Context) -> Iterable[str]:
    """The runs of the store that the command line names."""
    from evolvent.cli.options import STORE
    from evolvent.lineage.runs import run_names
    from evolvent.lineage.store import Store

    place = context.params.get("store_") or os.environ.get("EVOLVENT_STORE") or STORE
    return ["last", *run_names(Store(Path(place)))] if (Path(place) / "store.db").is_file() else []


recipes = completes(recipe_names, files=True)
tasks = completes(task_names, files=True)
models = completes(model_names, files=True)
runs = completes(runs_of_store)
runs_and_models = completes(lambda context: [*runs_of_store(context), *model_names(context)], files=True)
