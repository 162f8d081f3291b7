"""`evolvent compare` and `evolvent claims`."""

from __future__ import annotations

import math
import os
from pathlib import Path
from statistics import fmean
from typing import Any

import click
from click.core import ParameterSource

from evolvent.cli import complete
from evolvent.cli.options import (
    emit,
    json_option,
    kept_in,
    model_option,
    open_store,
    pairs,
    settings_option,
    store_option,
)
from evolvent.cli.runs import console as wide
from evolvent.core.errors import UserError, unknown
from evolvent.lineage.figures import NOTHING, percent, share
from evolvent.tasks.seed_program import task_of

PICTURES = (".png", ".svg", ".pdf")


@click.command()
@click.argument("arms", nargs=-1, required=True, shell_complete=complete.recipes)
@click.option("--task", "-t", help="the task that all arms train on", shell_complete=complete.tasks)
@click.option(
    "--test",
    default="",
    help="the task that they are tested on, if another (its test split)",
    shell_complete=complete.tasks,
)
@model_option("`tiny` takes its four checkpoints in turn, seed by seed")
@click.option(
    "--budget",
    "-b",
    default="200 steps",
    show_default=True,
    help='of every arm and seed: "2M tokens", "300 steps", ...',
)
@click.option("--seeds", "-n", default=8, show_default=True, help="paired seeds")
@settings_option("for all arms; for one: 'grpo[propose.n=4]'")
@click.option("--problems", default=1000, show_default=True, help="test problems")
@click.option("--seed-program", default="", help="of searches: the program or texts that --task evaluates")
@click.option(
    "--baselines/--no-baselines", default=True, help="of searches: random, independent and sequential sampling beside"
)
@click.option("--skip-audit", is_flag=True, help="compare even if the audit of the task's verifier fails")
@click.option("--jobs", "-j", type=click.IntRange(1), help="processes, one thread each (default: all cores)")
@click.option("--picture", default="compare.png", show_default=True, help="where to draw the learning curves")
@store_option
@json_option
def compare(
    arms: tuple[str, ...], task: str | None, jobs: int | None, picture: str, as_json: bool, store_: str, **o: Any
) -> None:
    """Compare methods at equal budget on paired seeds: table, learning curves with bands, spending.

    \b
    evolvent compare grpo dr-grpo no-change --task arith --budget "200 steps"
    evolvent compare grpo 'grpo[propose.n=16]' --task countdown --budget 1M-tokens
    evolvent compare grpo-countdown-1 rloo-countdown-1      two finished runs
    evolvent compare hill-climbing --task program:circle-packing:26 --seeds 8

    The first arm is the one that the others are compared with. Runs of unequal budgets are not ranked.
    What was interrupted is carried on by the same command.
    """
    from evolvent.bench.compare import compare as run_comparison
    from evolvent.bench.compare import parse_arm, plot
    from evolvent.core.recipe import parse_composition
    from evolvent.recipes import all_recipes, resolve
    from evolvent.run.check import refuse_unsound
    from evolvent.tasks.evaluation import judges_answers
    from evolvent.tasks.registry import load_task

    console = wide(stderr=True)
    if Path(picture).suffix not in PICTURES or not Path(picture).parent.is_dir():
        raise UserError(
            f"cannot draw {picture}; name a file in a folder that is there, ending in {', '.join(PICTURES)}"
        )
    if task is None:
        finished_runs(arms, store_, as_json)
        return
    task = task_of(task, o["seed_program"])
    loaded = load_task(task)
    if not judges_answers(loaded):
        from evolvent.cli.searches import compare_methods

        source = click.get_current_context().get_parameter_source
        o |= {name: None for name in ("model", "budget") if source(name) is ParameterSource.DEFAULT}
        how = o | {"store_": store_}
        compare_methods(arms, task, loaded, Path(picture), jobs or os.cpu_count() or 1, as_json, console, how)
        return
    parsed = [parse_arm(a) for a in arms]
    for arm in parsed:
        parse_composition(resolve(arm.recipe), all_recipes())
    if len(parsed) < 2:
        raise UserError("compare needs at least two arms; `no-change` is a good second one")
    if not o["skip_audit"]:
        refuse_unsound(loaded, task)
    result = run_comparison(
        parsed,
        task,
        o["model"],
        o["budget"],
        o["seeds"],
        pairs(o["settings"], "--set"),
        test=o["test"],
        jobs=jobs or os.cpu_count() or 1,
        problems=o["problems"],
        say=lambda line: console.print(line),
        kept=kept_in(store_),
    )
    if as_json:
        emit(
            {
                "task": task,
                "budget": str(result.budget),
                "seeds": result.seeds,
                "arms": result.table(),
                "picture": picture,
            }
        )
        plot(result, Path(picture))  # last: where it cannot be written, what was measured has been said
        return
    print_comparison(result)
    plot(result, Path(picture))
    click.echo(f"Learning curves: {picture}")


