"""Parent rules at equal budget on a grid of SIMULATED settings: which beat uniform parents and independent sampling.

The grid, the rules with their settings, the budget, delta and what is expected stand below, and were committed before
anything was measured. A score is how much of the way from the seed program's value to the exact optimum the best
candidate has gone; where values are measured by trials, that of the candidate with the best measured value, by its true
value. A pair shares landscape, seed and model. Verdicts by docs/protocol.md: paired t, 97.5 % two-sided, and Holm over
the arms; `beats` needs a mean difference of at least DELTA besides. Where 8 seeds do not decide, 8 more are added once.

What was seen before: a first form of `stones` (the others' mean in the place of their sum) was no trap and, at depth 0,
no plateau, since a step could gain; its two cells were measured, and have been replaced. `valley` and `rugged-long` and
the added seeds were settled after that, before they were measured.

Cells are kept as they finish: a second call goes on. The search is `evolvent.search.simulated`, which decides as the
loop does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from measure import RESULTS, command, environment, write
from scipy.stats import t as student

from evolvent.bench.statistics import decide, holm, t_interval
from evolvent.core.random import digest
from evolvent.engine.simulated_writer import Habits
from evolvent.search import parents
from evolvent.search.simulated import simulate
from evolvent.tasks.settings import read_settings
from evolvent.tasks.worlds.landscape import Landscape
from evolvent.tasks.worlds.terrain import Terrain

EVALUATIONS, SEEDS, DELTA = 150, 8, 0.02
LONG = {"rugged-long": 450}  # cells with another budget
BASELINES = ("uniform", "seed")
RULES: dict[str, Any] = {
    "uniform": parents.uniform,
    "seed": parents.seed,
    "latest": parents.latest,
    "elite": parents.elite,
    "power_law": parents.power_law,
    "weighted": parents.weighted,
    "boltzmann": partial(parents.boltzmann, temperature=0.02),  # of the size of an edit's effect; 1 would be uniform
    "mixed": parents.mixed,
    "tournament": partial(parents.tournament, size=4),
    "novel_sigmoid": parents.novel_sigmoid,
    "thompson_clade": parents.thompson_clade,
}
GRID: dict[str, tuple[str, str, str]] = {  # cell -> landscape, model, what is expected
    "smooth": ("k=0", "skill=0.1", "selection helps, and elite is best: nothing can mislead it"),
    "able": ("k=2", "skill=0.8", "selection helps; the rules differ little, since most edits are good"),
    "rugged": ("k=4", "skill=0.1", "selection helps; elite stays in a local optimum, milder rules go on"),
    "rugged-long": ("k=4", "skill=0.1", "with three times the budget milder rules overtake elite"),
    "stones": (
        "kind=stones,block=2,depth=0.3,slope=0.25,options=3",
        "skill=0.1",
        "elite must not win: the way leads downwards",
    ),
    "valley": (
        "kind=stones,block=2,depth=0.5,slope=0,parts=16,options=2",
        "skill=0,rewrites=1",
        "elite never leaves the seed program; rules that keep what is worse cross",
    ),
    "plateau": ("kind=stones,block=2,depth=0,slope=0,options=3", "skill=0", "elite must not win; drift pays"),
    "metaproductive": (
        "k=2,traits=2,options=3,boost=1",
        "skill=0",
        "thompson_clade gains on rules that look at values",
    ),
    "trials": ("k=2,trials=20", "skill=0.1", "elite is misled by lucky measurements; milder rules are not"),
    "favourites": ("k=2", "skill=0.1,diversity=0.3", "seed and elite repeat themselves; rules that spread win"),
    "noise": ("kind=noise,parts=48,options=10", "skill=0,edits=6,rewrites=12", "nothing matters: no rule may win"),
}
KEY = "parent-rules"


def scores(cell: str, arm: str, seeds: Sequence[int]) -> list[float]:
    """One for each seed."""
    land, model, _ = GRID[cell]
    habits = read_settings(Habits, model, "simulated")
    budget = LONG.get(cell, EVALUATIONS)
    return [score(Landscape(terrain_of(land, seed)), habits, RULES[arm], budget, seed) for seed in seeds]


def terrain_of(land: str, seed: int) -> Terrain:
    """A cell's landscape, another one for each seed."""
    return read_settings(Terrain, f"{land},seed={seed}", "landscape")


