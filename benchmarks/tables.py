"""The tables of docs/performance.md, from benchmarks/results/. `python benchmarks/tables.py` writes them.

A part between `<!-- name -->` and `<!-- /name -->` is replaced by what was measured last, or by a note that nothing
was. `python benchmarks/tables.py --check` only says whether the page is up to date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
SEARCHES = {"a model's diffs": "hill-climbing", "rules": "random-search"}  # by who writes, as in `search.py`


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def within(values: dict[str, Any], digits: int = 2, unit: str = "") -> str:
    """Median, and the smallest and largest value."""
    low, high = f"{values['least']:.{digits}f}", f"{values['most']:.{digits}f}"
    return f"**{values['median']:.{digits}f}{unit}** ({low} to {high})"


def percent(values: dict[str, Any]) -> str:
    """A share in per cent."""
    return within({k: 100 * values[k] for k in ("median", "least", "most")}, 1, " %")


def where(result: dict[str, Any]) -> str:
    """The line under a table: how, with what and where it was measured."""
    e = result["environment"]
    return (
        f"\n`{result['command']}`: {e['date']}, {e['processor']}, {e['cores']} cores, {e['threads']} thread"
        f"{'s' if e['threads'] > 1 else ''}, load {e['load']} at the start, torch {e['torch']}, "
        f"Python {e['python']}, evolvent {e['evolvent']} at {e['commit']}.\n"
    )


def step(result: dict[str, Any]) -> str:
    """One training step, beside the peer's."""
    w, ours, theirs, ratios = result["workload"], result["ours"], result["theirs"], result["ratios"]
    rows = [
        ["seconds a step", within(ours["seconds"]), within(theirs["seconds"]), within(ratios["seconds"])],
        ["of these, sampling", within(ours["rollout"]), within(theirs["rollout"]), within(ratios["rollout"])],
        ["processor seconds", "", "", within(ratios["processor"])],
        ["peak memory, MiB", within(ours["memory"], 0), within(theirs["memory"], 0), within(ratios["memory"])],
    ]
    peer = ", ".join(f"{k} {v}" for k, v in theirs["versions"].items())
    tried = ", ".join(f"{name or 'as it comes'}: {seconds:.2f} s" for name, seconds in result["trials"].items())
    lengths = f"{w['longest']}" if w["full"] else f"{w['shortest']} to {w['longest']}"
    return (
        table(("", "ours", "TRL", "ours / TRL"), rows)
        + f"\nMedians (and range) over {w['pairs']} pairs of {w['steps']} steps: {w['prompts']} prompts of {w['task']} "
        + f"x {w['samples']} completions of {lengths} tokens, {w['flat']} % of the prompts without signal, "
        + f"{w['sampled']:,.0f} tokens sampled by each side. Peer: {peer}, at the fastest of these settings: {tried}.\n"
        + where(result)
    )


def accuracy(result: dict[str, Any]) -> str:
    """Time to accuracy."""
    rows = []
    for run in result["runs"]:
        row = [f"{run['seed']} ({run['model']})", f"{run['ours']['level']:.2f}"]
        for side in ("ours", "theirs"):
            found = run[side]
            if found["seconds"]:
                row.append(f"{found['seconds']:.1f} s ({found['steps']} steps)")
            else:
                row.append(f"not in {result['workload']['steps']} steps")
        row += [f"{max(run[side]['curve'].values()):.2f}" for side in ("ours", "theirs")]
        rows.append(row)
    titles = ("seed", "level", "ours", "TRL", "best of ours", "best of TRL")
    w, ratios = result["workload"], result["ratios"]
    total = f"Ours / TRL: {within(ratios)}. " if ratios else ""
    return (
        table(titles, rows)
        + f"\n{total}Sampled accuracy on {w['problems']} problems of the gate split of {w['task']}; the level is "
        + f"{100 * w['rise']:.0f} points above the start model.\n"
        + where(result)
    )


def generation(result: dict[str, Any]) -> str:
    """Sampling beside `generate`."""
    rows = []
    for name, c in result["cases"].items():
        lengths = f"{c['shortest']}" if c["shortest"] == c["longest"] else f"{c['shortest']} to {c['longest']}"
        rate = [f"{c['sampled'] / c[side]['median']:,.0f}" for side in ("ours", "theirs")]
        shape = f"{c['rows']} rows, {c['samples']} a prompt of {c['prompt']}, {lengths} tokens"
        rows.append([f"{name}: {shape}", *rate, within(c["speedup"])])
    titles = ("", "ours, tokens/s", "`generate`, tokens/s", "speed-up")
    return table(titles, rows) + f"\nModel: the shape of `{result['shape']}`.\n" + where(result)