def finished_runs(names: tuple[str, ...], store_: str, as_json: bool) -> None:
    """Compare runs of the store, of models or of searches."""
    from evolvent.bench.compare import compare_runs
    from evolvent.bench.search_compare import compare_search_runs
    from evolvent.cli.searches import print_search_runs
    from evolvent.lineage.runs import read_run, run_names

    if (Path(store_) / "store.db").is_file():
        store = open_store(store_)
        known = run_names(store)
        if set(names) & set(known):
            if strange := [a for a in names if a not in known]:
                raise unknown("run", strange[0], known, "`evolvent runs` lists them; --task runs methods")
            views = [read_run(store, a) for a in names]
            searches = any(v.candidates for v in views)
            rows = compare_search_runs(views) if searches else compare_runs(views)
            if as_json:
                emit(rows)
            else:
                (print_search_runs if searches else print_runs)(rows)
            return
    raise UserError("compare needs --task (or the names of finished runs); `evolvent tasks` lists tasks")


def print_comparison(result: Any) -> None:
    """The table of a comparison."""
    from rich.table import Table

    table = Table(
        title=f"{result.task}, {result.budget}, {len(result.seeds)} paired seeds; % [97.5 % interval]",
        title_justify="left",
    )
    rows = result.table()
    columns = [c for c in ("sampled", "greedy", "pass@16") if c in rows[0]]
    for name in ("arm", "start", *columns, "sampled: difference to the first", "tokens sampled", "seconds"):
        table.add_column(name)
    for row in rows:
        difference = show(row["difference"], "+") if "difference" in row else ""
        spent = row["spent"]
        table.add_row(
            row["arm"],
            share(row["start"]),
            *[show(row[c]) for c in columns],
            difference,
            f"{spent['sampled']:,.0f}",
            f"{spent['seconds']:.0f}",
        )
    console = wide()
    console.print(table)
    for row in rows:
        if row["errors"] or row["failed"]:
            console.print(
                f"Errors of {row['arm']}, left out: {row['errors']:,} in training, {row['failed']:,} when it was tested"
            )


def print_runs(rows: list[dict[str, Any]]) -> None:
    """The table of finished runs."""
    from rich.table import Table

    table = Table(title="finished runs, test accuracy in %", title_justify="left")
    for name in ("run", "recipe", "seed", "greedy", "sampled", "pass@16"):
        table.add_column(name)
    for r in rows:
        cells = [percent(r[c]) for c in ("greedy", "sampled", "pass_at_k")]
        table.add_row(r["run"], r["recipe"], str(r["seed"]), *cells)
    console = wide()
    console.print(table)
    for r in rows:
        if r["errors"]:
            console.print(f"Errors of {r['run']}, left out: {r['errors']:,} when it was tested")


def show(interval: Any, sign: str = "") -> str:
    """An interval in per cent; with `sign` "+" of a difference."""
    return percent([interval.mean, interval.low, interval.high], sign)


@click.command()
@click.argument("names", nargs=-1, shell_complete=complete.recipes)
@click.option(
    "--stale", "only_stale", is_flag=True, help="name the evidence that a change of code or models has invalidated"
)
@click.option(
    "--carry",
    is_flag=True,
    help="after a change of form: run one cell of each configuration again; if it comes out the same, so will the rest",
)
@click.option(
    "--before",
    metavar="FOLDER",
    help="with --carry: a checkout of the code as it was measured; what comes out otherwise is run there, too, since "
    "processors differ in the last digits",
)
@click.option(
    "--pilot",
    is_flag=True,
    help="only seeds 1000-1003, to see whether a regime tells the arms apart: nothing is registered, nothing decided",
)
@click.option("--register", is_flag=True, help="only write the claims down, before anything is measured")
@click.option("--jobs", "-j", type=click.IntRange(1), help="processes, one thread each (default: all cores)")
@click.option("--evidence", "folder", default="evidence", show_default=True, help="folder of the evidence files")
@json_option
def claims(
    names: tuple[str, ...],
    only_stale: bool,
    carry: bool,
    before: str | None,
    pilot: bool,
    register: bool,
    jobs: int | None,
    folder: str,
    as_json: bool,
) -> None:
    """Measure what recipes claim, by the protocol: tuning on seeds 1000-1003, verdict on seeds 0-7 (and 8-15 once).

    \b
    evolvent claims mc-grpo sec    measure what is missing, cell by cell
    evolvent claims                what has been measured
    evolvent claims sec --pilot    a look at claims that are still being written
    evolvent claims --stale        what would have to be measured again
    evolvent claims --carry        the same, taking over what no change touched

    Every finished cell is kept in evidence/cells, so that measuring can be stopped and carried on; the verdicts in
    evidence/NAME.json are computed from them.
    """
    from evolvent.bench.carry import Carry
    from evolvent.bench.claims import Study, stale
    from evolvent.bench.evidence import Evidence
    from evolvent.recipes import all_recipes, resolve

    console = wide(stderr=True)
    evidence = Evidence(Path(folder))
    known = all_recipes()
    names = tuple(resolve(name) for name in names)
    for name in names:
        if name not in known:
            raise unknown("recipe", name, known, "`evolvent list` shows all")
    if (only_stale or (carry and not names)) and not evidence.names():
        raise UserError(
            f"there is no evidence in {evidence.root.resolve()}; go where it is, or name it by --evidence FOLDER"
        )
    if only_stale:
        found = stale(evidence)
        if as_json:
            emit(found)
        for name, changed in () if as_json else found.items():
            click.echo(f"{name}: {', '.join(changed[:6])}{' ...' if len(changed) > 6 else ''}")
        if not found and not as_json:
            click.echo("all evidence rests on the code as it is")
        return
    if before and (not carry or not (Path(before) / "src" / "evolvent").is_dir()):
        raise UserError(
            f"--before {before} goes with --carry, and is a folder with src/evolvent in it, a checkout of the code as "
            "it was measured"
        )
    if carry + register + pilot > 1:
        raise UserError(
            "--pilot only looks, --register only writes claims down, and --carry measures; give one of them"
        )
    if pilot and not names:
        raise UserError("--pilot looks at claims that are still being written; name their recipe")
    if carry and not names:
        names = _to_carry(evidence)
        if not names:
            return
    kind = Carry if carry else Study
    results: list[Any] = []
    for name in names or evidence.names():
        if names:
            study = kind(known[name], evidence, jobs or os.cpu_count() or 1, lambda line: console.print(line))
            if not register and not pilot and not evidence.names():
                console.print(f"no evidence in {evidence.root.resolve()} yet: all is measured", soft_wrap=True)
            if isinstance(study, Carry):
                study.before = Path(before) if before else None
            results.append(study.pilot() if pilot else study.register() if register else study.measure())
        else:
            results.append(evidence.read(name))
    if as_json:
        emit(results)
        return
    if not results:
        click.echo(f"nothing has been measured yet in {folder}; name recipes to measure")
    for data in results:
        (print_pilot if pilot else print_claims)(data)


