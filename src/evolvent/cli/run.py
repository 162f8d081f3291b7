"""`evolvent run` and `evolvent resume`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from evolvent.cli.options import emit, json_option, open_store, pairs, read_config, store_option, use_threads

INTERRUPTED = 130  # exit code, as of a program that Ctrl-C ended


def live_options(command: Any) -> Any:
    """Options of commands that show a run."""
    for option in (
        click.option("--threads", type=click.IntRange(1), help="threads of the processor (default: all cores)"),
        click.option(
            "--log", "logs", multiple=True, metavar="NAME", help="jsonl, tensorboard (both by default), wandb, mlflow"
        ),
        click.option("--target", type=float, help="stop when the gate accuracy reaches this"),
        click.option("--no-final", is_flag=True, help="skip the measurements on the test split at start and end"),
        click.option("--no-report", is_flag=True, help="do not write the HTML report"),
        click.option("--quiet", is_flag=True, help="print nothing but the final table"),
    ):
        command = option(command)
    return json_option(store_option(command))


@click.command()
@click.argument("recipe", required=False)
@click.option("--task", "-t", help="a task, levels after a colon: countdown, arith:2x3-chain, my_task.py")
@click.option("--model", "-m", help="a seed model, the folder or hub id of a Hugging Face model, http://host/v1#name")
@click.option("--budget", "-b", help='when to stop: "300 steps", "2M tokens", "10 minutes", "5k verifier calls"')
@click.option("--seed", type=int, help="everything random depends on it; the same seed repeats the run exactly")
@click.option(
    "--set", "-s", "settings", multiple=True, metavar="PATH=VALUE", help="any value of the recipe (`evolvent show`)"
)
@click.option("--take", multiple=True, metavar="PATH=RECIPE", help="whose value to take where combined recipes differ")
@click.option("--profile", help="small-scale values: auto (default), tiny, paper")
@click.option("--config", metavar="FILE", help="a TOML file with these options; options given here win")
@click.option("--name", help="name of the run (default: recipe, task and a number)")
@click.option("--device", help="cpu (default), cuda, cuda:1, mps")
@click.option("--dtype", help="float32 (default), bfloat16, float16")
@click.option("--engine", help="auto (default), or vllm if the extra is installed")
@click.option("--lora", metavar="RANK", help="train a low-rank adapter of this rank instead of all weights")
@click.option("--skip-audit", is_flag=True, help="run even if the audit of the task's verifier fails")
@click.option("--dry-run", is_flag=True, help="say what it would cost (tokens, time, memory, disk), and stop")
@live_options
def run(recipe: str | None, **options: Any) -> int:
    """Evolve a model on a task, and show what it gained.

    \b
    evolvent run grpo --task countdown --model tiny
    evolvent run grpo+sec --task arith:2x1,2x2,3x2 --budget "200k tokens" --set propose.n=16
    evolvent run --config experiment.toml

    RECIPE is a method or several joined by + (`evolvent list`). The run is kept in the store and can be resumed,
    rolled back, exported and served.
    """
    from evolvent.run.spec import RunSpec

    given = read_config(options["config"]) if options["config"] else {}
    defaults = {"recipe": "grpo", "task": "countdown", "model": "tiny", "budget": "300 steps", "seed": 0}
    defaults |= {"profile": "auto", "device": "cpu", "dtype": "float32", "engine": "auto"}
    named = {k: options.get(k) for k in defaults if k != "recipe"} | {"recipe": recipe}
    chosen = {k: v if v is not None else given.get(k, defaults[k]) for k, v in named.items()}
    settings = {**given.get("set", {}), **pairs(options["settings"], "--set")}
    if options["lora"]:
        settings |= {"adapter": "Lora", "adapter.rank": options["lora"]}
    take = {**given.get("take", {}), **pairs(options["take"], "--take")}
    spec = RunSpec(**chosen, settings=settings, take=take)
    for key in ("threads", "target", "name"):
        options[key] = options[key] if options[key] is not None else given.get(key)
    return start(spec, options)


def start(spec: Any, options: dict[str, Any]) -> int:
    """Check, assemble, and run with a display; the exit code."""
    from evolvent.core.ledger import Budget

    Budget.parse(spec.budget)
    use_threads(options["threads"])
    from evolvent.cli.display import Display
    from evolvent.run.assemble import assemble
    from evolvent.run.session import Session

    assembled = assemble(spec)
    if options["dry_run"]:
        from evolvent.cli.estimate import print_estimate

        print_estimate(assembled, options["as_json"])
        return 0
    if not options["skip_audit"]:
        from evolvent.run.check import refuse_unsound

        refuse_unsound(assembled.task, spec.task)
    from evolvent.lineage.runs import free_name

    store = open_store(options["store_"])
    name = options["name"] or free_name(store, spec.recipe, spec.task)
    with Display(f"{spec.recipe} on {spec.task}, {spec.model}", spec.budget, options["quiet"]) as display:
        session = Session(store, spec, name, watch=display, say=display.say, **_session_options(options))
        result = session.start(assembled)
    return finish(result, store, options)


def _session_options(options: dict[str, Any]) -> dict[str, Any]:
    from evolvent.run.log import DEFAULT

    return {
        "logs": options["logs"] or DEFAULT,
        "target": options["target"],
        "final": not options["no_final"],
        "command": shlex.join(["evolvent", *sys.argv[1:]]),
    }


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
                "spent": result.view.spent,
                "report": str(report) if report else None,
                "checkpoint": str(result.folder / "checkpoint.safetensors"),
            }
        )
    else:
        print_final(result, report)
    return INTERRUPTED if result.interrupted else 0


@click.command()
@click.argument("name", metavar="RUN")
@click.option("--budget", "-b", help="a larger budget than the run began with")
@live_options
def resume(name: str, budget: str | None, **options: Any) -> int:
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

    if budget:
        Budget.parse(budget)
    store = open_store(options["store_"], create=False)
    view = read_run(store, name)
    use_threads(options["threads"] or view.environment.get("threads"))  # sums depend on the number of threads
    title = f"{view.spec['recipe']} on {view.spec['task']}, {view.spec['model']} (resumed)"
    with Display(title, budget or view.spec["budget"], options["quiet"]) as display:
        session = {k: v for k, v in _session_options(options).items() if k != "command"}
        result = carry_on(store, view.name, budget=budget, watch=display, say=display.say, **session)
    return finish(result, store, options)
