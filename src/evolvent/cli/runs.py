"""What happened, and how to go back: `runs`, `lineage`, `diff`, `rollback`, `export`, `report`, `gc`."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

import click

from evolvent.cli import complete
from evolvent.cli.options import emit, json_option, open_store, store_option
from evolvent.lineage.figures import percent, share

LINE = 400  # columns of what is searched line by line, in a pipe


def console(width: int = 140, stderr: bool = False) -> Any:
    """For tables: as wide as the terminal, or as said in a file or pipe. Brackets are what they are, no markup: arms,
    files and errors have them; what has a style is a `Text`."""
    from rich.console import Console

    made = Console(highlight=False, markup=False, stderr=stderr)
    return made if made.is_terminal else Console(highlight=False, markup=False, stderr=stderr, width=width)


def table(*columns: str) -> Any:
    """A plain table."""
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 0))
    for name in columns:
        made.add_column(name, overflow="fold", no_wrap=name == "run")  # so that it can be copied
    return made


def when(seconds: float) -> str:
    """`2026-03-01 14:05`, local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def change(evaluations: dict[str, Any], key: str = "sampled") -> str:
    """`18.5 -> 41.2`: test accuracy in per cent, before and after."""
    found = [share(evaluations[n]["evaluation"][key]["mean"]) for n in ("start", "evolved") if n in evaluations]
    return " -> ".join(found)


def best_value(view: Any) -> float | None:
    """The best value that a search has found; None of anything else."""
    return next(reversed(view.values("best")), None)


def outcome(view: Any, gate: float | None) -> str:
    """What a run has come to: a search's best value, and what its winner is worth when it is evaluated anew; or
    accuracy on the test split, or else on the gate split."""
    best = best_value(view)
    if best is not None:
        anew = view.rescored and view.rescored.get("value")
        return f"best {best:z.6g}" + (f", anew {anew:z.6g}" if anew is not None else "")
    if view.evaluations:
        return f"test {change(view.evaluations)} %"
    return "" if gate is None else f"gate {100 * gate:.1f} %"


@click.command()
@store_option
@json_option
def runs(store_: str, as_json: bool) -> None:
    """The runs in the store, the latest last.

    A run whose process was killed counts as interrupted; `evolvent resume RUN` carries it on.
    """
    from evolvent.lineage.runs import list_runs

    views = list_runs(open_store(store_, create=False))
    rows = []
    for v in views:
        head = next((x.evidence for x in v.versions if x.number == v.head), {})
        rows.append(
            {
                "run": v.name,
                "recipe": v.spec["recipe"],
                "task": v.spec["task"],
                "model": v.spec["model"],
                "seed": v.spec["seed"],
                "status": v.status,
                "steps": max(v.steps, default=-1) + 1,
                "budget": v.spec["budget"],
                "head": v.head,
                "gate_accuracy": head.get("gate/accuracy"),
                "test": {n: v.evaluations[n]["evaluation"] for n in v.evaluations},
                "best": best_value(v),
                "anew": (v.rescored or {}).get("value"),
                "created": v.created,
                "updated": v.updated,
                "notes": v.notes,
            }
        )
    if as_json:
        emit(rows)
        return
    if not rows:
        click.echo("no runs yet; begin with: evolvent run grpo --task countdown --model tiny")
        return
    shown = table("run", "recipe", "task", "model", "status", "steps", "budget", "result", "begun")
    for row, v in zip(rows, views, strict=True):
        model = Path(row["model"]).name if "/" in row["model"] and "://" not in row["model"] else row["model"]
        shown.add_row(
            v.name,
            row["recipe"],
            row["task"],
            model,
            v.status,
            str(row["steps"]),
            row["budget"],
            outcome(v, row["gate_accuracy"]),
            when(v.created),
        )
    console(LINE).print(shown)


@click.command()
@click.argument("run", shell_complete=complete.runs)
@store_option
@json_option
def lineage(run: str, store_: str, as_json: bool) -> None:
    """The versions of a run as a tree: where each comes from, the evidence, and what the gate said.

    A version is what a gate decided on. Numbers never repeat; the head (*) is what export, try, serve and resume use.
    """
    from evolvent.lineage.runs import read_run

    store = open_store(store_, create=False)
    view = read_run(store, run)
    measured = {**dict.fromkeys(view.figures, "evolved"), **{number: name for name, number in view.measured.items()}}
    rows: list[dict[str, Any]] = [
        {
            "version": v.number,
            "step": v.step,
            "parents": list(v.parents),
            "verdict": v.verdict,
            "head": v.number == view.head,
            "stored": v.hash is not None and store.objects.has(v.hash),
            "hash": v.hash,
            "evidence": v.evidence,
            "measured": measured.get(v.number),
            "time": v.time,
        }
        for v in view.versions
    ]
    going_back = [{"from": r.source, "to": r.to, "time": r.time} for r in view.rollbacks]
    if as_json:
        emit({"run": view.name, "head": view.head, "versions": rows, "rollbacks": going_back})
        return
    from rich.text import Text

    out = console()
    out.print(Text(view.name, "bold"), f": {view.spec['recipe']} on {view.spec['task']}, {view.status}", sep="")
    out.print(tree(view, {row["version"]: row for row in rows}))
    for r in view.rollbacks:
        out.print(f"rolled back from version {r.source} to version {r.to} on {when(r.time)}")
    if view.candidates:
        out.print(f"{len(view.candidates)} candidates: `evolvent report {view.name}` shows their descent")
    if not view.candidates or len(view.versions) > 1:
        out.print("* head: what export, try, serve and resume use; `evolvent rollback RUN VERSION` moves it")