def print_pilot(data: dict[str, Any]) -> None:
    """What claims come to on the seeds of tuning: means of the arms, and the effect with its interval."""
    from rich.text import Text

    from evolvent.bench.grid import label

    console = wide()
    console.print(Text(data["id"], "bold"), f"  world: {data['world']}, seeds 1000 to 1003: no verdict", sep="")
    for claim in data["pilot"]:
        console.print(f"  {claim['kind']}: {claim['text']}")
        for part in claim["components"]:
            unit = ", in logarithms" if part["scale"] == "log" else ""
            console.print(f"    {label(part)}: {fmean(part['ours']):.4g} (delta {part['delta']:g}{unit})")
            for test in part["tests"]:
                low, high = test["interval"]
                theirs = fmean(part["baselines"][test["baseline"]])
                effect = f"better by {test['effect']:+.4g} [{low:+.4g}, {high:+.4g}]"
                console.print(f"      {test['baseline']}: {theirs:.4g}, ours {effect}")
    cells, minutes = data["spent"]["cells"], data["spent"]["cpu_minutes"]
    console.print(
        f"  {cells} cells of {60 * minutes / max(1, cells):.0f} s so far; delta is at most half of what is expected"
    )


def _to_carry(evidence: Any) -> tuple[str, ...]:
    """The recipes whose code has changed since they were measured; what is left out is named."""
    from evolvent.bench.claims import NEW_CLAIMS, stale
    from evolvent.recipes import all_recipes

    found = stale(evidence)
    names = [n for n, changed in found.items() if n in all_recipes() and NEW_CLAIMS not in changed]
    names = [n for n in names if (evidence.read(n) or {}).get("claims")]
    for name in sorted(set(found) - set(names)):
        click.echo(f"{name} is left out: {found[name][0]}; name it to measure it", err=True)
    if not names:
        click.echo("there is nothing to take over")
    return tuple(names)


def print_claims(data: dict[str, Any]) -> None:
    """The verdicts of one recipe."""
    from rich.text import Text

    from evolvent.bench.grid import label

    console = wide()
    console.print(Text(data["id"], "bold"), f"  world: {data['world']}", sep="")
    for claim in data["claims"]:
        console.print(f"  {claim['kind']}: ", Text(claim["verdict"], "bold"), f"  {claim['text']}", sep="")
        for part in claim["components"]:
            for test in part["tests"]:
                low, high = test["interval"]
                effect = f"{test['effect']:+.4g} [{low:+.4g}, {high:+.4g}]"
                effect = NOTHING if math.isnan(test["effect"]) else effect
                console.print(
                    f"    {label(part)} against {test['baseline']}: {effect} {test['verdict']} "
                    f"({len(claim['seeds'])} seeds, delta {part['delta']:g})"
                )
        for arm, count in claim.get("failed", {}).items():
            console.print(f"    {count:,} answers of {arm} could not be judged and are left out")
    if not data["claims"]:
        console.print("  registered, not measured yet")
