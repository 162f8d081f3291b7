"""A TOML file of options: read as if its values stood on the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from evolvent.core.errors import UserError, nearest
from evolvent.core.tables import flatten


def config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--config`: a TOML file with the command's options, and the tables [set] and [take] with paths."""
    text = "a TOML file with these options, and the tables [set] and [take]; options given here win"
    how = click.option("--config", metavar="FILE", is_eager=True, expose_value=False, callback=_read_config, help=text)
    return how(command)


def _read_config(context: click.Context, _: click.Parameter, path: str | None) -> None:
    """Make the file's values the defaults of the options, which read them as if they were typed."""
    if path is None:
        return
    data = read_toml(path)
    for name in ("set", "take"):
        table = data.pop(name, {})
        if not isinstance(table, dict):
            raise UserError(f"{path}: `{name}` should be a table of paths, as in [{name}] with lines below it")
        context.meta[name] = flatten(table)
    params = context.command.params
    options = {o.lstrip("-"): p for p in params for o in p.opts if len(o) > 2 and o != "--config"}
    negations = {o.lstrip("-"): p for p in params for o in p.secondary_opts}
    context.default_map = {}
    for key, value in data.items():
        if key in negations and isinstance(value, bool):
            context.default_map[str(negations[key].name)] = str(not value)
            continue
        if key in negations:
            raise UserError(f"{path}: `{key}` should be true or false")
        if key not in options:
            names = ", ".join(sorted({*options} - {"set", "take"}))
            raise UserError(f"{path}: no key `{key}`{nearest(key, options)} (keys: {names}; tables: [set], [take])")
        many = options[key].multiple if isinstance(options[key], click.Option) else False
        values = value if many and isinstance(value, list) else [value]
        if not all(isinstance(v, str | int | float) for v in values):
            raise UserError(f"{path}: `{key}` should be one value, as on the command line")
        texts = [str(v) for v in values]
        context.default_map[str(options[key].name)] = texts if many else texts[0]


def read_toml(path: str) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text("utf-8-sig"))
    except OSError as reason:
        raise UserError(f"cannot read {path}: {reason.strerror}; name a TOML file") from None
    except (ValueError, RecursionError) as reason:  # a number of thousands of digits is no TOMLDecodeError
        raise UserError(f'{path} is not TOML: {reason}; strings want quotes, as in task = "countdown"') from None