def overhead(result: dict[str, Any]) -> str:
    """The loop's own time, and rates."""
    rows = []
    for name, r in result["runs"].items():
        seconds = within(r["seconds"], 3)
        shares = [percent(r[k]) for k in ("overhead", "sampling", "verifying", "training")]
        rows.append([f"{name}, {r['parameters']:,} parameters, {r['rows']} rows", seconds, *shares])
    rates = [[name, percent(r["sampling_rate"]), percent(r["training_rate"])] for name, r in result["runs"].items()]
    return (
        table(("", "seconds a step", "overhead", "sampling", "verifying", "training"), rows)
        + f"\nShare of the best product rate that was measured in the same session ({rates_by(result)}):\n\n"
        + table(("", "sampling", "training"), rates)
        + where(result)
    )


def rates_by(result: dict[str, Any]) -> str:
    """Rates of products, by the setting of torch."""
    return ", ".join(f"`{name}` {rate / 1e9:.0f} GFLOP/s" for name, rate in result["product_rates"].items())


def startup(result: dict[str, Any]) -> str:
    """Seconds until an answer."""
    rows = [[f"`{name}`", within(values)] for name, values in result["calls"].items()]
    return table(("", "seconds"), rows) + where(result)


def parent_rules(result: dict[str, Any]) -> str:
    """Parent rules on the grid of simulated settings, and which of them beat the baselines."""
    cells = {**result["cells"], "all": result["all"]}
    arms = list(result["all"]["scores"])
    rows = []
    for arm in arms:
        shown = []
        for cell in cells.values():
            scores = cell["scores"][arm]
            shown.append(f"{sum(scores) / len(scores):.2f}{verdicts(cell['compared'][arm])}")
        rows.append([f"`{arm}`", *shown])
    settings = [
        [name, f"`{c['landscape']}`", f"`{c['model']}`", str(c["evaluations"]), str(c["seeds"]), c["expected"]]
        for name, c in result["cells"].items()
    ]
    beaten = {arm: {b: v["verdict"] for b, v in result["all"]["compared"][arm].items()} for arm in arms}
    both = [f"`{arm}`" for arm, found in beaten.items() if list(found.values()) == ["beats", "beats"]]
    return (
        table(("", *cells), rows)
        + f"\nOver the whole grid {', '.join(both) or 'no rule'} beat{'s' * (len(both) < 2)} both uniform parents and "
        f"independent sampling (`seed`), by {result['delta']} or more.\n\n"
        + table(("setting", "landscape", "model", "evaluations", "seeds", "expected beforehand"), settings)
        + where(result)
    )


def histories(rows: dict[str, Any]) -> str:
    """What the length of the history does to an iteration: a sentence for each search."""
    sentences = []
    for writer, recipe in SEARCHES.items():
        own = {label: row for label, row in rows.items() if label.startswith(writer)}
        lengths = " / ".join(label.split(", ")[-1].split(" ")[0] for label in own)
        times = " / ".join(f"{row['all']['median']:.1f}" for row in own.values())
        sentences.append(f"With {writer} (`{recipe}`) an iteration takes {times} ms after {lengths} candidates.")
    return " ".join(sentences)


def search(result: dict[str, Any]) -> str:
    """An iteration of a search, its stages, workers and long histories."""
    stages = ("propose", "rollout", "judge", "keep", "record")
    titles = ("", "ms an iteration", "p90", *stages, "processor ms")

    def line(label: str, row: dict[str, Any]) -> list[str]:
        parts = [f"{row[stage]['median']:.1f}" for stage in stages]
        return [label, within(row["all"], 1), f"{row['all']['p90']:.1f}", *parts, f"{row['processor']:.1f}"]

    rows = [line(label, row) for label, row in result["overhead"].items()]
    rows += [line(label, row) for label, row in result["flat"].items()]
    workers = [
        [label, within(row["one"], 1), within(row["two"], 1), within(row["ratio"])]
        for label, row in result["workers"].items()
    ]
    return (
        table(titles, rows)
        + f"\n{histories(result['flat'])}\n"
        + f"\nThe first candidate is in the store {within(result['start'], 2, ' s')} after the command's start.\n\n"
        + table(("candidates a second", "one worker", "two", "ratio"), workers)
        + where(result)
    )


def search_peers(result: dict[str, Any]) -> str:
    """An iteration of each search."""
    w = result["workload"]
    rows = [
        [
            f"{name} {result['versions'].get(name, '')}".strip(), within(row["milliseconds"], 1),
            f"{row['longest']['median']:.0f}", f"{row['processor']['median']:.0f}", f"{row['start']['median']:.1f}",
            row["isolation"],
        ]
        for name, row in result["rows"].items()
    ]  # fmt: skip
    titles = ("", "ms an iteration", "the longest", "processor ms", "first request, s", "isolation")
    model = max(row["model"]["median"] for row in result["rows"].values())
    return (
        table(titles, rows)
        + f"\nMedians (and range) over {w['rounds']} rounds of the means of searches of {w['iterations']} iterations, "
        + f"the first {w['warm_up']} left out; without the model's time, which is {model:.1f} ms at most.\n"
        + where(result)
    )