def score(landscape: Landscape, habits: Habits, rule: Any, evaluations: int, seed: int) -> float:
    """From 0, the seed program's value, to 1, the optimum."""
    best = simulate(landscape, habits, rule, evaluations, seed).best
    assert best is not None
    begun, end = landscape.terrain.value(landscape.terrain.first), landscape.terrain.optimum[0]
    return (landscape.true_value(best.text) - begun) / (end - begun)


def compared(table: Mapping[str, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """Each arm against each baseline: mean difference, interval, p and verdict; Holm over the arms."""
    found: dict[str, dict[str, Any]] = {arm: {} for arm in table}
    for baseline in BASELINES:
        arms = [arm for arm in table if arm != baseline]
        gaps = {arm: np.subtract(table[arm], table[baseline]) for arm in arms}
        p = [p_value(gaps[arm]) for arm in arms]
        for arm, value, sure in zip(arms, p, holm(p), strict=True):
            interval = t_interval(gaps[arm].tolist())
            large = abs(interval.mean) >= DELTA
            verdict = ("beats" if interval.mean > 0 else "loses") if sure and large else "-"
            found[arm][baseline] = {
                "mean": interval.mean, "low": interval.low, "high": interval.high, "p": value, "verdict": verdict,
            }  # fmt: skip
    return found


def p_value(gaps: np.ndarray) -> float:
    """Of the paired t test, two-sided; 1 where all differences are equal to 0."""
    spread = float(gaps.std(ddof=1))
    if spread == 0:
        return float(gaps[0] == 0)
    return float(2 * student.sf(abs(gaps.mean()) * math.sqrt(len(gaps)) / spread, len(gaps) - 1))


def settings_of(cell: str) -> str:
    """What a cell's scores depend on: who was measured with other ones is measured again."""
    return digest(*GRID[cell][:2], LONG.get(cell, EVALUATIONS), *RULES, size=8).hex()


def inconclusive(table: Mapping[str, Sequence[float]]) -> bool:
    """Whether the protocol adds seeds once: some comparison neither holds nor fails."""
    gaps = (np.subtract(table[arm], table[b]).tolist() for b in BASELINES for arm in table if arm != b)
    return any(decide(gap, DELTA, "superiority")[0] == "inconclusive" for gap in gaps)


def measured(cell: str, table: dict[str, list[float]], most: int) -> dict[str, list[float]]:
    """The scores of a cell, as far as they are not there yet: of SEEDS seeds, and where these do not decide of twice as
    many, if `most` allows."""
    for count in (SEEDS, 2 * SEEDS):
        if count == SEEDS or (count <= most and inconclusive(table)):
            table = {arm: have + scores(cell, arm, range(len(have), count)) for arm, have in table.items()}
    return table


def main() -> None:
    """Measure what is missing and write `results/parent-rules.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default=",".join(GRID), help="some of the grid's cells")
    parser.add_argument("--most", type=int, default=2 * SEEDS, help="seeds of a cell; 8: none are added")
    args = parser.parse_args()
    path = RESULTS / f"{KEY}.json"
    cells = json.loads(path.read_text())["cells"] if path.is_file() else {}
    cells = {name: cell for name, cell in cells.items() if name in GRID and cell["settings"] == settings_of(name)}
    where = environment(1)
    for name in args.cells.split(","):
        land, model, expected = GRID[name]
        there = cells[name] if name in cells else {"scores": {arm: [] for arm in RULES}, "seconds": 0.0}
        begun = os.times().user
        table = measured(name, there["scores"], args.most)
        cells[name] = {
            "settings": settings_of(name), "landscape": land, "model": model, "expected": expected,
            "evaluations": LONG.get(name, EVALUATIONS), "seeds": len(table["uniform"]), "scores": table,
            "compared": compared(table), "seconds": there["seconds"] + os.times().user - begun,
        }  # fmt: skip
        print(name, {arm: round(float(np.mean(x)), 3) for arm, x in table.items()}, flush=True)
        whole = {name: cells[name] for name in GRID if name in cells}
        least = min(cell["seeds"] for cell in whole.values())
        mean = {arm: np.mean([cell["scores"][arm][:least] for cell in whole.values()], 0).tolist() for arm in RULES}
        write(KEY, {
            "command": command(), "environment": where, "world": "simulated", "delta": DELTA, "cells": whole,
            "all": {"seeds": least, "scores": mean, "compared": compared(mean)},
        })  # fmt: skip


if __name__ == "__main__":
    main()
