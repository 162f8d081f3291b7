"""`evolvent audit`, `new`, `pretrain`, `completion`."""

from __future__ import annotations

import builtins
import keyword
import re
import shlex
import time
from pathlib import Path

import click

from evolvent.cli import complete
from evolvent.cli.options import emit, json_option
from evolvent.core.errors import UserError
from evolvent.core.files import whole

TASK = '''"""A task of your own: problems and a reward. See docs/write-a-task.md.

    evolvent audit {file}
    evolvent run grpo --task {file} --model tiny
"""

import itertools


def problems():
    """Rows with a `prompt`, no two the same; the other columns are handed to `reward` by name."""
    for letters in itertools.islice(itertools.permutations("abcdefgh"), 0, None, 20):
        word = "".join(letters)
        yield {{"prompt": f"rev {{word}}=", "answer": word[::-1]}}


def reward(completion, answer):
    """1 if right, 0 if wrong. Raise if judging fails: an error is never a reward."""
    return float(completion.strip() == answer)


def gold(answer):
    """A right answer, so that `evolvent audit` can check that it scores 1 (may be left out)."""
    return answer
'''
IMPORTED = ("np", "claim", "down", "up", "put", "recipe")  # names in the file of a recipe
RECIPE = '''"""{title}: say in one line what it does.

Source, with the formula as it stands there:

    advantage = score - mean of the group, where it is positive, else 0

    evolvent show {file}:{name}
    evolvent compare grpo {file}:{name} --task countdown
"""

import numpy as np

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.policy_gradient.grpo import grpo


def better_than_the_group(advantages: np.ndarray) -> np.ndarray:
    """Rows that take part in the update, bool [group]."""
    return advantages > 0


{variable} = recipe(
    "{name}",
    grpo,
    put("credit.rows", better_than_the_group),
    title="{title}",
    mechanism=claim(
        "fewer rows take part in an update",
        down("train.learn/rows", 10, "grpo"),
        task="countdown",
        budget="100 steps",
    ),
    outcome=claim("higher held-out accuracy", up("test.sampled", 0.02, "grpo"), task="countdown", budget="100 steps"),
)
'''


@click.command()
@click.argument("task", shell_complete=complete.tasks)
@click.option("--problems", default=64, show_default=True, help="problems that every check looks at")
@json_option
def audit(task: str, problems: int, as_json: bool) -> None:
    """Test a task's verifier before a model is trained on it.

    Gold answers must score 1; empty, garbage, concatenated and many-candidate answers must not; failures must be errors
    and not rewards; the splits must share no problem. `evolvent run` refuses a task that fails.

    \b
    evolvent audit countdown
    evolvent audit my_task.py
    """
    from evolvent.tasks.audit import audit as run_audit
    from evolvent.tasks.registry import load_task

    report = run_audit(load_task(task), problems=problems)
    if as_json:
        emit(report.as_dict())
    else:
        click.echo(report.table())
    if report.failed:
        raise click.exceptions.Exit(2)


@click.command()
@click.argument("kind", type=click.Choice(["task", "recipe"]))
@click.argument("file")
def new(kind: str, file: str) -> None:
    """Write a file to start from: a task of your own, or a recipe.

    \b
    evolvent new task my_task.py
    evolvent new recipe my_method.py
    """
    path = Path(file)
    if path.suffix != ".py":
        raise UserError(f"{file} should end in .py; for example: evolvent new {kind} my_{kind}.py")
    if path.exists():
        raise UserError(f"{file} exists already; choose another name")
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {path.parent}; make it first")
    variable = re.sub(r"\W+", "_", path.stem, flags=re.ASCII).strip("_").lower() or "mine"
    taken = {*dir(builtins), *(n.replace("-", "_") for n in complete.recipe_names()), *IMPORTED}
    if keyword.iskeyword(variable) or variable[0].isdigit() or variable in taken:
        variable = f"my_{variable}"
    name = variable.replace("_", "-")
    title = name.replace("-", " ").capitalize()
    text = TASK if kind == "task" else RECIPE
    with whole(path) as part:
        part.write_text(text.format(file=shlex.quote(file), name=name, variable=variable, title=title))
    click.echo(f"wrote {file}; its first lines say what to do next")


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--shape", default="tiny", show_default=True, help="tiny or small, as the models that ship, or LAYERSxWIDTH"
)
@click.option("--seed", default=0, show_default=True, help="of the weights and of the examples")
@click.option(
    "--steps",
    type=click.IntRange(1),
    help="training steps (default: as many as the shipped model had); measuring comes after them",
)
@click.option("--card/--no-card", default=True, show_default=True, help="measure the model when it is done")
def pretrain(out: Path, shape: str, seed: int, steps: int | None, card: bool) -> None:
    """Make a seed model from nothing: tasks of this package, one thread, the same bits every time.

    \b
    evolvent pretrain models/tiny-9 --seed 9

    It can be interrupted and called again with the same arguments. The shipped models were made in this way.
    """
    from evolvent.bench.card import measure, write_card
    from evolvent.cli.display import duration
    from evolvent.models.load import load_policy
    from evolvent.models.mixture import seed_mixture
    from evolvent.models.pretrain import Progress
    from evolvent.models.pretrain import pretrain as train
    from evolvent.models.shipped import shape_of, steps_of

    if (out / "model.safetensors").exists():
        raise UserError(f"there is a model in {out} already and nothing is overwritten; choose another folder")
    begun = time.perf_counter()
    told = 0.0

    def show(p: Progress) -> None:
        nonlocal told
        now = time.perf_counter()
        if now - told > 5:
            told = now
            line = f"step {p.step:,} of {p.steps:,}  loss {p.loss:.3f}  {p.tokens_per_second:,.0f} tokens/s"
            click.echo(p.note or f"{line}  left {duration(p.eta)}", err=True)

    train(seed_mixture(), shape_of(shape), seed, steps or steps_of(shape), out, show)
    click.echo(f"trained in {duration(time.perf_counter() - begun)}: {out}", err=True)
    if card:
        write_card(out, measure(load_policy(str(out)), progress=lambda name: click.echo(f"measuring {name}", err=True)))
        click.echo(f"card: {out / 'README.md'}")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    \b
    evolvent completion bash >> ~/.bashrc
    evolvent completion zsh  >> ~/.zshrc
    evolvent completion fish > ~/.config/fish/completions/evolvent.fish
    """
    from click.shell_completion import get_completion_class

    from evolvent.cli.main import COMPLETE, cli

    make = get_completion_class(shell)
    assert make is not None
    click.echo(make(cli, {}, "evolvent", COMPLETE).source())