def verdicts(found: dict[str, Any]) -> str:
    """u+ or u- for an arm that beats uniform parents or loses to them, s+ or s- for independent sampling."""
    signs = {"beats": "+", "loses": "-"}
    marks = [f"{name[0]}{signs[v['verdict']]}" for name, v in found.items() if v["verdict"] in signs]
    return f" {' '.join(marks)}" if marks else ""


def faults(result: dict[str, Any]) -> str:
    """What is left of a search, by fault and framework."""
    names = list(next(iter(result["rows"].values())))

    def cell(row: dict[str, Any]) -> str:
        left = f", {row['left behind']} left behind" if row["left behind"] else ""
        code = "" if row["exit"] == 0 else f", exit {row['exit']}" if isinstance(row["exit"], int) else ", no end"
        text = f"{row['evaluated']} of 40, {row['valid']} valid{code}{left}"
        return text if row["survived"] else f"**{text}**"

    rows = [[fault, *(cell(row) for row in found.values())] for fault, found in result["rows"].items()]
    return table(("", *names), rows) + where(result)


def worlds(result: dict[str, Any]) -> str:
    """Searches beside multistart, world by world."""
    rows, notes = [], []
    for place, found in sorted(result.items()):
        for row in found["rows"]:
            tried = sum(found["tried"][row["arm"]]) / len(found["tried"][row["arm"]])
            against = ""
            if "difference" in row:
                mean, low, high = row["difference"]
                against = f"{mean:+.3g} [{low:+.3g}, {high:+.3g}] {row['verdict']}"
            rows.append(
                [f"`{place}`", row["arm"], f"{row['mean']:.6g}", f"{row['best']:.8g}", f"{tried:,.0f}", against]
            )
        rows += [[f"`{place}`", f"*{who}, {when}*", "", f"{value:.8g}", "", ""] for value, who, when in found["known"]]
        *library, what = found["components"]
        notes.append(f"- `{place}`: {'; '.join(f'`{c}`' for c in library)}; {what}")
    titles = ("world", "arm", "mean", "best", "starts or evaluations", "to multistart")
    listed = "\n".join(notes)
    halves = [half for found in result.values() for half in (found, found.get("more")) if half]
    measured = "".join(dict.fromkeys(where(half) for half in halves))
    return f"{table(titles, rows)}\nComponents, and what multistart does with them:\n\n{listed}\n{measured}"


def games(result: dict[str, Any]) -> str:
    """Exploitability of CFR's variants, game by game, and of PSRO's populations."""
    names = list(result["games"])
    variants = list(result["games"][names[0]])
    rows = [[v, *(f"{result['games'][game][v]['exploitability']['1000']:.2g}" for game in names)] for v in variants]
    psro = [[name, *(f"{found[k]:.3f}" for k in found)] for name, found in result["psro"].items()]
    asked = [f"after {k} iterations" for k in next(iter(result["psro"].values()), {})]
    return f"{table(('', *names), rows)}\n{table(('meta-solver of PSRO on Kuhn poker', *asked), psro)}{where(result)}"


def regret_search(result: dict[str, Any]) -> str:
    """What a search has found, on games held out, beside what is known."""
    titles, rows = list(next(iter(result["known"].values()))), []
    for name, row in result["known"].items():
        rows.append([name, *(f"{row[game]:.2f}" for game in titles), ""])
    for recipe, found in result["recipes"].items():
        means = [sum(x[game] for x in found["digits"]) / len(found["digits"]) for game in titles]
        rows.append([f"{recipe}, mean of {len(found['digits'])}", *(f"{x:.2f}" for x in means), ""])
        for other, against in found["against"].items():
            each = [f"{x[0]:+.2f} [{x[1]:+.2f}, {x[2]:+.2f}]" for x in (against[g]["difference"] for g in titles)]
            rows.append([f"{recipe} to {other}", *each, f"{against['mean']['verdict']} (on the mean)"])
    return table(("", *titles, "verdict"), rows) + where(result)


PARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "step-spread": step,
    "step-full": step,
    "accuracy": accuracy,
    "generation": generation,
    "overhead": overhead,
    "startup": startup,
    "parent-rules": parent_rules,
    "search": search,
    "search_peers": search_peers,
    "search_faults": faults,
    "search_worlds": worlds,
    "games": games,
    "regret_search": regret_search,
}


def page(text: str) -> str:
    """The page with its parts made anew."""
    for name, make in PARTS.items():
        path = HERE / "results" / f"{name}.json"
        made = make(json.loads(path.read_text())) if path.is_file() else "Not measured yet.\n"
        text = replaced(text, name, made)
    return text


def replaced(text: str, name: str, made: str) -> str:
    """The text with another part of this name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    assert begin in text, f"{PAGE.name} has no part {name}"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{made}\n{end}", text, flags=re.DOTALL)


def main() -> None:
    """Write the page, or check it."""
    before = PAGE.read_text()
    after = page(before)
    if "--check" in sys.argv:
        sys.exit(before != after and f"{PAGE.name} is out of date: run python benchmarks/tables.py")
    PAGE.write_text(after)
    print(PAGE.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
