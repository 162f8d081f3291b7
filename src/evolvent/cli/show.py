"""`evolvent list`, `show`, `tasks`, `models`: what there is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from evolvent.cli import complete
from evolvent.cli.options import emit, json_option, settings_option
from evolvent.core.errors import UserError, unknown


def topmost(paths: list[str]) -> list[str]:
    """Paths without those below another one: `learn` says all of a new learner."""
    return [p for p in paths if not any(p.startswith(f"{other}.") for other in paths)]


@click.command(name="list")
@click.argument("family", required=False)
@json_option
def list_(family: str | None, as_json: bool) -> None:
    """The recipes: parent, what each changes, paper, and what the evidence says.

    \b
    evolvent list
    evolvent list policy_gradient --json
    """
    from rich.table import Table

    from evolvent.cli.runs import console as wide
    from evolvent.recipes.catalogue import rows

    found = rows()
    families = sorted({r["family"] for r in found})
    if family:
        if family not in families:
            raise unknown("family", family, families, "families: " + ", ".join(families))
        found = [r for r in found if r["family"] == family]
    if as_json:
        emit(found)
        return
    console = wide()
    for name in families:
        mine = [r for r in found if r["family"] == name]
        if not mine:
            continue
        table = Table(
            title=name.replace("_", " "), title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0)
        )
        for column in ("recipe", "parent", "changes", "paper", "evidence"):
            table.add_column(column, overflow="fold")
        for r in mine:
            table.add_row(r["recipe"], r["parent"] or "", ", ".join(topmost(r["changes"])), r["paper"], r["evidence"])
        console.print(table)
        console.print()
    console.print("`evolvent show RECIPE` prints one in full; recipes combine with +, as in `evolvent run grpo+sec`.")


@click.command()
@click.argument("composition", shell_complete=complete.recipes)
@settings_option("show it with these values")
@click.option("--take", multiple=True, metavar="PATH=RECIPE", help="whose value to take where recipes differ")
@click.option("--profile", default="tiny", show_default=True, help="the small-scale values to show beside the paper's")
@json_option
def show(composition: str, settings: tuple[str, ...], take: tuple[str, ...], profile: str, as_json: bool) -> None:
    """A recipe, or several joined by +: the paper, the patch, every value, the claims and the evidence.

    \b
    evolvent show mc-grpo
    evolvent show grpo+sec
    """
    from evolvent.cli.options import pairs
    from evolvent.recipes.catalogue import describe_composition

    data = describe_composition(composition, pairs(settings, "--set"), pairs(take, "--take"), profile)
    if as_json:
        emit(data)
        return
    print_recipe(data)


def print_recipe(data: dict[str, Any]) -> None:
    """A recipe for reading."""
    from rich.table import Table
    from rich.text import Text

    from evolvent.cli.runs import console as wide

    console = wide()
    for part in (
        data["recipes"][-1:] if len(data["parts"]) == 1 else [r for r in data["recipes"] if r["name"] in data["parts"]]
    ):
        console.print(Text(part["name"], "bold"), f"  {part['title']}  {part['paper']}", sep="")
        console.print()
        console.print(part["doc"], soft_wrap=True)
        console.print()
        console.print(f"lineage: {' <- '.join(reversed(part['lineage']))}      file: {part['file']}")
        console.print(f"patch against {part['parent'] or 'nothing'}:")
        for op in part["ops"]:
            console.print(f"  {op}", soft_wrap=True)
        console.print()
    table = Table(title="values", title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for name in ("path", "paper", data["profile"], "from"):
        table.add_column(name, overflow="fold")
    for row in data["values"]:
        changed = row["value"] != row["paper"]
        table.add_row(row["path"], row["paper"], Text(row["value"], "bold") if changed else "", row["origin"])
    console.print(table)
    for part in data["recipes"]:
        if part["name"] not in data["parts"]:
            continue
        for kind, claim in part["claims"].items():
            console.print(Text(f"\n{kind} claim", "bold"), f": {claim['text']}", sep="")
            for c in claim["components"]:
                against = ", ".join(c["against"])
                console.print(f"  {c['metric']} {c['direction']} by {c['delta']:g} against {against} ({c['kind']})")
            tested = f", tested on {claim['test']}" if claim["test"] else ""
            console.print(f"  task {claim['task']}{tested}, {claim['budget']}")
            for where in ("where", "nowhere"):  # of a grid
                for point in claim.get(where, ()):
                    at = " ".join(f"{key}={value}" for key, value in point.items())
                    console.print(f"  {'at' if where == 'where' else 'not at'} {at}")
            verdict = part["verdicts"].get(kind)
            console.print(f"  evidence: {verdict or f'none yet; evolvent claims {reference(part)}'}")
        if part["notes"]:
            console.print(f"\nnotes: {part['notes']}")


def reference(part: Mapping[str, Any]) -> str:
    """How a command names a recipe: one of a user's own by its file."""
    return f"{part['file']}:{part['name']}" if Path(part["file"]).is_file() else part["name"]


