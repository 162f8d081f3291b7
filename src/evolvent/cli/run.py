"""`evolvent run` and `evolvent resume`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from evolvent.cli import complete
from evolvent.cli.config import config_option
from evolvent.cli.options import (
    STORE,
    emit,
    json_option,
    model_option,
    open_store,
    pairs,
    settings_option,
    store_option,
    use_threads,
)
from evolvent.core.errors import UserError
from evolvent.core.secrets import redact
from evolvent.tasks.seed_program import task_of

INTERRUPTED = 130  # exit code, as of a program that Ctrl-C ended


def live_options(command: Any) -> Any:
    """Options of commands that show a run."""
    for option in (
        click.option(
            "--threads",
            type=click.IntRange(1, 256),
            help="threads of the processor (default: all cores; 1 for small models)",
        ),
        click.option(
            "--log", "logs", multiple=True, metavar="NAME", help="jsonl, tensorboard (both by default), wandb, mlflow"
        ),
        click.option(
            "--target", type=float, help="stop when the gate accuracy (0 to 1), or a search's best value, reaches this"
        ),
        click.option(
            "--final/--no-final", default=None, help="measure on the test split before and after (not over an endpoint)"
        ),
        click.option(
            "--pool", default="", metavar="POOL", help="evaluate programs there: ray, ray:auto, ray:HOST:PORT"
        ),
        click.option("--no-report", is_flag=True, help="do not write the HTML report"),
        click.option("--quiet", is_flag=True, help="print nothing but the final table"),
    ):
        command = option(command)
    return json_option(store_option(command))


@click.command()
@click.argument("recipe", default="grpo", shell_complete=complete.recipes)
@click.option(
    "--task",
    "-t",
    default="countdown",
    show_default=True,
    help="levels after a colon: arith:2x3-chain, my_task.py",
    shell_complete=complete.tasks,
)
@model_option("a seed model, the folder or hub id of a Hugging Face model, http://host/v1#name")
@click.option(
    "--budget",
    "-b",
    default="300 steps",
    show_default=True,
    help='when to stop: "2M tokens", "10 minutes", "5k verifier calls"',
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="everything random depends on it; the same seed repeats the run exactly",
)
@settings_option("any value of the recipe (`evolvent show`)")
@click.option("--take", multiple=True, metavar="PATH=RECIPE", help="whose value to take where combined recipes differ")
@click.option("--profile", default="auto", show_default=True, help="small-scale values: tiny, or paper for none")
@click.option(
    "--seed-program", metavar="FILE", help="evolve this program, or these texts; --task is the file that evaluates"
)
@click.option("--workers", type=click.IntRange(1, 256), help="programs that are evaluated at once, in a search")
@config_option
@click.option("--name", help="name of the run (default: recipe, task and a number)")
@click.option("--device", default="cpu", show_default=True, help="cuda, cuda:1, mps")
@click.option("--dtype", default="float32", show_default=True, help="bfloat16, float16")
@click.option("--engine", default="auto", show_default=True, help="vllm if the extra is installed")
@click.option("--lora", metavar="RANK", help="train a low-rank adapter of this rank instead of all weights")
@click.option("--unsafe-no-sandbox", is_flag=True, help="run programs where no sandbox works, if you trust them")
@click.option("--skip-audit", is_flag=True, help="run even if the audit of the task's verifier fails")
@click.option("--dry-run", is_flag=True, help="say what it would cost (tokens, time, memory, disk), and stop")
@live_options
def run(**options: Any) -> int:
    """Evolve a model on a task, and show what it gained.

    \b
    evolvent run grpo --task countdown --model tiny --set propose.n=16
    evolvent run grpo+sec --task arith:2x1,2x2 --budget "200k tokens"
    evolvent run --config experiment.toml

    RECIPE is a method or several joined by + (`evolvent list`). The run is kept in the store and can be resumed,
    rolled back, exported and served.
    """
    from evolvent.run.spec import RunSpec

    tables = click.get_current_context().meta
    settings = {**tables.get("set", {}), **pairs(options["settings"], "--set")}
    if options["workers"]:
        settings |= {"judge.workers": options["workers"]}
    if options["lora"]:
        settings |= {"adapter": "Lora", "adapter.rank": options["lora"]}
    take = {**tables.get("take", {}), **pairs(options["take"], "--take")}
    if options["unsafe_no_sandbox"]:
        from evolvent.tasks.program import UNSAFE

        os.environ[UNSAFE] = "1"
    options["task"] = task_of(options["task"], options["seed_program"])
    chosen = click.get_current_context().get_parameter_source("model")
    if options["task"].startswith(("program:", "texts:")) and chosen is ParameterSource.DEFAULT:
        options["model"] = "none"  # rules vary programs, unless a model is asked to; texts are refused without one
    names = ("recipe", "task", "model", "budget", "seed", "profile", "device", "dtype", "engine")
    spec = RunSpec(**{name: options[name] for name in names}, settings=settings, take=take)
    return start(spec, options)


def start(spec: Any, options: dict[str, Any]) -> int:
    """Check, assemble, and run with a display; the exit code."""
    from evolvent.core.ledger import Budget
    from evolvent.run.ahead import find_sandbox

    Budget.parse(spec.budget)
    find_sandbox(spec.task)
    use_threads(options["threads"], options["model"])
    from evolvent.cli.display import Display
    from evolvent.lineage.replies import Replies
    from evolvent.run.assemble import assemble
    from evolvent.run.check import check_name, check_options, refuse_hopeless, refuse_unsound, refuse_workers
    from evolvent.run.session import Session

    how = _session_options(options)
    if options["name"] is not None:
        check_name(options["name"])
    check_options("", how["logs"], how["target"])
    try:
        assembled = assemble(spec, Replies())
    except UserError:
        if options["workers"]:  # what is wrong may be a key that nobody typed
            refuse_workers(spec)
        raise
    refuse_hopeless(assembled, how["target"])
    if not options["skip_audit"]:
        refuse_unsound(assembled.task, spec.task)
    if options["dry_run"]:
        from evolvent.cli.estimate import print_estimate

        print_estimate(assembled, options["as_json"], how["final"])
        return 0
    if assembled.policy.size:  # else the model is elsewhere, or there is none
        warn_of_memory(assembled)
    warn_of_leaks(assembled)
    store = open_store(options["store_"])
    with Display(f"{spec.recipe} on {spec.task}, {spec.model}", spec.budget, options["quiet"]) as display:
        watch = watching(display, assembled)
        session = Session(store, spec, options["name"] or "", watch=watch, say=display.say, **how)
        with telling_how_to_go_on(lambda: session.name, options):
            result = session.start(assembled)
    return finish(result, store, options)


@contextmanager
def telling_how_to_go_on(name: Callable[[], str], options: dict[str, Any]) -> Iterator[None]:
    """A note for what ends a run and is no `UserError`, which says itself what to do."""
    try:
        yield
    except UserError:
        raise
    except Exception as reason:
        if name():
            reason.add_note(f"once that is mended: evolvent resume {name()}{where(options['store_'])}")
        raise


def watching(display: Any, assembled: Any) -> Callable[[Any], None]:
    """The display, which also says what is wrong with the seed program of a search once that is evaluated."""
    from evolvent.run.notes import troubled_seed

    def watch(progress: Any) -> None:
        display(progress)
        if progress.t == 1 and (line := troubled_seed(assembled)):
            display.say(line)

    return watch


def warn_of_memory(assembled: Any) -> None:
    """Say where memory may be short."""
    from evolvent.cli.estimate import memory_warning

    if warning := memory_warning(assembled):
        click.echo(f"evolvent: {warning}", err=True)


def warn_of_leaks(assembled: Any) -> None:
    """Say where a model would read the value that it is to reach."""
    from evolvent.run.leak import warnings

    for warning in warnings(assembled):
        click.echo(f"evolvent: {warning}", err=True)


def _session_options(options: dict[str, Any]) -> dict[str, Any]:
    from evolvent.run.log import DEFAULT

    return {
        "logs": options["logs"] or DEFAULT,
        "target": options["target"],
        "final": options["final"],
        "command": shlex.join(["evolvent", *sys.argv[1:]]),
        "where": where(options["store_"]),
        "pool": options["pool"],
    }


def where(store: str) -> str:
    """What commands that are suggested need to find the store again."""
    return "" if store == STORE else f" --store {shlex.quote(redact(store))}"


def finish(result: Any, store: Any, options: dict[str, Any]) -> int:
    """Report and table; the exit code, which is 130 for a run that Ctrl-C stopped."""
    from evolvent.cli.table import print_final

    report: Path | None = None
    if not options["no_report"] and not result.interrupted:
        from evolvent.lineage.report import write_report

        report = write_report(store, result.name)
    if options["as_json"]:
        emit(
            {
                "run": result.name,
                "status": result.view.status,
                "steps": len(result.view.steps),
                "evaluations": result.evaluations,
                "rescored": result.view.rescored,
                "best": result.best,
                "spent": result.view.spent,
                "report": str(report) if report else None,
                "checkpoint": str(result.folder / "checkpoint.safetensors"),
            }
        )
    else:
        print_final(result, report, where(options["store_"]))
    return INTERRUPTED if result.interrupted else 0


@click.command()
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
@click.option("--budget", "-b", help="a larger budget than the run began with")
@click.option("--workers", type=click.IntRange(1, 256), help="programs that are evaluated at once, in a search")
@live_options
def resume(name: str, budget: str | None, workers: int | None, **options: Any) -> int:
    """Carry on a run that was stopped or killed, from its last checkpoint, to the same bits.

    \b
    evolvent resume last
    evolvent resume grpo-countdown-1 --budget "600 steps"

    After a rollback the run goes on from the version that it went back to.
    """
    from evolvent.cli.display import Display
    from evolvent.core.ledger import Budget
    from evolvent.lineage.runs import read_run
    from evolvent.run.session import resume as carry_on

    if budget is not None:
        Budget.parse(budget)
    store = open_store(options["store_"], create=False)
    view = read_run(store, name)
    threads = options["threads"] or view.environment.get("threads")  # sums depend on their number
    use_threads(threads, view.spec["model"])
    title = f"{view.spec['recipe']} on {view.spec['task']}, {view.spec['model']} (resumed)"
    with Display(title, budget or view.spec["budget"], options["quiet"]) as display:
        session = {k: v for k, v in _session_options(options).items() if k != "command"}
        with telling_how_to_go_on(lambda: view.name, options):
            result = carry_on(
                store, view.name, budget=budget, workers=workers, watch=display, say=display.say, **session
            )
    return finish(result, store, options)