def tree(view: Any, rows: dict[int, dict[str, Any]]) -> Any:
    """The versions, each below the one that it comes from; a line of descent that does not fork stays at one depth."""
    from rich.tree import Tree

    children: dict[int | None, list[int]] = {}
    for row in rows.values():
        parent = next((p for p in row["parents"] if p in rows), None)
        children.setdefault(parent, []).append(row["version"])
    root = Tree("", hide_root=True)
    waiting = [(number, root, False) for number in reversed(children.get(None, []))]
    while waiting:
        number, below, opens = waiting.pop()
        node = below.add(version_line(rows[number], view.evaluation(number)))
        line = node if opens else below  # where a single successor goes on
        following = children.get(number, [])
        standing = [n for n in following if rows[n]["verdict"] != "refused"]
        for n in reversed(following):
            alone = standing == [n]
            waiting.append((n, line if alone else node, len(standing) > 1 and n in standing))
    return root


def version_line(row: dict[str, Any], evaluation: dict[str, Any] | None) -> Any:
    """One version in a line."""
    from rich.text import Text

    style = {"refused": "red", "start": "cyan"}.get(row["verdict"], "green")
    head = ("* ", "bold") if row["head"] else ""
    parts = [f"{k.rpartition('/')[2]} {v:.3f}" for k, v in row["evidence"].items() if not k.endswith("accepted")]
    if evaluation:
        e = evaluation["evaluation"]
        parts.append(f"test, %: greedy {share(e['greedy']['mean'])}, sampled {share(e['sampled']['mean'])}")
    if not row["stored"]:
        parts.append("weights not kept" if row["verdict"] == "refused" else "weights removed")
    begins = head, f"version {row['version']}, step {row['step']}  ", (row["verdict"], style)
    return Text.assemble(*begins, *(f"  {part}" for part in parts))


@click.command()
@click.argument("a", shell_complete=complete.runs)
@click.argument("b", shell_complete=complete.runs)
@store_option
@json_option
def diff(a: str, b: str, store_: str, as_json: bool) -> None:
    """What differs between two runs, or two versions written as RUN:VERSION.

    \b
    evolvent diff grpo-countdown-1 dapo-countdown-1
    evolvent diff last:0 last:250
    """
    from evolvent.lineage.diff import compare

    found = compare(open_store(store_, create=False), a, b)
    if as_json:
        emit(found)
        return
    out = console()
    for title in ("run", "settings", "environment"):
        if found[title]:
            rows = table(title, a, b)
            for key, (x, y) in found[title].items():
                rows.add_row(key, "" if x is None else str(x), "" if y is None else str(y))
            out.print(rows)
            out.print()
    for side, name in (("a", a), ("b", b)):
        for op in found["recipes"][side]:
            out.print(f"only {name} has  {op}")
    if found["figures"]:
        rows = table("figure", a, b)
        for key, value in found["figures"].items():
            if "b - a" in key:
                rows.add_row(key, "", interval(value, signed=True))
            else:
                rows.add_row(key, *(interval(x) for x in value))
        out.print(rows)
        out.print()
    rows = table("spent", a, b)
    for unit, (x, y) in found["spent"].items():
        if x or y:
            rows.add_row(unit.replace("_", " "), f"{x:,.0f}", f"{y:,.0f}")
    out.print(rows)
    if any(found["best"]):
        out.print(programs(*found["best"]))
    weights = found["weights"]
    if weights.get("none"):  # of searches by rules
        return
    if weights.get("same"):
        out.print("weights: the same")
    elif "why" in weights:
        out.print(f"weights: not compared ({weights['why']})")
    else:
        most = ", ".join(f"{n} {x:.3g}" for n, x in weights["most_changed"].items())
        out.print(f"weights: {weights['l2']:.4g} apart, {weights['relative']:.2%} of their size; most: {most}")


