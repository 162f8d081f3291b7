"""Options that several commands share, and how they are read."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from evolvent.cli import complete
from evolvent.core.errors import UserError
from evolvent.engine import SPECIAL, is_endpoint

STORE = os.environ.get("EVOLVENT_STORE") or "runs"
SMALL = 16_000_000  # bytes of weights, below which one thread is as fast as two, and does not spin while it waits


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--store`."""
    text = "folder of the store (default: ./runs, or EVOLVENT_STORE); or a postgresql:// address"
    return click.option("--store", "store_", default=STORE, metavar="FOLDER|URL", help=text)(command)


def kept_in(store: str) -> Path:
    """Where the cells of a comparison are until it is finished: in the store's folder, or the usual one of a URL."""
    return Path("runs" if "://" in store else store) / ".comparisons"


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="print JSON, for scripts")(command)


def settings_option(text: str) -> Callable[..., Any]:
    """`--set`, with the help of the command."""
    return click.option(
        "--set", "-s", "settings", multiple=True, metavar="PATH=VALUE", help=text, shell_complete=complete.keys
    )


def model_option(text: str) -> Callable[..., Any]:
    """`--model`, with the help of the command; the seed model where none is named."""
    return click.option("--model", "-m", default="tiny", show_default=True, help=text, shell_complete=complete.models)


def open_store(where: str, create: bool = True) -> Any:
    """The store at a folder or a database address."""
    from evolvent.lineage.store import Store

    if "://" in where:
        return Store(Path("runs"), where)
    if not create and not (Path(where) / "store.db").is_file():
        raise UserError(f"there is no store in {where}; `evolvent run` makes one, --store names another")
    return Store(Path(where))


def emit(data: Any) -> None:
    """Print JSON."""
    click.echo(json.dumps(finite(data), indent=1, default=str))


def finite(data: Any) -> Any:
    """The same data as JSON knows it: records as objects, null for nan and the infinities."""
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        data = dataclasses.asdict(data)
    if isinstance(data, dict):
        return {k: finite(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [finite(v) for v in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def pairs(items: tuple[str, ...], option: str) -> dict[str, str]:
    """`path=value` items as a dict."""
    found = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise UserError(f"{option} wants path=value, got `{item}`; for example {option} learn.lr=3e-4")
        found[name.strip()] = value.strip()
    return found


def use_threads(threads: int | None, model: str = "") -> int:
    """Set torch's threads: as asked for, else all cores, and one for models that several would only wait for.

    Nothing is set where nobody asked and there is no model in this process: torch may never be needed.
    """
    if not threads and (model in SPECIAL or is_endpoint(model)) and "torch" not in sys.modules:
        return min(os.cpu_count() or 1, 8)
    import torch

    from evolvent.models.load import weights_size

    few = 0 < weights_size(model) < SMALL
    count = threads or (1 if few else min(os.cpu_count() or 1, 8))
    torch.set_num_threads(count)
    return count
