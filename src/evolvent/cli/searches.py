"""What `evolvent compare` does and prints where arms are searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evolvent.cli.options import emit, kept_in, pairs
from evolvent.cli.runs import console as wide
from evolvent.core.errors import UserError

BUDGET = "200 evaluations"  # without --budget: steps of searches differ in evaluations


def compare_methods(
    arms: Sequence[str],
    task: str,
    loaded: Any,
    picture: Path,
    jobs: int,
    as_json: bool,
    console: Any,
    options: Mapping[str, Any],
) -> None:
    """Run searches against each other and the baselines; table and picture. `UserError` for what cannot be compared."""
    from evolvent.bench.compare import parse_arm, plot
    from evolvent.bench.search_compare import compare_searches, named
    from evolvent.core.recipe import parse_composition
    from evolvent.recipes import all_recipes, resolve

    if options["test"]:
        raise UserError("searches are tested on their own task, anew; leave out --test")
    parsed = [named(parse_arm(a)) for a in arms]
    for arm in parsed:
        parse_composition(resolve(arm.recipe), all_recipes())
    result = compare_searches(
        parsed,
        task,
        options["model"] or "none",
        options["budget"] or BUDGET,
        options["seeds"],
        pairs(options["settings"], "--set"),
        jobs,
        options["baselines"],
        say=lambda line: console.print(line),
        kept=kept_in(options["store_"]),
    )
    known = getattr(getattr(loaded, "world", None), "known", ())
    if as_json:
        emit(
            {
                "task": task,
                "budget": str(result.budget),
                "seeds": result.seeds,
                "arms": result.table(),
                "known": known,
                "picture": str(picture),
            }
        )
        plot(result, picture)  # last: where it cannot be written, what was measured has been said
        return
    print_searches(result)
    for value, who, when in known:
        click.echo(f"Best known: {value:z.10g}, {who}, {when}")
    plot(result, picture)
    click.echo(f"Best values over the budget: {picture}")


def print_searches(result: Any) -> None:
    """The table of a comparison of searches."""
    from rich.table import Table

    from evolvent.bench.search_compare import unit_name

    budget = f"{result.budget.amount:,.6g} {unit_name(result.budget.unit)}"
    table = Table(
        title=f"{result.task}, {budget}, {len(result.seeds)} paired seeds; means [97.5 % intervals]",
        title_justify="left",
    )
    rows = result.table()
    spent = ["verifier_calls", "verifier_seconds"]
    spent += [unit for unit in ("sampled", "money") if any(row["spent"].get(unit) for row in rows)]
    names = ("arm", "best in the search", "evaluated anew", "difference to the first", "best of all", "valid")
    for name in (*names, *map(unit_name, spent)):
        table.add_column(name)
    for row in rows:
        table.add_row(
            row["arm"],
            show(row["best"]),
            f"{show(row['rescored'])}{luck(row, len(result.seeds))}",
            show(row.get("difference")),
            f"{row['most']:z.8g}",
            f"{100 * row['valid']:.0f} %",
            *(f"{row['spent'].get(unit, 0.0):,.4g}" for unit in spent),
        )
    wide().print(table)
    click.echo(f"The seed program has {rows[0]['start']:z.8g}; higher is better. Nothing beyond the budget counts.")
    for row in rows:
        if row["stuck"]:
            click.echo(
                f"{row['arm']} ended before its budget on {row['stuck']} of {len(result.seeds)} seeds: "
                "nothing new that could be evaluated came of it any more."
            )


def show(interval: Any) -> str:
    """An interval, or nothing."""
    if interval is None:
        return ""
    return f"{interval.mean:z.6g} [{interval.low:z.6g}, {interval.high:z.6g}]"


def luck(row: Mapping[str, Any], seeds: int) -> str:
    """What a reader has to know of the values anew."""
    if row["rescored"] is None:
        return "not valid any more"
    return "" if row["reproduced"] == seeds else " (noisy)"


def print_search_runs(rows: Sequence[Mapping[str, Any]]) -> None:
    """The table of finished searches."""
    from rich.table import Table

    table = Table(title="finished searches", title_justify="left")
    columns = ("run", "recipe", "seed", "best in the search", "evaluated anew", "evaluations", "CPU seconds", "valid")
    for name in columns:
        table.add_column(name)
    for row in rows:
        anew = row["rescored"]["value"] if row["rescored"] else None
        table.add_row(
            row["run"],
            row["recipe"],
            str(row["seed"]),
            f"{row['best']:z.10g}",
            "" if anew is None else f"{anew:z.10g}",
            f"{row['spent']['verifier_calls']:,.0f}",
            f"{row['spent']['verifier_seconds']:,.4g}",
            f"{100 * row['valid']:.0f} %",
        )
    wide().print(table)