def programs(a: dict[str, Any] | None, b: dict[str, Any] | None) -> str:
    """The best programs of two searches: their values, and what the second one has otherwise."""
    from difflib import unified_diff

    lines = []
    for side, one in (("a", a), ("b", b)):
        if one is None:
            lines.append(f"best of {side}: none is valid")
        else:
            anew = "" if one["anew"] is None else f", anew {one['anew']:z.6g}"
            lines.append(f"best of {side}: candidate {one['candidate']}, {one['value']:z.6g}{anew}")
    before, after = (one["program"].splitlines() if one else [] for one in (a, b))
    return "\n".join([*lines, *unified_diff(before, after, "a", "b", lineterm="")])


def interval(value: Any, signed: bool = False) -> str:
    """A figure, or a mean with its interval, in per cent."""
    if value is None:
        return ""
    if not isinstance(value, list | tuple):
        return f"{value:.3f}"
    return percent(value, "+" if signed else "", " %")


@click.command()
@click.argument("run", shell_complete=complete.runs)
@click.argument("version", type=int)
@store_option
@json_option
def rollback(run: str, version: int, store_: str, as_json: bool) -> None:
    """Go back to an earlier version: export, try, serve and resume start there from now on.

    Nothing is deleted. To undo it, roll back to the newer number.
    """
    from evolvent.lineage.rollback import go_back

    done = go_back(open_store(store_, create=False), run, version)
    if as_json:
        emit(done)
        return
    click.echo(
        f"The head of {done['run']} is now version {version} (step {done['step']}); it was version {done['before']}.\n"
        f"export, try, serve and `evolvent resume {done['run']}` start there; the curves stay as they are.\n"
        f"Undo: evolvent rollback {done['run']} {done['before']}"
    )


@click.command()
@click.argument("run", shell_complete=complete.runs)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--version", "number", type=int, help="a version of `evolvent lineage RUN` (default: the head)")
@click.option("--adapter", is_flag=True, help="only the LoRA adapter, in PEFT's format")
@click.option("--role", help="which role's adapter, where there are several (default: the one that solves the task)")
@store_option
def export(run: str, folder: Path, number: int | None, adapter: bool, role: str | None, store_: str) -> None:
    """Write an evolved model as a Hugging Face folder, which `transformers` loads; adapters are merged in.

    \b
    evolvent export last my-model
    evolvent export last my-adapter --adapter --version 120
    evolvent export last best.py
    evolvent export last prompts.json

    Of a search it writes the best program to a file, or the best texts. Where programs stand for models
    (program:adapters), a name without an ending is a folder for the model, or with --adapter for the change alone.
    """
    from evolvent.lineage.export import export_search, export_version
    from evolvent.lineage.runs import read_run

    store = open_store(store_, create=False)
    view = read_run(store, run)
    what = "adapter" if adapter else "model"
    if view.candidates and (written := export_search(store, view, folder, number, adapter, role)):
        click.echo(f"Wrote {written} to {folder}")
        return
    done = export_version(store, run, folder, number, adapter, role)
    click.echo(f"Wrote the {what} of {done.run}, version {done.version} (step {done.step}), to {folder}")
    if not adapter:
        path = shlex.quote(str(folder))
        click.echo(f"Use it: evolvent try {path} · evolvent run grpo --model {path} · AutoModelForCausalLM")


@click.command()
@click.argument("run", shell_complete=complete.runs)
@click.option("--open", "show", is_flag=True, help="show it in the browser")
@click.option("--out", type=click.Path(path_type=Path), help="where to write it (default: in the run's folder)")
@store_option
def report(run: str, show: bool, out: Path | None, store_: str) -> None:
    """One HTML page about a run that holds everything: curves, samples before and after, spending, how to repeat it."""
    from evolvent.lineage.report import write_report

    path = write_report(open_store(store_, create=False), run, out)
    click.echo(path)
    if show:
        click.launch(str(path))


@click.command()
@click.option(
    "--keep-last", default=3, show_default=True, type=click.IntRange(0), help="accepted versions kept per run"
)
@click.option("--dry-run", is_flag=True, help="say what would be removed, and remove nothing")
@store_option
@json_option
def gc(keep_last: int, dry_run: bool, store_: str, as_json: bool) -> None:
    """Free disk space: weights of versions that no run needs, and files that dead processes left.

    Starts, heads and all that was measured on the test split stay, and so do all events, curves and reports.
    """
    from evolvent.lineage.gc import sweep

    swept = sweep(open_store(store_, create=False), keep_last, dry_run)
    if as_json:
        emit({**vars(swept), "dry_run": dry_run})
        return
    would = "would remove" if dry_run else "removed"
    for name, numbers in swept.versions.items():
        click.echo(f"{would} the weights of {name}, versions {', '.join(map(str, sorted(numbers)))}")
    if swept.unnamed or swept.temporary:
        click.echo(f"{would} {swept.unnamed} files that no version names and {swept.temporary} unfinished ones")
    click.echo(f"{'would free' if dry_run else 'freed'} {size(swept.freed)}; {size(swept.kept)} of weights stay")


def size(count: int) -> str:
    """Bytes for reading."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return ""