@click.command()
@click.argument("name", required=False, shell_complete=complete.tasks)
@json_option
def tasks(name: str | None, as_json: bool) -> None:
    """The tasks, their levels, and a problem of each.

    \b
    evolvent tasks                   all
    evolvent tasks countdown:4x12    problems and a solution of one
    """
    from evolvent.core.random import stream
    from evolvent.tasks.registry import load_task, task_table

    if name is None:
        found = task_table()
        if as_json:
            emit(found)
            return
        from rich.table import Table

        from evolvent.cli.runs import console as wide

        console, table = wide(), Table(box=None, padding=(0, 2, 0, 0))
        for column in ("task", "levels", "what it is"):
            table.add_column(column, overflow="fold")
        for row in found:
            table.add_row(row["task"], row["levels"], row["text"])
        console.print(table)
        console.print(
            "\nLevels follow a colon (arith:2x1,2x2), tasks are added with + (arith:2x1+countdown). A task of your"
        )
        console.print("own is one Python file: `evolvent new task my_task.py`. `evolvent audit TASK` tests a verifier.")
        return
    task = load_task(name)
    shown: list[dict[str, Any]] = []
    for category in task.categories:
        problem = task.draw("train", stream(0, "show", category), category)
        gold = task.gold(problem)
        shown.append(
            {
                "category": category,
                "prompt": "".join(m.content for m in problem.prompt),
                "solution": [[p.text, "policy" if p.policy else "tool"] for p in gold] if gold else None,
            }
        )
    if as_json:
        emit({"task": task.name, "max_tokens": task.max_tokens, "examples": shown})
        return
    click.echo(f"{task.name}: {len(task.categories)} categories, at most {task.max_tokens} tokens")
    for example in shown:
        pieces = example["solution"]
        solution = " ".join(text for text, _ in pieces) if pieces else "(no gold solution)"
        click.echo(f"  {example['category']:<16} {example['prompt']!r}  ->  {solution!r}")


@click.command()
@click.argument("name", required=False, shell_complete=complete.models)
@json_option
def models(name: str | None, as_json: bool) -> None:
    """The seed models: size, what they were trained on, and how well they do.

    \b
    evolvent models
    evolvent models tiny-0
    """
    import json
    import math

    from safetensors import safe_open

    from evolvent.models.load import SEEDS, seed_models

    found = seed_models()
    if name is not None:
        name = "tiny-0" if name == "tiny" else name
        if name not in found:
            raise unknown("seed model", name, ["tiny", *found], "seed models: " + ", ".join(found))
        card = SEEDS / name / ("card.json" if as_json else "README.md")
        if not card.is_file():
            raise UserError(f"{name} has no card; `evolvent pretrain` writes one")
        click.echo(card.read_text())
        return
    rows = []
    for one in found:
        config = json.loads((SEEDS / one / "config.json").read_text())
        with safe_open(SEEDS / one / "model.safetensors", "np") as weights:
            size = sum(math.prod(weights.get_slice(part).get_shape()) for part in list(weights.keys()))
        rows.append(
            {"model": one, "parameters": size, "layers": config["num_hidden_layers"], "width": config["hidden_size"]}
        )
    if as_json:
        emit(rows)
        return
    for row in rows:
        about = f"{row['parameters'] / 1e6:.2f}M parameters"
        click.echo(f"{row['model']:<10} {about}, {row['layers']} layers of width {row['width']}")
    click.echo(
        "\n`evolvent models NAME` prints the card. "
        "Any causal language model of Hugging Face works too: --model with its folder or hub id."
    )
